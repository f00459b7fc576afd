// The rows behind a view, at most 50 in the document at a time.
const Rows = (() => {
  const PAGE = 50;
  const { columns, dict, targets } = Data;
  const key = (r) => `${Data.name(r)}@${Data.target(r).build}@${Data.target(r).device}@${columns.config[r] ?? ""}`;
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
    if (reason.text) return short(reason.text, 160);
    return columns.ratio[r] === null ? "" : `worst error ${shown(columns.ratio[r])} of its bound`;
  }

  // The rules that disagree stand beside the decision.
  const claimed = (r) => Trust.otherwise(r).slice(0, 3).map((rule) => element("span", { class: "claimed", title: rule.says }, `but ${rule.short} (${rule.id})`));

  function command(r, verb) {
    const t = Data.target(r);
    return `facts ${verb} ${shell(Data.name(r))}${t.build === "none" ? "" : ` --cudnn ${shell(t.spec)}`} --device ${shell(t.ask)}`;
  }

  function line(r, open, width) {
    const t = Data.target(r), o = Data.outcome(r), id = `row-${r}`;
    const button = element("button", { type: "button", class: "open", "aria-expanded": String(open), "aria-controls": id, "data-row": String(r) }, mark(o), ` ${o.word}`);
    const config = columns.config[r], engine = dict.engine[columns.engine[r]];
    const out = [element("tr", { class: `row ${o.kind}${open ? " opened" : ""}`, "data-row": String(r) }, element("td", {}, button), element("td", { class: "case" }, element("code", {}, Data.name(r))),
      element("td", {}, t.label), element("td", {}, t.shown), element("td", {}, dict.grade[columns.grade[r]] ?? ""), element("td", { class: "number" }, engine === null ? "" : `${engine}${config ? ` (${config})` : ""}`),
      element("td", { class: "note" }, note(r), ...claimed(r)))];
    if (open) out.push(element("tr", { class: "inside", id }, element("td", { colspan: width }, Detail.of(r))));
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

  return { render, key, note, command, PAGE };
})();
