// The first picture: features down, versions across, for one device. Each cell is a button; under the pointer or the focus it shows its counts in words.
const Heat = (() => {
  const { targets, features, columns, outcomes, devices, ofDevice } = Data;
  const STATES = {
    fails: ["✗", "at least one case fails"], known: ["x", "every failure is known"], open: ["?", "no answer to some case"], mixed: ["◐", "some cases accepted, some refused"], refused: ["–", "every case refused"],
    supported: ["○", "every case accepted, not run"], pass: ["✓", "every case ran right"], none: ["·", "not asked"], away: ["▽", "the filter hides every case"],
  };
  const rowsOf = features.filter((f) => f.heat).sort((a, b) => a.heat - b.heat);
  // A case that FACTS itself refused says nothing of cuDNN.
  const ours = Data.dict.reason.map((reason) => reason.ours === true), refused = outcomes.map((o) => o.kind === "refused");
  const guarded = (r) => refused[columns.outcome[r]] && ours[columns.reason[r]];
  const known = new Set(Data.raw.known);
  const kinds = outcomes.map((o) => (o.word === "pass" ? "pass" : o.kind === "error" ? "failure" : o.kind));
  const NONE = 255, GUARDED = 254;

  // Builds of one version share a column unless a case ends otherwise in one of them.
  const ends = (c, t) => { const r = Data.rowOf(c, t), kind = r < 0 || guarded(r) ? "open" : outcomes[columns.outcome[r]].kind; return kind === "open" ? null : kind; };
  function beside(one, other) {
    let shared = 0, differ = 0;
    for (let c = 0; c < Data.dict.case.length; c++) {
      const a = ends(c, one), b = ends(c, other);
      if (a && b) shared++;
      if (a && b && a !== b) differ++;
    }
    return { shared, differ };
  }

  const made = new Map();
  function columnsOf(device) {
    const key = `${Data.isPart()} ${device}`;
    if (!made.has(key)) {
      const list = ofDevice.get(device), out = [], notes = [];
      for (const version of [...new Set(list.map((t) => targets[t].cudnn))]) {
        const same = list.filter((t) => targets[t].cudnn === version), pairs = same.slice(1).map((t) => beside(same[0], t)), apart = pairs.reduce((n, p) => n + p.differ, 0);
        const flavour = (t) => targets[t].build.replace(`${version}-`, "");
        const said = apart ? `differ in ${count(apart)} ${apart === 1 ? "case" : "cases"}` : pairs.every((p) => p.shared) ? "give the same answers" : "were asked different cases";
        if (pairs.length) notes.push(`${version}: ${same.map(flavour).join(" and ")} ${said}.`);
        if (apart) for (const t of same) out.push({ label: targets[t].build, list: [t] });
        else out.push({ label: version === "none" || targets[same[0]].build === "none" ? "no cuDNN" : version, list: same });
      }
      made.set(key, { columns: out, notes });
    }
    return made.get(key);
  }

  // A run's map opens with a device that has findings, a gate's with one that it compared. Of several: the one that was asked the most versions, then where the newest change broke most, then where it changed most.
  const BROKEN = ["worse", "changed kind", "lost", "begins", "missing"], MOVED = [...BROKEN, "better", "gained"];
  const newest = Data.raw.steps.find((s) => s.groups.some((g) => MOVED.includes(g.class))) ?? { groups: [] };
  const moved = (device, classes) => newest.groups.reduce((n, g) => n + (classes.includes(g.class) ? g.counts[device] ?? 0 : 0), 0);
  const found = new Set();
  if (document.body.classList.contains("kind-run")) for (const r of Data.every) if (kinds[columns.outcome[r]] === "failure" && !known.has(r)) found.add(Data.target(r).device);
  const rank = (d) => [Number(found.has(d) || Data.gate?.devices.includes(d)), new Set(ofDevice.get(d).map((t) => targets[t].cudnn)).size, moved(d, BROKEN), moved(d, MOVED)];
  const ranks = new Map(devices.map((d) => [d, rank(d)]));
  const chief = [...devices].sort((a, b) => { const i = ranks.get(a).findIndex((n, k) => n !== ranks.get(b)[k]); return i < 0 ? 0 : ranks.get(b)[i] - ranks.get(a)[i]; })[0];
  const deviceOf = (state) => state.device || chief;

  // How each case ends in each column, at case * columns + column. The loops over many rows or cases are functions of their own: a browser compiles a short one sooner.
  function ended(rows, across) {
    const place = new Int16Array(targets.length).fill(-1), out = new Uint8Array(Data.dict.case.length * across.length).fill(NONE), news = new Uint8Array(out.length);
    across.forEach((column, i) => { for (const t of column.list) place[t] = i; });
    for (let n = 0; n < rows.length; n++) {
      const r = rows[n], i = place[columns.target[r]];
      if (i < 0) continue;
      const where = columns.case[r] * across.length + i;
      const o = guarded(r) ? GUARDED : columns.outcome[r];
      if (o < out[where]) out[where] = o;
      if (o !== GUARDED && kinds[o] === "failure" && !known.has(r)) news[where] = 1;
    }
    return { out, news, width: across.length };
  }

  // Gives each case the number of its way so far, one column further.
  function further(way, many, { out, news, width }, i) {
    const codes = 2 * (outcomes.length + 2), next = new Int32Array(many * codes).fill(-1);
    many = 0;
    for (let c = 0, from = i; c < way.length; c++, from += width) {
      const o = out[from], key = way[c] * codes + 2 * (o < GUARDED ? o + 2 : o - GUARDED) + news[from];
      if (next[key] < 0) next[key] = many++;
      way[c] = next[key];
    }
    return many;
  }

  // Cases that end alike in all columns share a way: {way: of each case, ways: [{cells, news}]}.
  function together(ends) {
    const { out, news, width } = ends, way = new Uint32Array(Data.dict.case.length);
    let many = 1;
    for (let i = 0; i < width; i++) many = further(way, many, ends, i);
    const ways = new Array(many);
    for (let c = 0; c < way.length; c++) ways[way[c]] ??= { cells: out.subarray(c * width, (c + 1) * width), news: news.subarray(c * width, (c + 1) * width) };
    return { way, ways };
  }

  // How many cases of a feature go each way.
  function counts(holds, way, many) {
    const out = new Uint32Array(many);
    for (let c = 0; c < way.length; c++) out[way[c]] += holds[c];
    return out;
  }

  // What the comparison with the version before marks in each column: the cases of each class and of each mark; and which version that is.
  const marksOf = (device, across) => across.map((column) => {
    const step = Data.raw.steps.find((s) => column.list.some((t) => targets[t].build === s.b) && s.devices.includes(device));
    return { before: step ? Compare.label(step.a) : "", marks: Object.entries(step?.marks[device] ?? {}) };
  });

  // {counts, total, accepted, state, moves: cases that changed since the version `before`, by class} of one row, for each column.
  function line(holds, { way, ways }, marked) {
    const width = marked.length, out = marked.map(({ before }) => ({ before, counts: new Uint32Array(outcomes.length), total: 0, accepted: 0, failed: 0, guarded: 0, news: 0, lost: 0, gained: 0, edge: 0, moves: {} }));
    const many = counts(holds, way, ways.length);
    marked.forEach(({ marks }, i) => {
      for (const [word, cases] of marks) out[i].moves[word] = cases.reduce((sum, c) => sum + (holds[c] && ways[way[c]].cells[i] !== NONE), 0);
      for (const mark of ["lost", "gained", "edge"]) out[i][mark] = out[i].moves[`${mark} mark`] ?? 0;
    });
    ways.forEach(({ cells, news }, at_) => {
      const n = many[at_];
      for (let i = 0; n && i < width; i++) {
        const o = cells[i];
        if (o === NONE) continue;
        const one = out[i];
        if (o === GUARDED) { one.guarded += n; continue; }
        one.counts[o] += n;
        one.total += n;
        one.news += n * news[i];
        if (outcomes[o].kind === "good") one.accepted += n;
        if (kinds[o] === "failure") one.failed += n;
      }
    });
    for (const one of out) one.state = stateOf(one);
    return out;
  }

  function stateOf({ counts, news }) {
    const said = new Set(kinds.filter((_, o) => counts[o]));
    if (!said.size) return "none";
    if (said.has("failure")) return news ? "fails" : "known";
    if (said.has("good") || said.has("pass")) return said.has("refused") ? "mixed" : said.has("open") ? "open" : said.has("good") ? "supported" : "pass";
    return said.has("open") ? "open" : "refused";
  }

  const counted = (one) => outcomes.flatMap((o, i) => (one.counts[i] ? [`${count(one.counts[i])} ${o.word}`] : [])).join(", ");
  const words = (one) => (one.total ? counted(one) : one.state === "away" ? "filtered away" : "not asked") + (one.guarded ? `, ${count(one.guarded)} refused by FACTS itself` : "");
  // For each feature: which columns have a row of it without a query.
  const asked = new WeakMap();
  function rowsWithout(across) {
    if (!asked.has(across)) {
      const cells = together(ended(Data.every, across));
      asked.set(across, new Map(rowsOf.map((f) => [f.id, line(Data.members(f.id), cells, across.map(() => ({ before: "", marks: [] }))).map((one) => one.total > 0)])));
    }
    return asked.get(across);
  }

  const glyph = (one) => (one.state === "mixed" ? (one.accepted * 3 < one.total ? "◔" : one.accepted * 3 < one.total * 2 ? "◑" : "◕") : STATES[one.state][0]);

  function cellOf(feature, device, across, i, one, selected, wide, issues) {
    const list = ofDevice.get(device), part = { first: list.indexOf(across[i].list[0]), last: list.indexOf(across[i].list[across[i].list.length - 1]) };
    const moved = Object.keys(Data.raw.changes).filter((word) => one.moves[word]).map((word) => `${count(one.moves[word])} ${word}`);
    const serious = issues.filter((x) => x.serious).length, known = issues.length ? `; ${Issues.counted(issues.length)}${serious ? `, ${count(serious)} serious` : ""}: ${issues[0].text}` : "";
    const changed = moved.length ? `; since ${one.before} ${moved.join(", ")}` : "", said = `${feature.label}, ${across[i].label}: ${words(one)}${changed}${known}`;
    const ref = one.total + one.guarded ? Matrix.reference(feature.id, list, part, [0, 1]) : "";
    const button = element("button", { type: "button", class: `cell ${one.state}${one.lost ? " lost" : ""}${one.gained ? " gained" : ""}${one.edge && !one.lost && !one.gained ? " edge" : ""}${serious ? " issue" : ""}`, "data-cell": ref, "aria-label": said, "aria-pressed": String(ref !== "" && ref === selected) }, glyph(one),
      wide ? element("span", { class: "n" }, one.total ? `${count(one.accepted)}/${count(one.total)}` : "", one.lost ? element("b", { class: "less" }, ` −${count(one.lost)}`) : "", one.gained ? element("b", {}, ` +${count(one.gained)}`) : "") : null);
    if (one.state === "mixed" || one.state === "known") {
      const good = Math.min(100 * one.accepted / one.total, one.state === "known" ? 88 : 100);
      button.style.setProperty("--share", `${Math.round(good)}%`);
      button.style.setProperty("--bad", `${Math.round(good + Math.max(12, 100 * one.failed / one.total))}%`);
    }
    return element("td", {}, button);
  }

  // How many known issues speak of a feature, as the button that lists them.
  function issuesOf(feature, { all }, state) {
    const name = `${feature.axis}: ${feature.label}`, label = `${feature.label}: ${Issues.counted(all.length)}`;
    return element("td", { class: "issues" }, all.length ? element("button", { type: "button", class: "plain", "data-issues": name, "aria-expanded": String(state.issues === name), "aria-label": label }, count(all.length)) : null);
  }

  function head(across) {
    return element("thead", {}, element("tr", {}, element("td", { class: "axis" }), element("td"), ...across.map((c) => element("th", { scope: "col" }, element("span", {}, c.label))), element("th", { scope: "col", class: "issues" }, element("span", {}, "known issues"))));
  }

  function render(state, rows) {
    const device = deviceOf(state), { columns: across, notes } = columnsOf(device), cells = together(ended(rows, across)), marked = marksOf(device, across), whole = state.q.trim() ? rowsWithout(across) : null, table = at("heat"), wide = across.length <= 7;
    const focus = document.activeElement?.closest?.("#heat") ? document.activeElement.dataset.cell : "";
    table.className = `heat${wide ? " wide" : ""}${across.length <= 2 ? " few" : ""}`;
    table.replaceChildren(element("caption", { class: "hidden" }, `Support by feature and version on ${Data.shownDevice(device)}. Arrow keys move, Enter shows the rows.`), head(across));
    const issues = Issues.inMap(rows, across, rowsOf);
    let body = null, axis = null, first = null;
    const drawn = new Set();
    for (const feature of rowsOf) {
      const one = line(Data.members(feature.id), cells, marked);
      if (!one.some((x) => x.total + x.guarded)) continue;
      one.forEach((x, i) => { if (x.state === "none" && !x.guarded && whole?.get(feature.id)[i]) x.state = "away"; });
      for (const x of one) drawn.add(x.state).add(x.lost && "lost").add(x.gained && "gained").add(x.edge && !x.lost && !x.gained && "edge");
      const tr = element("tr");
      if (feature.axis !== axis) {
        axis = feature.axis;
        body = element("tbody");
        first = element("th", { scope: "rowgroup", class: "axis", rowspan: 1 }, axis);
        tr.append(first);
        table.append(body);
      } else first.rowSpan++;
      tr.append(element("th", { scope: "row", title: feature.where }, feature.label), ...one.map((x, i) => cellOf(feature, device, across, i, x, state.cell, wide, issues.get(feature.id).cells[i])), issuesOf(feature, issues.get(feature.id), state));
      body.append(tr);
    }
    for (const { cells } of issues.values()) if (cells.flat().some((x) => x.serious)) drawn.add("issue");
    Issues.render(state, device, issues);
    legend(drawn);
    Keys.settle(table, "button.cell");
    if (focus) [...table.querySelectorAll("button.cell")].find((b) => b.dataset.cell === focus)?.focus({ preventScroll: true });
    at("heat-notes").textContent = notes.join(" ");
    for (const b of document.querySelectorAll("#devices button")) b.setAttribute("aria-pressed", String(b.dataset.device === device));
    tell(null);
  }

  // Of the signs those that are in the map.
  const CALLED = { none: "not asked", away: "filtered away", open: "no answer", known: "known failure", edge: "changed", issue: "serious known issue" };
  const legend = (drawn) => at("heat-legend").replaceChildren(...Object.entries({ ...STATES, lost: [" ", "lost or worse since the version before: the gate says DO NOT MOVE"], gained: [" ", "gained or better"], edge: [" ", "changed otherwise"], issue: [" ", "a serious failure is known of some case"] })
    .filter(([word]) => drawn.has(word)).map(([word, [sign, says]]) => element("span", { title: says }, element("span", { class: `cell ${word}`, "aria-hidden": "true" }, sign), ` ${CALLED[word] ?? word}`)));

  // The line above the map: what the cell under the pointer or the focus counts.
  let rowsIn = () => [];
  function tell(button) {
    const dates = button?.dataset.cell ? Trust.spread(rowsIn(button.dataset.cell)) : "";
    at("heat-tip").textContent = button ? `${button.getAttribute("aria-label")}${dates ? `; ${dates}` : ""}` : at("heat-tip").dataset.rest;
  }

  // `rows`: those of a cell.
  function start(rows) {
    rowsIn = rows;
    const table = at("heat");
    at("devices").append(...devices.map((d) => element("button", { type: "button", "data-device": d, "aria-pressed": "false" }, Data.shownDevice(d))));
    at("devices").addEventListener("click", (event) => { const d = event.target.closest("button")?.dataset.device; if (d) State.set({ device: d }); });
    Keys.rove(at("devices"), "button");
    Keys.rove(table, "button.cell");
    for (const kind of ["focusin", "mouseover"]) table.addEventListener(kind, (event) => { const b = event.target.closest("button.cell"); if (b) tell(b); });
    for (const kind of ["focusout", "mouseleave"]) table.addEventListener(kind, () => tell(null));
  }

  return { start, render, deviceOf, columnsOf, stateOf, STATES };
})();
