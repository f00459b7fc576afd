// The record, in columns. Every text is data: it reaches the page through textContent only.
const Data = (() => {
  const raw = JSON.parse(document.getElementById("data").textContent);
  const { columns, dictionaries: dict, targets } = raw;
  const rows = columns.case.length;
  // A column that the first view does not need is read when it is first asked for.
  for (const script of document.querySelectorAll("script[data-column]")) {
    const name = script.dataset.column;
    Object.defineProperty(columns, name, { configurable: true, get() { const value = JSON.parse(script.textContent); Object.defineProperty(columns, name, { value }); return value; } });
  }
  const outcomes = raw.outcomes.map(([word, mark, kind, says]) => ({ word, mark, kind, says }));
  const defaults = new Map(raw.keys.map((k) => [k.key, k.default]));
  const follows = new Map(raw.keys.filter((k) => k.follows).map((k) => [k.key, k.follows]));
  const when = new Map(raw.keys.filter((k) => k.when).map((k) => [k.key, k.when]));
  const parts = new Map(Object.entries(raw.parts));

  // What a name says, read when it is first asked for.
  const read = [];
  function said(c) {
    if (!read[c]) {
      const map = read[c] = new Map();
      for (const token of dict.case[c].split(" ")) {
        const at = token.indexOf("=");
        if (at > 0 && at < token.length - 1) map.set(token.slice(0, at), token.slice(at + 1));
      }
    }
    return read[c];
  }

  function valueOf(c, key) {
    if (parts.has(key)) {
      const [whole, place] = parts.get(key), numbers = valueOf(c, whole).split(/[/:]/);
      return numbers[Math.min(place, numbers.length - 1)];
    }
    const own = said(c).get(key);
    if (own !== undefined) return own;
    if (!defaults.has(key)) return null;
    for (const [other, start, value] of when.get(key) ?? []) {
      const has = valueOf(c, other);
      if (has === start || (start.endsWith("*") && has.startsWith(start.slice(0, -1)))) return value;
    }
    const other = follows.get(key);
    if (!other) return defaults.get(key);
    const value = valueOf(c, other), pieces = value.split("_");
    return other === "layout" ? pieces[key === "q" ? 0 : pieces.length - 1] : value;
  }

  // Keys of a row; everything else is a key of its case.
  const ofRow = {
    cudnn: (r) => targets[columns.target[r]].cudnn, build: (r) => targets[columns.target[r]].build, device: (r) => targets[columns.target[r]].device,
    sm: (r) => targets[columns.target[r]].sm, backend: (r) => dict.backend[columns.backend[r]], grade: (r) => dict.grade[columns.grade[r]],
    verdict: (r) => dict.verdict[columns.verdict[r]], engine: (r) => dict.engine[columns.engine[r]] ?? valueOf(columns.case[r], "engine"), case: (r) => dict.case[columns.case[r]],
    class: (r) => dict.reason[columns.reason[r]].class ?? null, reason: (r) => dict.reason[columns.reason[r]].text ?? null,
    outcome: (r) => outcomes[columns.outcome[r]].word, supported: (r) => columns.supported[r], known: (r) => (known.has(r) ? raw.details[r]?.expectation?.link ?? "yes" : ""),
    reason_class: (r) => dict.reason[columns.reason[r]].class ?? "", reason_status: (r) => dict.reason[columns.reason[r]].status ?? "",
    run: (r) => dict.run[columns.run[r]], group: (r) => dict.group[columns.group[r]], asked: (r) => Trust.run(r).started, tolerance: (r) => Trust.run(r).tolerance, suite_hash: (r) => Trust.run(r).suite, worst: (r) => columns.worst.items[columns.worst.codes[r]],
    ...Object.fromEntries(["config", "ratio", "workspace_bytes", "plan_ms", "exec_us", "decide_us", "attempt"].map((name) => [name, (r) => columns[name][r]])),
  };
  const known = new Set(raw.known);
  const codeOf = { outcome: "outcome", reason: "reason", cudnn: "target", build: "target", device: "target", sm: "target", backend: "backend", grade: "grade", verdict: "verdict", class: "reason", case: "case", reason_class: "reason", reason_status: "reason", run: "run", asked: "run", tolerance: "run", suite_hash: "run", group: "group" };

  // A column of small codes for a key, so that a comparison is made once for each distinct value.
  const cached = new Map();
  function column(key) {
    if (cached.has(key)) return cached.get(key);
    let result;
    if (ofRow[key] && !codeOf[key]) {
      const values = [], place = new Map(), codes = new Uint32Array(rows), asText = key === "engine" || key === "supported";
      for (let r = 0; r < rows; r++) {
        const value = asText ? String(ofRow[key](r)) : ofRow[key](r);
        if (!place.has(value)) { place.set(value, values.length); values.push(value); }
        codes[r] = place.get(value);
      }
      result = { values, code: (r) => codes[r] };
    } else if (codeOf[key]) {
      const codes = columns[codeOf[key]], values = [];
      for (let r = 0; r < rows; r++) if (!(codes[r] in values)) values[codes[r]] = ofRow[key](r);
      result = { values, code: (r) => codes[r] };
    } else {
      const values = [], place = new Map(), codes = new Uint32Array(dict.case.length);
      for (let c = 0; c < dict.case.length; c++) {
        const value = valueOf(c, key);
        if (!place.has(value)) { place.set(value, values.length); values.push(value); }
        codes[c] = place.get(value);
      }
      result = { values, code: (r) => codes[columns.case[r]], cases: codes };
    }
    cached.set(key, result);
    return result;
  }

  // tree -> test(i). With `perCase`, i is a case instead of a row.
  function compile(tree, perCase = false) {
    if (tree.op === "and") { const t = tree.terms.map((x) => compile(x, perCase)); return (i) => t.every((f) => f(i)); }
    if (tree.op === "or") { const t = tree.terms.map((x) => compile(x, perCase)); return (i) => t.some((f) => f(i)); }
    if (tree.op === "not") { const t = compile(tree.term, perCase); return (i) => !t(i); }
    const { values, code, cases } = column(tree.key);
    if (tree.other) {
      const right = column(tree.value);
      return perCase ? (c) => Predicate.compare(tree, values[cases[c]], right.values[right.cases[c]]) : (r) => Predicate.compare(tree, values[code(r)], right.values[right.code(r)]);
    }
    const truth = Uint8Array.from(values, (v) => (Predicate.compare(tree, v ?? null) ? 1 : 0));
    return perCase ? (c) => truth[cases[c]] === 1 : (r) => truth[code(r)] === 1;
  }

  // Columns of the CSV that are no key of the case language may be asked for as well.
  const BOOLEAN = { 0: "false", 1: "true" };   // as results.csv has it
  function parse(text) {
    const tree = Predicate.parse(text, [...new Set([...raw.query_keys, ...Object.keys(ofRow)])], numbers);
    for (const leaf of Predicate.leaves(tree)) if (leaf.key === "supported") leaf.value = Array.isArray(leaf.value) ? leaf.value.map((v) => BOOLEAN[v] ?? v) : BOOLEAN[leaf.value] ?? leaf.value;
    return tree;
  }
  const numbers = new Set([...raw.numbers, "ratio", "workspace_bytes", "plan_ms", "exec_us", "decide_us", "attempt"]);

  // Words without an operator: rows that have each of them in their case, their reason, its rule, remedy or chain, the link of what was expected, what a
  // failure got, or the rule of another project that disagrees.
  const isText = (text) => !/[=<>~&|!()]/.test(text);
  function search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const ofTexts = (texts) => texts.map((one) => { const all = one.toLowerCase(); return words.map((w) => all.includes(w)); });
    const cases = ofTexts(dict.case), reasons = ofTexts(dict.reason.map((one) => JSON.stringify(Object.values(one))));
    const fails = outcomes.map((o) => o.kind === "failure" || o.kind === "error"), claimed = words.map((w) => Trust.disagreeing(w));
    const detailed = (r, w) => { const d = raw.details[r]; return !!d && JSON.stringify([d.expectation, fails[columns.outcome[r]] ? d.errors : null]).toLowerCase().includes(w); };
    return (r) => words.every((w, i) => cases[columns.case[r]][i] || reasons[columns.reason[r]][i] || outcomes[columns.outcome[r]].word === w || detailed(r, w) || claimed[i](r));
  }

  const features = raw.features.map(([axis, label, where, why, heat, alone, packed], id) => ({ id, axis, label, where, why, heat, alone, packed, group: where === "" }));
  // Which cases are in a feature, found when it is first asked for. Groups of the suite belong to rows.
  const inside = [];
  function members(f) {
    if (inside[f]) return inside[f];
    const out = inside[f] = new Uint8Array(dict.case.length), { packed, where } = features[f];
    if (!packed) {
      const test = compile(parse(where), true);
      for (let c = 0; c < out.length; c++) out[c] = test(c) ? 1 : 0;
      return out;
    }
    const bits = atob(packed);
    for (let c = 0; c < out.length; c += 8) for (let byte = bits.charCodeAt(c >> 3), i = c; byte; byte >>= 1, i++) out[i] = byte & 1;
    return out;
  }
  const groupFeature = dict.group.map((name) => features.findIndex((f) => f.group && f.label === name));
  const backward = Uint8Array.from(dict.case, (name) => (name.startsWith("pass=bwd ") || / pass=bwd( |$)/.test(name) || name === "pass=bwd" ? 1 : 0));

  const devices = [...new Set(targets.map((t) => t.device))], shown = new Map(targets.map((t) => [t.device, t.shown]));
  const shownDevice = (device) => shown.get(device) ?? device;
  const targetsOf = (keep) => new Map(devices.map((d) => [d, targets.map((t, i) => (t.device === d && keep(t) ? i : -1)).filter((i) => i >= 0)]));
  // A gate's page shows the two builds that it compared, until the reader asks for the others.
  const gate = document.body.classList.contains("kind-gate") && raw.steps.length ? raw.steps[0] : null, gated = (t) => t.build === gate.a || t.build === gate.b;
  const others = gate ? [...new Set(targets.filter((t) => !gated(t)).map((t) => t.spec))] : [];
  const whole = targetsOf(() => true), two = others.length ? targetsOf(gated) : whole;
  const isPart = () => others.length > 0 && !State.get().all;
  const ofDevice = { get: (device) => (isPart() ? two : whole).get(device) };
  let part = null;
  const inView = () => (isPart() ? part ??= every.filter((r) => gated(targets[columns.target[r]])) : every);
  const inFeature = (r, f) => (features[f].group ? groupFeature[columns.group[r]] === f : members(f)[columns.case[r]] === 1);

  // Of the rows the one that a case ends with on a target: with engine=all the worst of its configurations. At case * targets + target; -1: none.
  function worstOf(list) {
    const out = new Int32Array(dict.case.length * targets.length).fill(-1);
    for (const r of list) {
      const place = columns.case[r] * targets.length + columns.target[r];
      if (out[place] < 0 || columns.outcome[r] < columns.outcome[out[place]]) out[place] = r;
    }
    return out;
  }
  const upTo = (n) => { const out = new Int32Array(n); for (let i = 0; i < n; i++) out[i] = i; return out; };
  const every = upTo(rows);
  let worst = null;
  const rowOf = (c, t) => { worst ??= worstOf(every); return worst[c * targets.length + t]; };
  const name = (r) => dict.case[columns.case[r]];
  const target = (r) => targets[columns.target[r]];
  const outcome = (r) => outcomes[columns.outcome[r]];
  const caseKeys = raw.keys.map((k) => k.key);

  return { raw, rows, every, columns, dict, targets, outcomes, features, members, groupFeature, backward, devices, shownDevice, ofDevice, allOf: whole, gate, others, isPart, inView, said, valueOf, column, compile, parse, isText, search,
    inFeature, worstOf, rowOf, name, target, outcome, caseKeys, ofRow };
})();
