// A case over the versions: outcome, engine and time of each, and where it changed.
const Timeline = (() => {
  const { columns, dict, outcomes, targets } = Data;

  // {target: row} of the same case and configuration on the same device.
  function rowsOf(r) {
    const device = Data.target(r).device, found = new Map();
    for (const t of Data.allOf.get(device)) {
      const one = Data.rowOf(columns.case[r], t);
      if (one >= 0) found.set(t, one);
    }
    if (columns.config[r] === null || !found.size) return found;
    for (let i = 0; i < Data.rows; i++) if (columns.case[i] === columns.case[r] && Data.target(i).device === device && columns.config[i] === columns.config[r]) found.set(columns.target[i], i);
    return found;
  }

  // [{outcome, first, last, when}] of neighbours that end alike; `asked` are targets in order.
  function spans(asked, found) {
    const out = [];
    asked.forEach((t, i) => {
      const o = columns.outcome[found.get(t)], last = out[out.length - 1];
      if (last && last.o === o) last.last = i; else out.push({ o, first: i, last: i });
    });
    return out.map((s) => ({ ...s, outcome: outcomes[s.o], when: Matrix.when(asked, s.first, s.last) }));
  }

  const micro = (r) => (columns.exec_us[r] === null ? "" : `${shown(Number(columns.exec_us[r].toPrecision(3)))} µs`);

  // An edge that `facts bisect` found: both of its sides were asked twice.
  const bisected = (before, r) => [before, r].every((x) => Trust.run(x).by === "bisect");

  function box(t, r, before) {
    const o = Data.outcome(r), engine = dict.engine[columns.engine[r]], edge = before !== null && columns.outcome[before] !== columns.outcome[r], found = edge && bisected(before, r);
    return element("li", { class: `${o.kind}${edge ? " edge" : ""}`, title: `${targets[t].build}: ${o.word}${edge ? ", changed here" : ""}` }, element("span", { class: "version" }, targets[t].label), element("span", {}, mark(o), element("span", { class: "hidden" }, o.word)),
      element("span", { class: "sub" }, engine === null ? "" : `e${engine}`), element("span", { class: "sub" }, micro(r)), found ? element("span", { class: "sub found" }, "bisect") : null);
  }

  // The line of versions of a row's case, with a sentence before it.
  function of(r) {
    const found = rowsOf(r), asked = Data.allOf.get(Data.target(r).device).filter((t) => found.has(t)), list = spans(asked, found);
    const sentence = element("p", { class: "line" }, element("b", {}, "Over the builds "), ...[...list].reverse().flatMap((s, i) => [i ? "; " : "", `${s.when} `, mark(s.outcome), ` ${s.outcome.word}`]));
    return [sentence, asked.length > 1 ? element("ol", { class: "timeline" }, ...asked.map((t, i) => box(t, found.get(t), i ? found.get(asked[i - 1]) : null))) : null];
  }

  // Several cases together: how many of them each version accepts, and which engines come first.
  function ofCases(cases, device) {
    const asked = Data.allOf.get(device).filter((t) => cases.some((c) => Data.rowOf(c, t) >= 0));
    let before = -1;
    return element("ol", { class: "timeline" }, ...asked.map((t) => {
      const rows = cases.map((c) => Data.rowOf(c, t)).filter((r) => r >= 0), good = rows.filter((r) => Data.outcome(r).kind === "good").length;
      const worst = rows.reduce((a, r) => Math.min(a, columns.outcome[r]), outcomes.length - 1), engines = [...new Set(rows.map((r) => dict.engine[columns.engine[r]]).filter((e) => e !== null))].sort((a, b) => a - b);
      const share = good / rows.length, edge = before >= 0 && before !== share;
      before = share;
      return element("li", { class: `${outcomes[worst].kind}${edge ? " edge" : ""}`, title: `${targets[t].build}: ${count(good)} of ${count(rows.length)} accepted` }, element("span", { class: "version" }, targets[t].label),
        element("span", {}, mark(outcomes[worst]), ` ${count(good)}/${count(rows.length)}`), element("span", { class: "sub" }, engines.length ? `e${engines.join(" ")}` : ""));
    }));
  }

  return { of, ofCases };
})();
