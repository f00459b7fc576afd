// Arrow keys move between the buttons of a table or list, of which one is a tab stop.
const Keys = (() => {
  const seen = (box, selector) => [...box.querySelectorAll(selector)].filter((e) => e.getClientRects().length);

  // Which button is a tab stop: the one that was, or the first.
  function settle(box, selector) {
    const all = box.querySelectorAll(selector);
    for (const e of all) e.tabIndex = -1;
    const first = box.querySelector(`${selector}[aria-pressed="true"]`) ?? all[0];
    if (first) first.tabIndex = 0;
  }

  const middle = (e) => { const r = e.getBoundingClientRect(); return { x: (r.left + r.right) / 2, y: (r.top + r.bottom) / 2 }; };

  function next(all, from, key) {
    if (key === "Home") return all[0];
    if (key === "End") return all[all.length - 1];
    const along = key === "ArrowLeft" || key === "ArrowRight" ? "x" : "y", across = along === "x" ? "y" : "x", way = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
    const here = middle(from);
    let best = null, least = Infinity;
    for (const e of all) {
      const there = middle(e), far = (there[along] - here[along]) * way, off = Math.abs(there[across] - here[across]);
      if (far < 2 || (along === "x" && off > 8)) continue;
      if (far + 3 * off < least) { least = far + 3 * off; best = e; }
    }
    return best;
  }

  function rove(box, selector) {
    box.addEventListener("focusin", (event) => {
      const e = event.target.closest(selector);
      if (!e) return;
      for (const other of box.querySelectorAll(`${selector}[tabindex="0"]`)) other.tabIndex = -1;
      e.tabIndex = 0;
    });
    box.addEventListener("keydown", (event) => {
      const e = event.target.closest(selector);
      if (!e || event.altKey || event.ctrlKey || event.metaKey || !/^(Arrow|Home$|End$)/.test(event.key)) return;
      const found = next(seen(box, selector), e, event.key);
      event.preventDefault();
      found?.focus();
    });
    settle(box, selector);
  }

  return { rove, settle };
})();
