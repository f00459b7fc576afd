// Download of the rows that are seen. Each row says when it was asked, by which FACTS, of which suite; each file says which query chose it.
const Save = (() => {
  const { columns } = Data;
  const inert = (v) => (/^[=+@\t-]/.test(v) && !/^[+-]?\d+(\.\d+)?$/.test(v) ? `'${v}` : v);
  const csv = (v) => { const s = inert(v === null || v === undefined ? "" : String(v)); return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
  const md = (v) => String(v ?? "").replace(/[\\`*_[\]<>|#]/g, "\\$&").slice(0, 200);

  // The whole view as a query: text, device, outcomes that are shown, cell. Words that are searched for stay words.
  function query(state) {
    const value = (text) => (/^[\w.:+-]+$/.test(text) ? text : `"${text}"`), cell = state.cell && Matrix.resolve(state.cell), q = state.q.trim();
    const parts = [q && Data.isText(q) ? `words: ${q}` : q, state.device && `device=${value(state.device)}`, ...state.off.map((word) => `outcome!=${word}`), !cell && Data.isPart() && `build in (${value(Data.gate.a)}, ${value(Data.gate.b)})`];
    if (cell) {
      const { axis, label, where, group } = Data.features[cell.feature], builds = [...new Set([...cell.targets].map((t) => value(Data.targets[t].build)))], [first] = cell.targets;
      parts.push(group ? `group=${value(label)}` : where || `${axis}: ${label}`, state.device ? "" : `device=${value(Data.targets[first].device)}`, builds.length > 1 ? `build in (${builds.join(", ")})` : `build=${builds[0]}`,
        cell.passes.length === 1 && `pass=${cell.passes[0] ? "bwd" : "fwd"}`);
    }
    const said = parts.filter(Boolean);
    return said.length > 1 ? said.map((part) => (/[|&]/.test(part) ? `(${part})` : part)).join(" & ") : said.join("");
  }

  function seen(r) {
    const t = Data.target(r), reason = Data.dict.reason[columns.reason[r]], run = Trust.run(r);
    return { case: Data.name(r), cudnn: t.cudnn, build: t.build, device: t.device, grade: Data.dict.grade[columns.grade[r]], outcome: Data.outcome(r).word, engine: Data.dict.engine[columns.engine[r]],
      config: columns.config[r], ratio: columns.ratio[r], reason_class: reason.class ?? "", reason_status: reason.status ?? "", reason: reason.text ?? "", asked: run.started, tolerance: run.tolerance, suite_hash: run.suite };
  }

  function asMarkdown(about, list, listed) {
    return [`${md(about.title)}: ${about.rows} rows, query \`${about.query.replaceAll("`", "'") || "none"}\`, suite ${md(about.suites.join(", "))}, tolerance ${md(about.tolerances.join(", "))}, asked ${md(about.asked)}`, "",
      "| outcome | case | cuDNN | device | why |", "|---|---|---|---|---|",
      ...list.slice(0, 500).map((o, i) => `| ${Data.outcome(listed[i]).mark} ${o.outcome} | ${md(o.case)} | ${md(o.cudnn)} | ${md(o.device)} | ${md(Rows.note(listed[i]))} |`)].join("\n") + "\n";
  }

  function text(kind, listed) {
    const list = Array.from(listed, seen), state = State.get(), asked = query(state), only = (key) => [...new Set(list.map((o) => o[key]))].filter(Boolean).sort(), dates = only("asked");
    const about = { title: Data.raw.title, query: asked, view: State.write(state), rows: list.length, suites: only("suite_hash"), tolerances: only("tolerance"), asked: [...new Set([dates[0], dates[dates.length - 1]])].filter(Boolean).join(" to ") };
    if (kind === "json") return JSON.stringify({ ...about, rows: list }, null, 1);
    if (kind === "md") return asMarkdown(about, list, listed);
    return list.length ? [[...Object.keys(list[0]), "query"].join(","), ...list.map((o) => [...Object.values(o), asked].map(csv).join(","))].join("\n") + "\n" : "";
  }

  function save(kind, listed) {
    const a = element("a", { download: `facts-view.${kind}`, href: URL.createObjectURL(new Blob([text(kind, listed)], { type: "text/plain" })) });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }

  return { save };
})();
