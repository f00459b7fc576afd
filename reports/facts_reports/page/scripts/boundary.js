// What separates one outcome from the others in the rows at hand: the shortest conjunction of comparisons that is true for exactly these.
const Boundary = (() => {
  const MOST_ROWS = 20000, LEAVES = 28, VALUES = 4;
  const numeric = (v) => v !== null && /^\d+(\.\d+)?$/.test(String(v));
  const safe = (v) => v !== null && v !== "" && !/[\s()&|!=<>~,]/.test(String(v));

  function leavesOf(key, yes, no) {
    const { values, code } = Data.column(key), inYes = new Set(), inNo = new Set(), out = [];
    for (const r of yes) inYes.add(code(r));
    for (const r of no) inNo.add(code(r));
    if (new Set([...inYes, ...inNo]).size < 2) return out;
    const add = (text, keep, cost) => { const left = no.filter((r) => keep(code(r))); if (left.length < no.length) out.push({ key, text, keep, cost, left, code }); };
    const yesValues = [...inYes].map((c) => values[c]), order = key === "cudnn" ? Predicate.compareVersions : (a, b) => a - b;
    if (yesValues.every(safe) && inYes.size <= VALUES) {
      const sorted = yesValues.map(String).sort(key === "cudnn" || yesValues.every(numeric) ? order : undefined);
      add(inYes.size === 1 ? `${key}=${sorted[0]}` : `${key} in (${sorted.join(", ")})`, (c) => inYes.has(c), inYes.size === 1 ? 1 : 1 + inYes.size / 2);
    }
    const only = [...inNo].filter((c) => !inYes.has(c));
    if (only.length === 1 && safe(values[only[0]])) add(`${key}!=${values[only[0]]}`, (c) => c !== only[0], 1.8);
    if (key === "cudnn" || values.every(numeric)) {
      const all = [...new Set([...inYes, ...inNo].map((c) => values[c]))].sort(order), sorted = [...yesValues].sort(order);
      const least = sorted[0], most = sorted[sorted.length - 1];
      if (order(all[0], least) < 0) add(`${key}>=${least}`, (c) => order(values[c], least) >= 0, 1.5);
      if (order(most, all[all.length - 1]) < 0) add(`${key}<=${most}`, (c) => order(values[c], most) <= 0, 1.5);
    }
    if (/^[sd]\./.test(key) && values.every(numeric)) {
      for (const n of [128, 64, 16, 8, 4]) {
        if (yesValues.every((v) => v % n !== 0)) add(`${key}%${n}!=0`, (c) => values[c] % n !== 0, 1.45);
        const residues = new Set(yesValues.map((v) => v % n));
        if (residues.size === 1 && yesValues.length > 1) { const [m] = residues; add(`${key}%${n}=${m}`, (c) => values[c] % n === m, 1.4); }
      }
    }
    return out;
  }

  function search(yes, no, keys) {
    const leaves = keys.flatMap((k) => leavesOf(k, yes, no)).sort((a, b) => a.left.length - b.left.length || a.cost - b.cost).slice(0, LEAVES);
    let best = null;
    const offer = (list) => { const cost = list.reduce((n, l) => n + l.cost, 0); if (!best || cost < best.cost) best = { cost, text: [...list].sort((a, b) => keys.indexOf(a.key) - keys.indexOf(b.key)).map((l) => l.text).join(" & ") }; };
    const rest = (left, leaf) => left.filter((r) => leaf.keep(leaf.code(r)));
    for (const leaf of leaves) if (!leaf.left.length) offer([leaf]);
    if (best) return best.text;
    for (let i = 0; i < leaves.length; i++) for (let j = i + 1; j < leaves.length; j++) if (!rest(leaves[i].left, leaves[j]).length) offer([leaves[i], leaves[j]]);
    if (best || no.length > MOST_ROWS / 4) return best && best.text;
    for (let i = 0; i < leaves.length; i++) {
      for (let j = i + 1; j < leaves.length; j++) {
        const left = rest(leaves[i].left, leaves[j]);
        for (let k = j + 1; k < leaves.length; k++) if (!rest(left, leaves[k]).length) offer([leaves[i], leaves[j], leaves[k]]);
      }
    }
    return best && best.text;
  }

  // [{outcome, why, rows, text|null}] for each outcome but the mildest, a refusal for each of its reasons; [] when there is nothing to separate.
  function of(rows) {
    // Refusals have as many boundaries as reasons.
    const byOutcome = new Map(), byReason = new Map();
    for (const r of rows) {
      const o = Data.columns.outcome[r], why = Data.outcomes[o].kind === "refused" ? Data.dict.reason[Data.columns.reason[r]].text ?? "" : "";
      byOutcome.set(o, true);
      const name = `${String(o).padStart(3)} ${why}`;
      if (!byReason.has(name)) byReason.set(name, { o, why, yes: [] });
      byReason.get(name).yes.push(r);
    }
    if (byOutcome.size < 2 || rows.length > MOST_ROWS) return [];
    const mildest = Math.max(...byOutcome.keys());
    const wholes = new Set(["h", "s", "d", "seed", "fill_seed"]);
    const keys = [...Data.caseKeys.filter((k) => !wholes.has(k) && k !== "engine"), ...Object.keys(Data.raw.parts), "cudnn", "device"];
    return [...byReason.values()].filter(({ o }) => o !== mildest).sort((a, b) => a.o - b.o || b.yes.length - a.yes.length).slice(0, 6).map(({ o, why, yes }) => {
      const others = rows.filter((r) => Data.columns.outcome[r] !== o);
      return { outcome: Data.outcomes[o], why, rows: yes.length, text: search(yes, others, keys) };
    });
  }

  return { of };
})();
