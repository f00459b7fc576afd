// A case over the versions: outcome, engine and time of each, and where it changed.
const Timeline = (() => {
  const { columns, dict, outcomes, targets } = Data;

  // {target: row} of the same case and configuration on the same device.
  function rowsOf(r) {
    const device = Data.target(r).device, found = new Map();
    for (const t of Data.ofDevice.get(device)) {
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

  function box(t, r, edge) {
    const o = Data.outcome(r), engine = dict.engine[columns.engine[r]];
    return element("li", { class: `${o.kind}${edge ? " edge" : ""}`, title: `${targets[t].build}: ${o.word}${edge ? ", changed here" : ""}` }, element("span", { class: "version" }, targets[t].label), element("span", {}, mark(o), element("span", { class: "hidden" }, o.word)),
      element("span", { class: "sub" }, engine === null ? "" : `e${engine}`), element("span", { class: "sub" }, micro(r)));
  }

  // The line of versions of a row's case, with a sentence before it.
  function of(r) {
    const found = rowsOf(r), asked = Data.ofDevice.get(Data.target(r).device).filter((t) => found.has(t)), list = spans(asked, found), edges = new Set(list.slice(1).map((s) => s.first));
    const sentence = element("p", { class: "line" }, element("b", {}, "Over the builds "), ...[...list].reverse().flatMap((s, i) => [i ? "; " : "", `${s.when} `, mark(s.outcome), ` ${s.outcome.word}`]));
    return [sentence, asked.length > 1 ? element("ol", { class: "timeline" }, ...asked.map((t, i) => box(t, found.get(t), edges.has(i)))) : null];
  }

  return { of };
})();
