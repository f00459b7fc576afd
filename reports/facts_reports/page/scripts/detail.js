// What is known of one row.
const Detail = (() => {
  const { columns, dict } = Data;

  // Accepted cases of the same target that differ in one key.
  function neighbours(r) {
    const mine = Data.said(columns.case[r]), keys = [...new Set([...mine.keys()])], out = [], seen = new Set();
    for (let i = 0; i < Data.rows && out.length < 6; i++) {
      if (columns.target[i] !== columns.target[r] || Data.outcome(i).kind !== "good" || seen.has(columns.case[i])) continue;
      const other = Data.said(columns.case[i]);
      if (Math.abs(other.size - mine.size) > 1) continue;
      let differs = 0, which = null;
      for (const k of keys) if (other.get(k) !== mine.get(k) && Data.valueOf(columns.case[i], k) !== Data.valueOf(columns.case[r], k)) { differs++; which = k; }
      for (const k of other.keys()) if (!mine.has(k) && Data.valueOf(columns.case[i], k) !== Data.valueOf(columns.case[r], k)) { differs++; which = k; }
      if (differs === 1) { seen.add(columns.case[i]); out.push({ r: i, words: `${which}=${Data.valueOf(columns.case[i], which)} instead of ${Data.valueOf(columns.case[r], which)}` }); }
    }
    return out;
  }

  function expectation(e) {
    if (typeof e !== "object") return element("p", { class: "known" }, "Known: ", linked(e));
    const p = element("p", { class: "known" }, e.met === false ? "Expected was something else:" : "As expected:");
    for (const [k, v] of Object.entries(e)) if (k !== "met") p.append(` ${k} `, linked(v), ";");
    return p;
  }

  // The answers of the engines, each once, with the engines that gave it.
  function answers(chain) {
    const lines = new Map();
    for (const { engine, status, text, condition } of chain) {
      const said = [status, text, condition], key = JSON.stringify(said), line = lines.get(key) ?? { engines: new Set(), said };
      if (engine !== null && engine !== undefined) line.engines.add(shown(engine));
      lines.set(key, line);
    }
    return [...lines.values()].map(({ engines, said }) => [[...engines].join(", "), ...said]);
  }

  function of(r) {
    const o = Data.outcome(r), t = Data.target(r), d = Data.raw.details[r] || {}, reason = dict.reason[columns.reason[r]], box = element("div", { class: "detail" });
    const grade = dict.grade[columns.grade[r]] ?? "no grade", backend = dict.backend[columns.backend[r]];
    box.append(element("p", { class: "lead" }, mark(o), element("strong", {}, ` ${o.word}`), `: ${o.says}. `, element("span", { class: "quiet" }, `Evidence: ${grade}${backend ? `, backend ${backend}` : ""}, build ${t.build}, ${Trust.words(r)}.`)));
    if (d.expectation) box.append(expectation(d.expectation));
    for (const one of Issues.of(r)) box.append(element("p", { class: "line" }, ...Issues.line(one).filter(Boolean)));
    box.append(...Timeline.of(r).filter(Boolean));
    if (reason.text || reason.status || reason.chain) {
      box.append(element("p", { class: "line" }, element("b", {}, "Why "), reason.class ? element("span", { class: "class" }, reason.class) : null, " ", reason.status ? element("code", {}, reason.status) : null, ` ${shown(reason.text)}`));
      if (reason.remedy) box.append(element("p", { class: "line" }, element("b", {}, "Remedy "), shown(reason.remedy)));
      if (reason.chain) box.append(smallTable(["engine", "status", "why", "condition"], answers(reason.chain), "What each engine said"));
    }
    for (const rule of Trust.otherwise(r)) box.append(element("p", { class: "line" }, element("b", {}, "Claimed otherwise "), `${rule.short} (${rule.id}${rule.word ? `, audit: ${rule.word}` : ""}): ${rule.says} `, linked(rule.link)));
    if (o.kind === "refused") {
      const near = neighbours(r);
      box.append(element("p", { class: "line" }, element("b", {}, "Nearest accepted "), near.length ? near.map((n) => n.words).join("; ") : "none in this record that differs in one key"));
    }
    if (d.errors) {
      box.append(smallTable(["tensor", "ratio", "gate", "rms", "worst at", "got", "want", "bound", "checked"],
        Object.entries(d.errors).map(([n, e]) => [n, e.ratio, e.gate, e.rms, Array.isArray(e.worst_index) ? e.worst_index.join(", ") : e.worst_index, e.got, e.want, e.bound, e.checked]),
        "Errors: ratio is the worst error as a part of its bound; above 1 is wrong"));
    } else if (columns.ratio[r] !== null) box.append(element("p", { class: "line" }, element("b", {}, "Worst error "), `${shown(columns.ratio[r])} of its bound (each tensor: results.json)`));
    if (d.pictures && typeof d.pictures === "object") box.append(...Object.entries(d.pictures).map(([tensor, text]) => Numbers.picture(tensor, text)));
    if (d.padded) box.append(smallTable(["tensor", "poison", "zero", "other"], Object.entries(d.padded).filter(([, v]) => v && typeof v === "object").map(([n, v]) => [n, v.poison, v.zero, v.other]), "What padded rows hold"));
    const engines = dict.engines[columns.engines[r]].filter((e) => e && typeof e === "object");
    if (engines.length) {
      const knobs = (k) => (k && typeof k === "object" && !Array.isArray(k) ? Object.entries(k).map(([n, v]) => `${n}=${shown(v)}`).join(" ") : shown(k));
      box.append(smallTable(["mode", "place", "engine", "knobs", "notes", "workspace"], engines.map((e) => [e.mode, e.config, e.index, knobs(e.knobs), Array.isArray(e.notes) ? e.notes.join(", ") : e.notes, e.workspace_bytes]), "Engines offered, in order"));
    }
    const times = [["decide", columns.decide_us[r], "µs"], ["plan", columns.plan_ms[r], "ms"], ["execute", columns.exec_us[r], "µs"], ["workspace", columns.workspace_bytes[r], "bytes"]].filter((x) => x[1] !== null);
    if (times.length) box.append(element("p", { class: "line" }, element("b", {}, "Cost "), times.map(([n, v, u]) => `${n} ${shown(v)} ${u}`).join(", ")));
    if (Data.raw.home) box.append(element("p", { class: "line" }, element("b", {}, "In every run "), element("a", { href: `${Data.raw.home}?case=${encodeURIComponent(Data.name(r))}` }, "the address of this case")));
    box.append(element("p", { class: "line" }, element("b", {}, "Repeat it")), copyable(Rows.command(r, "repro")), copyable(`${Rows.command(r, "decide")} --explain`));
    return box;
  }

  return { of };
})();
