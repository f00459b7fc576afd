// Features down, devices across, versions in ranges (or a column each). A cell is a query: clicking it shows its rows.
const Matrix = (() => {
  const { targets, features, columns, outcomes, devices, ofDevice } = Data;
  const T = targets.length, O = outcomes.length, BOTH = 2;
  const grades = Data.dict.grade;
  const axes = [...new Set(features.filter((f) => !f.alone).map((f) => f.axis))];

  // Rows join neighbours only when every case ended alike: a sum over (case, outcome), never totals.
  const mix = (x) => { x = Math.imul(x ^ (x >>> 16), 0x45d9f3b); x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d); return (x ^ (x >>> 13)) >>> 0; };

  // Counts of each feature of the unfolded axes.
  function tally(rows, open) {
    const cells = features.length * T * BOTH;
    const counts = new Uint32Array(cells * O), low = new Uint32Array(cells), high = new Uint32Array(cells), seen = new Uint8Array(cells);
    const wanted = features.filter((f) => open.has(f.axis) && !f.alone), tests = wanted.filter((f) => !f.group).map((f) => [f.id, Data.members(f.id)]), grouped = wanted.some((f) => f.group);
    const add = (f, r, t, p, o, a, b) => {
      const at = (f * T + t) * BOTH + p;
      counts[at * O + o]++;
      low[at] += a;
      high[at] += b;
      seen[at] |= 1 << columns.grade[r];
    };
    for (const r of Data.worstOf(rows)) {
      if (r < 0) continue;
      const c = columns.case[r], t = columns.target[r], o = columns.outcome[r], p = Data.backward[c];
      const a = mix(c * 67 + o * 7919), b = mix(a ^ (c + 0x9e3779b9));
      for (const [f, holds] of tests) if (holds[c]) add(f, r, t, p, o, a, b);
      if (grouped && Data.groupFeature[columns.group[r]] >= 0) add(Data.groupFeature[columns.group[r]], r, t, p, o, a, b);
    }
    return { counts, low, high, seen };
  }

  function cell(sums, f, t, passes) {
    const counts = new Array(O).fill(0);
    let a = 0, b = 0, seen = 0, total = 0;
    for (const p of passes) {
      const at = (f * T + t) * BOTH + p;
      for (let o = 0; o < O; o++) { counts[o] += sums.counts[at * O + o]; total += sums.counts[at * O + o]; }
      a = (a + sums.low[at]) >>> 0;
      b = (b + sums.high[at]) >>> 0;
      seen |= sums.seen[at];
    }
    return { counts, total, grade: grades.filter((_, i) => seen & (1 << i)).map((g) => g ?? "no grade").join(" + "), signature: `${a}.${b}.${seen}.${total}` };
  }

  function when(list, first, last) {
    const label = (i) => targets[list[i]].label;
    if (first === 0 && last === list.length - 1) return list.length === 1 ? label(0) : list.length === 2 ? "both builds" : `all ${list.length} builds`;
    if (first === last && last < list.length - 1) return label(first);
    return last === list.length - 1 ? `since ${label(first)}` : `${label(first)} – ${label(last)}`;
  }

  function segments(sums, f, list, passes) {
    const out = [];
    list.forEach((t, i) => {
      const one = cell(sums, f, t, passes), previous = out[out.length - 1];
      if (previous && previous.signature === one.signature) previous.last = i;
      else out.push({ ...one, first: i, last: i });
    });
    return out;
  }

  const passName = ["fwd", "bwd"];
  // A cell by name: what the address keeps.
  function reference(f, list, segment, passes) {
    const { axis, label } = features[f], device = targets[list[0]].device;
    const pass = passes.length === 1 ? passName[passes[0]] : "";
    return [`${axis}: ${label}`, device, targets[list[segment.first]].build, targets[list[segment.last]].build, pass].map(encodeURIComponent).join("|");
  }

  // The rows that a cell's reference names, as {feature, targets, passes, words} or null.
  function resolve(text) {
    let pieces;
    try { pieces = text.split("|").map(decodeURIComponent); } catch { return null; }
    const [title, device, from, to, pass] = pieces, feature = features.find((x) => `${x.axis}: ${x.label}` === title);
    const list = ofDevice.get(device);
    if (!feature || !list) return null;
    const first = list.findIndex((t) => targets[t].build === from), last = list.findIndex((t) => targets[t].build === to);
    if (first < 0 || last < first) return null;
    const passes = pass === "fwd" ? [0] : pass === "bwd" ? [1] : [0, 1];
    const words = `${title}, ${Data.shownDevice(device)}, ${when(list, first, last)}${pass ? `, ${pass === "fwd" ? "forward" : "backward"}` : ""}`;
    return { feature: feature.id, targets: new Set(list.slice(first, last + 1)), passes, words };
  }

  function tallies(counts) {
    const list = element("span", { class: "tallies" });
    outcomes.forEach((o, i) => {
      if (counts[i]) list.append(element("span", { class: `tally ${o.kind}` }, mark(o), ` ${count(counts[i])} ${o.word}`));
    });
    return list;
  }

  let filtered = false;   // a query or a level hides rows: an empty cell then says so

  function button(f, list, segment, passes, words, selected) {
    if (!segment.total) return element("div", { class: "segment empty" }, element("span", { class: "when" }, words), element("span", {}, filtered ? "filtered away" : "no row"));
    const ref = reference(f, list, segment, passes);
    const worst = outcomes[segment.counts.findIndex((n) => n > 0)].kind;
    return element("button", { type: "button", class: `segment ${worst}`, "data-cell": ref, "aria-pressed": String(ref === selected) },
      element("span", { class: "when" }, words, element("span", { class: "grade" }, segment.grade)), tallies(segment.counts));
  }

  function head(state, shown) {
    const passes = state.split ? [[0], [1]] : [[0, 1]], top = element("tr"), out = element("thead", {}, top);
    const deep = state.split || state.view === "columns";
    top.append(element("th", { scope: "col", rowspan: deep ? 2 : null, class: "corner" }, "Feature"));
    const second = element("tr");
    for (const device of shown) {
      const list = ofDevice.get(device), span = (state.view === "columns" ? list.length : 1) * passes.length, sm = targets[list[0]].sm;
      top.append(element("th", { scope: "colgroup", colspan: span }, Data.shownDevice(device), sm === null ? "" : element("span", { class: "sub" }, ` sm_${sm}`)));
      for (const p of passes) {
        const name = p.length === 2 ? "" : p[0] ? "backward" : "forward";
        if (state.view === "columns") for (const t of list) second.append(element("th", { scope: "col" }, targets[t].label, name ? element("span", { class: "sub" }, ` ${name.slice(0, 3)}.`) : ""));
        else second.append(element("th", { scope: "col" }, name));
      }
    }
    if (deep) out.append(second);
    return out;
  }

  function line(feature, sums, state, shown) {
    const tr = element("tr"), th = element("th", { scope: "row" }, feature.label);
    if (feature.why) th.append(element("span", { class: "why" }, feature.why));
    else th.append(element("code", { class: "where" }, feature.where));
    tr.append(th);
    let total = 0;
    for (const device of shown) {
      const list = ofDevice.get(device);
      for (const passes of state.split ? [[0], [1]] : [[0, 1]]) {
        if (state.view === "columns") {
          list.forEach((t, i) => {
            const one = { ...cell(sums, feature.id, t, passes), first: i, last: i };
            total += one.total;
            tr.append(element("td", {}, one.total ? button(feature.id, list, one, passes, "", state.cell) : element("span", { class: "none" }, filtered ? "filtered away" : "no row")));
          });
          continue;
        }
        const td = element("td", { "data-device": device }), parts = segments(sums, feature.id, list, passes);
        const any = parts.some((s) => s.total);
        if (any) for (const s of parts) { td.append(button(feature.id, list, s, passes, when(list, s.first, s.last), state.cell)); total += s.total; }
        else td.append(element("span", { class: "none" }, filtered ? "filtered away" : "no row"));
        tr.append(td);
      }
    }
    return total ? tr : null;
  }

  // The head of an axis: a button that folds its features.
  function fold(axis, list, open, width) {
    return element("tr", { class: "axis" }, element("th", { scope: "rowgroup", colspan: width }, element("button", { type: "button", class: "fold", "data-axis": axis, "aria-expanded": String(open) }, axis),
      element("span", { class: "sub" }, ` ${list.length} ${list.length === 1 ? "feature" : "features"}`)));
  }

  function render(table, rows, state) {
    const open = new Set(state.axes), sums = open.size ? tally(rows, open) : null, shown = state.device ? [state.device] : devices;
    filtered = rows.length < Data.inView().length;
    table.className = `matrix ${state.view}`;
    table.replaceChildren(element("caption", { class: "hidden" }, "Outcomes by feature, device and cuDNN version"), head(state, shown));
    const width = 1 + [...table.tHead.rows[0].cells].slice(1).reduce((n, c) => n + c.colSpan, 0);
    let hidden = 0;
    for (const axis of axes) {
      const list = features.filter((f) => f.axis === axis && !f.alone), body = element("tbody", {}, fold(axis, list, open.has(axis), width));
      for (const feature of open.has(axis) ? list : []) {
        const tr = line(feature, sums, state, shown);
        if (tr) body.append(tr); else hidden++;
      }
      table.append(body);
    }
    return hidden;
  }

  return { render, resolve, when, tallies, reference, axes };
})();
