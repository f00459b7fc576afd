// Known issues. Python says which failures of cases/known speak of a row; here they are counted and shown.
const Issues = (() => {
  const { columns, dict, targets, features } = Data, { answers, entries } = Data.raw.issues;
  const of = (r) => dict.issues[columns.issues[r]].map((i) => answers[i]);
  // One answer for each file, the serious ones first.
  const files = (codes) => { const found = new Map(); for (const code of codes) for (const i of dict.issues[code]) if (!found.has(answers[i].id)) found.set(answers[i].id, answers[i]); return [...found.values()].sort((a, b) => b.serious - a.serious); };
  const counted = (n) => `${count(n)} known ${n === 1 ? "issue" : "issues"}`;

  // For each feature of `list`: the files that speak of its rows, in each of the columns (lists of targets) and in all.
  function inMap(rows, across, list) {
    const place = new Int16Array(targets.length).fill(-1), many = dict.issues.length, inside = list.map((f) => Data.members(f.id)), seen = list.map(() => across.map(() => new Uint8Array(many)));
    across.forEach((column, i) => { for (const t of column.list) place[t] = i; });
    for (const r of rows) {
      const code = columns.issues[r], i = place[columns.target[r]];
      if (code && i >= 0) for (let f = 0; f < list.length; f++) if (inside[f][columns.case[r]]) seen[f][i][code] = 1;
    }
    const codesOf = (flags) => [...flags.keys()].filter((code) => flags[code]);
    return new Map(list.map((f, n) => { const cells = seen[n].map(codesOf); return [f.id, { cells: cells.map(files), all: files(cells.flat()) }]; }));
  }

  const line = (one) => [one.serious ? element("b", { class: "serious" }, "Serious. ") : null, `${one.text}. `, element("span", { class: "quiet" }, `${one.about}.`), one.remedy ? element("span", { class: "quiet" }, ` Instead: ${one.remedy}.`) : null];

  // The list of one feature, which stands below the map.
  function render(state, device, found) {
    const feature = features.find((f) => `${f.axis}: ${f.label}` === state.issues), all = feature ? found.get(feature.id)?.all ?? [] : [], box = at("issues");
    box.hidden = !feature;
    box.replaceChildren(...(feature ? [element("h3", { tabindex: -1 }, `${feature.label} on ${Data.shownDevice(device)}: ${counted(all.length)} `, element("button", { type: "button", class: "plain", "data-issues": "" }, "Close")),
      element("ul", {}, ...all.map((one) => element("li", {}, ...line(one).filter(Boolean))))] : []));
  }

  // What begins and what ends from one build to another.
  function between(a, b, device, label) {
    const on = (e, build) => e.on.some((t) => targets[t].build === build && (!device || targets[t].device === device));
    const words = (n, change) => `${counted(n)} ${change}${n === 1 ? "s" : ""}` + ` between ${label(a)} and ${label(b)}`;
    return [["begin", false], ["end", true]].flatMap(([change, was]) => {
      const list = entries.filter((e) => on(e, a) === was && on(e, b) !== was);
      return list.length ? [smallTable(["what happens", "ends as", "kind", "file"], list.map((e) => [e.title, e.verdicts.join(" "), e.serious ? `${e.kind}, serious` : e.kind, e.id]), words(list.length, change))] : [];
    });
  }

  return { of, line, inMap, render, between, counted };
})();
