// The rows behind a view, at most 200 in the document at a time; a row opens to what is known of it.
const Rows = (() => {
  const PAGE = 200;
  const { columns, dict, targets } = Data;
  const key = (r) => `${Data.name(r)}@${Data.target(r).build}@${Data.target(r).device}@${columns.config[r] ?? ""}`;
  const shown = (v) => (v === null || v === undefined ? "" : typeof v === "number" ? (Number.isInteger(v) ? count(v) : String(Number(v.toPrecision(5)))) : typeof v === "object" ? JSON.stringify(v) : String(v));

  // [tensor, numbers] of the worst one, from the details when they are here.
  function worst(r) {
    const errors = Data.raw.details[r]?.errors;
    const size = (e) => (typeof e.ratio === "number" ? e.ratio : e.ratio === "inf" || e.ratio === "nan" ? Infinity : -1);
    return errors ? Object.entries(errors).sort((a, b) => size(b[1]) - size(a[1]))[0] : undefined;
  }

  function note(r) {
    const kind = Data.outcome(r).kind, w = worst(r);
    if (w && kind === "failure") return `${w[0]}[${shown(w[1].worst_index).replace(/[[\]]/g, "")}] got ${shown(w[1].got)}, want ${shown(w[1].want)}`;
    const reason = dict.reason[columns.reason[r]];
    if (reason.text) return reason.text.slice(0, 160);
    return columns.ratio[r] === null ? "" : `worst error ${shown(columns.ratio[r])} of its bound`;
  }

  function command(r, verb) {
    const t = Data.target(r);
    return `facts ${verb} ${shell(Data.name(r))}${t.build === "none" ? "" : ` --cudnn ${shell(t.spec)}`} --device ${shell(t.ask)}`;
  }

  function copyable(text) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", () => copy(text, button));
    return element("div", { class: "command" }, element("code", {}, text), button);
  }

  function copy(text, button) {
    const done = (word) => { const before = button.textContent; button.textContent = word; setTimeout(() => { button.textContent = before; }, 1200); };
    const byHand = () => {
      const box = element("textarea", { class: "hidden" });
      box.value = text;
      document.body.append(box);
      box.select();
      const ok = document.execCommand("copy");
      box.remove();
      done(ok ? "Copied" : "Press Ctrl+C");
    };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(() => done("Copied"), byHand);
    else byHand();
  }

  function table(heads, lines, caption) {
    return element("table", { class: "small" }, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)))),
      element("tbody", {}, ...lines.map((cells) => element("tr", {}, ...cells.map((c) => element("td", {}, typeof c === "object" && c instanceof Node ? c : shown(c)))))));
  }

  // The same case on the same device, over the builds.
  function history(r) {
    const device = Data.target(r).device, list = Data.ofDevice.get(device), found = new Map();
    for (let i = 0; i < Data.rows; i++) {
      if (columns.case[i] === columns.case[r] && Data.target(i).device === device && columns.config[i] === columns.config[r]) found.set(columns.target[i], i);
    }
    const asked = list.filter((t) => found.has(t)), spans = [];
    asked.forEach((t, i) => {
      const o = columns.outcome[found.get(t)], last = spans[spans.length - 1];
      if (last && last.o === o) last.last = i; else spans.push({ o, first: i, last: i });
    });
    return spans.map((s) => ({ outcome: Data.outcomes[s.o], when: Matrix.when(asked, s.first, s.last) }));
  }

  // Accepted cases of the same target that differ in one key.
  function neighbours(r) {
    const mine = Data.said[columns.case[r]], keys = [...new Set([...mine.keys()])], out = [], seen = new Set();
    for (let i = 0; i < Data.rows && out.length < 6; i++) {
      if (columns.target[i] !== columns.target[r] || Data.outcome(i).kind !== "good" || seen.has(columns.case[i])) continue;
      const other = Data.said[columns.case[i]];
      if (Math.abs(other.size - mine.size) > 1) continue;
      let differs = 0, which = null;
      for (const k of keys) if (other.get(k) !== mine.get(k) && Data.valueOf(columns.case[i], k) !== Data.valueOf(columns.case[r], k)) { differs++; which = k; }
      for (const k of other.keys()) if (!mine.has(k) && Data.valueOf(columns.case[i], k) !== Data.valueOf(columns.case[r], k)) { differs++; which = k; }
      if (differs === 1) { seen.add(columns.case[i]); out.push({ r: i, words: `${which}=${Data.valueOf(columns.case[i], which)} instead of ${Data.valueOf(columns.case[r], which)}` }); }
    }
    return out;
  }

  // An address, or OWNER/NAME#NUMBER of the usual forge; anything else stays text.
  function link(address) {
    const issue = typeof address === "string" && /^([\w.-]+\/[\w.-]+)#(\d+)$/.exec(address);
    if (issue) return element("a", { href: `https://github.com/${issue[1]}/issues/${issue[2]}`, rel: "noreferrer noopener" }, address);
    return typeof address === "string" && /^https?:\/\/[^\s]+$/i.test(address) ? element("a", { href: address, rel: "noreferrer noopener" }, address) : shown(address);
  }

  function expectation(e) {
    if (typeof e !== "object") return element("p", { class: "known" }, "Known: ", link(e));
    const p = element("p", { class: "known" }, e.met === false ? "Expected was something else:" : "As expected:");
    for (const [k, v] of Object.entries(e)) if (k !== "met") p.append(` ${k} `, link(v), ";");
    return p;
  }

  function detail(r) {
    const o = Data.outcome(r), t = Data.target(r), d = Data.raw.details[r] || {}, reason = dict.reason[columns.reason[r]], box = element("div", { class: "detail" });
    const grade = dict.grade[columns.grade[r]] ?? "no grade", backend = dict.backend[columns.backend[r]];
    box.append(element("p", { class: "lead" }, mark(o), element("strong", {}, ` ${o.word}`), `: ${o.says}. `, element("span", { class: "quiet" }, `Evidence: ${grade}${backend ? `, backend ${backend}` : ""}, build ${t.build}.`)));
    if (d.expectation) box.append(expectation(d.expectation));
    box.append(element("p", { class: "line" }, element("b", {}, "Over the builds "), ...history(r).flatMap((h, i) => [i ? ", " : "", `${h.when} `, mark(h.outcome), ` ${h.outcome.word}`])));
    if (reason.text || reason.status || reason.chain) {
      box.append(element("p", { class: "line" }, element("b", {}, "Why "), reason.class ? element("span", { class: "class" }, reason.class) : null, " ", reason.status ? element("code", {}, reason.status) : null, ` ${shown(reason.text)}`));
      if (reason.remedy) box.append(element("p", { class: "line" }, element("b", {}, "Remedy "), shown(reason.remedy)));
      if (reason.chain) box.append(table(["engine", "status", "why", "condition"], reason.chain.map((c) => [c.engine, c.status, c.text, c.condition]), "What each engine said"));
    }
    if (o.kind === "refused") {
      const near = neighbours(r);
      box.append(element("p", { class: "line" }, element("b", {}, "Nearest accepted "), near.length ? near.map((n) => n.words).join("; ") : "none in this record that differs in one key"));
    }
    if (d.errors) {
      box.append(table(["tensor", "ratio", "gate", "rms", "worst at", "got", "want", "bound", "checked"],
        Object.entries(d.errors).map(([n, e]) => [n, e.ratio, e.gate, e.rms, Array.isArray(e.worst_index) ? e.worst_index.join(", ") : e.worst_index, e.got, e.want, e.bound, e.checked]),
        "Errors: ratio is the worst error as a part of its bound; above 1 is wrong"));
    } else if (columns.ratio[r] !== null) box.append(element("p", { class: "line" }, element("b", {}, "Worst error "), `${shown(columns.ratio[r])} of its bound (each tensor: results.json)`));
    if (d.padded) box.append(table(["tensor", "poison", "zero", "other"], Object.entries(d.padded).filter(([, v]) => v && typeof v === "object").map(([n, v]) => [n, v.poison, v.zero, v.other]), "What padded rows hold"));
    const engines = dict.engines[columns.engines[r]].filter((e) => e && typeof e === "object");
    if (engines.length) {
      const knobs = (k) => (k && typeof k === "object" && !Array.isArray(k) ? Object.entries(k).map(([n, v]) => `${n}=${shown(v)}`).join(" ") : shown(k));
      box.append(table(["mode", "place", "engine", "knobs", "notes", "workspace"], engines.map((e) => [e.mode, e.config, e.index, knobs(e.knobs), Array.isArray(e.notes) ? e.notes.join(", ") : e.notes, e.workspace_bytes]), "Engines offered, in order"));
    }
    const times = [["decide", columns.decide_us[r], "µs"], ["plan", columns.plan_ms[r], "ms"], ["execute", columns.exec_us[r], "µs"], ["workspace", columns.workspace_bytes[r], "bytes"]].filter((x) => x[1] !== null);
    if (times.length) box.append(element("p", { class: "line" }, element("b", {}, "Cost "), times.map(([n, v, u]) => `${n} ${shown(v)} ${u}`).join(", ")));
    box.append(element("p", { class: "line" }, element("b", {}, "Repeat it")), copyable(command(r, "repro")), copyable(`${command(r, "decide")} --explain`));
    return box;
  }

  function line(r, open, width) {
    const t = Data.target(r), o = Data.outcome(r), id = `row-${r}`;
    const button = element("button", { type: "button", class: "open", "aria-expanded": String(open), "aria-controls": id, "data-row": String(r) }, mark(o), ` ${o.word}`);
    const config = columns.config[r], engine = dict.engine[columns.engine[r]];
    const out = [element("tr", { class: `row ${o.kind}${open ? " opened" : ""}`, "data-row": String(r) }, element("td", {}, button), element("td", { class: "case" }, element("code", {}, Data.name(r))),
      element("td", {}, t.label), element("td", {}, t.device), element("td", {}, dict.grade[columns.grade[r]] ?? ""), element("td", { class: "number" }, engine === null ? "" : `${engine}${config ? ` (${config})` : ""}`),
      element("td", { class: "note" }, note(r)))];
    if (open) out.push(element("tr", { class: "inside", id }, element("td", { colspan: width }, detail(r))));
    return out;
  }

  function render(table_, list, state) {
    const heads = ["Outcome", "Case", "cuDNN", "Device", "Evidence", "Engine", "Why, or how near"];
    const pages = Math.max(1, Math.ceil(list.length / PAGE)), page = Math.min(state.page, pages - 1);
    const body = element("tbody"), part = list.slice(page * PAGE, (page + 1) * PAGE);
    for (const r of part) body.append(...line(r, state.row !== "" && key(r) === state.row, heads.length));
    table_.replaceChildren(element("caption", { class: "hidden" }, "Rows of this view, worst first"), element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)))), body);
    return { page, pages, from: page * PAGE, shown: part.length };
  }

  return { render, key, copy, note, command, link, PAGE };
})();
