// Joins the parts: query, levels, device, view; everything that is seen follows from State.
const App = (() => {
  const at = (id) => document.getElementById(id);
  const { outcomes, columns } = Data;
  const total = outcomes.map(() => 0);
  for (let r = 0; r < Data.rows; r++) total[columns.outcome[r]]++;
  const every = Array.from({ length: Data.rows }, (_, r) => r);
  let current = [];   // rows under query and device, before levels
  let listed = [];    // rows of the table
  let drawn = false;

  // ---- what is seen ----

  function byQuery(state) {
    let test = null, problem = "";
    if (state.q.trim() && Data.isText(state.q)) {
      test = Data.search(state.q);
    } else if (state.q.trim()) {
      try {
        const tree = Data.parse(state.q);
        test = Data.compile(tree);
        problem = unknownValue(tree);
      } catch (error) {
        if (!(error instanceof Predicate.QueryError)) throw error;
        return { rows: null, problem: error.message, bad: true };
      }
    }
    const list = state.device ? new Set(Data.ofDevice.get(state.device)) : null;
    return { rows: every.filter((r) => (!list || list.has(columns.target[r])) && (!test || test(r))), problem };
  }

  // A value that no row has is allowed, but seldom meant.
  function unknownValue(tree) {
    for (const leaf of Predicate.leaves(tree)) {
      if (leaf.op !== "=" || leaf.other || leaf.mod) continue;
      const values = [...new Set(Data.column(leaf.key).values.filter((v) => v !== null && v !== undefined).map(String))].sort((a, b) => a - b || (a < b ? -1 : 1));
      if (!values.some((v) => Predicate.compare(leaf, v))) {
        const some = values.slice(0, 8).join(", ") + (values.length > 8 ? ", …" : "");
        return `No row has ${leaf.key}=${leaf.value}; here: ${some || "nothing"}.`;
      }
    }
    return "";
  }

  function chips(state, rows) {
    const counts = outcomes.map(() => 0), box = at("levels");
    for (const r of rows) counts[columns.outcome[r]]++;
    const focus = document.activeElement?.dataset?.level;
    box.replaceChildren(...outcomes.map((o, i) => (total[i] ? element("button", { type: "button", class: `chip ${o.kind}`, "data-level": o.word, "aria-pressed": String(!state.off.includes(o.word)), title: o.says },
      mark(o), ` ${o.word} `, element("span", { class: "n" }, count(counts[i]))) : null)).filter(Boolean));
    if (focus) box.querySelector(`[data-level="${focus}"]`)?.focus();
    at("findings-only").hidden = !outcomes.some((o, i) => total[i] && (o.kind === "failure" || o.kind === "error"));
  }

  function boundary(cell, rows) {
    const box = at("boundary");
    box.replaceChildren();
    if (!cell) return;
    for (const found of Boundary.of(rows)) {
      const p = element("p", {}, mark(found.outcome), ` ${found.outcome.word} (${count(found.rows)}) `);
      if (found.why) p.append(element("span", { class: "quiet" }, `${found.why.slice(0, 140)}: `));
      if (found.text) p.append("where ", element("button", { type: "button", class: "boundary", "data-query": found.text, title: "Filter to this" }, found.text));
      else p.append("no three keys separate these rows from the others here");
      box.append(p);
    }
  }

  function table(state, rows) {
    const cell = state.cell ? Matrix.resolve(state.cell) : null;
    listed = cell ? rows.filter((r) => cell.targets.has(columns.target[r]) && cell.passes.includes(Data.backward[columns.case[r]]) && Data.inFeature(r, cell.feature)) : rows;
    at("cell-name").textContent = cell ? cell.words : state.cell ? "This cell is not in this record" : "";
    at("cell-clear").hidden = !state.cell;
    boundary(cell, listed);
    const got = Rows.render(at("rows"), listed, state);
    at("rows-count").textContent = listed.length ? `${count(got.from + 1)} to ${count(got.from + got.shown)} of ${count(listed.length)}` : "No row matches.";
    for (const id of ["before", "before2"]) at(id).disabled = got.page === 0;
    for (const id of ["after", "after2"]) at(id).disabled = got.page >= got.pages - 1;
    at("pager2").hidden = got.pages === 1;
  }

  function render(state, before) {
    const box = at("query");
    if (box.value !== state.q) box.value = state.q;
    const found = byQuery(state);
    at("problem").textContent = found.problem;
    box.setAttribute("aria-invalid", String(!!found.bad));
    // With a query that does not parse, the last good view stays.
    const only = drawn && ["row", "page"].some((k) => before[k] !== state[k]) && ["q", "off", "device", "view", "split", "cell"].every((k) => String(before[k]) === String(state[k]));
    if (found.rows) current = found.rows;
    chips(state, current);
    const off = new Set(state.off), rows = off.size ? current.filter((r) => !off.has(outcomes[columns.outcome[r]].word)) : current;
    for (const b of document.querySelectorAll("[data-view]")) b.setAttribute("aria-pressed", String(b.dataset.view === state.view));
    at("split").setAttribute("aria-pressed", String(state.split));
    at("device").value = state.device;
    document.body.classList.toggle("stale", !!found.bad);
    at("shown").textContent = (found.bad ? "still of the query before: " : "") + (rows.length === Data.rows ? `all ${count(rows.length)} rows` : `${count(rows.length)} of ${count(Data.rows)} rows`);
    if (!only) {
      const hidden = Matrix.render(at("matrix"), rows, state);
      at("hidden-features").textContent = hidden ? `${hidden} more features have no row in this view.` : "";
    }
    drawn = true;
    table(state, rows);
  }

  // ---- what is done ----

  function cells() {
    at("matrix").addEventListener("click", (event) => {
      const button = event.target.closest("[data-cell]");
      if (!button) return;
      State.set({ cell: button.dataset.cell === State.get().cell ? "" : button.dataset.cell });
      if (State.get().cell) {
        at("rows-title").scrollIntoView();
        at("rows-title").focus({ preventScroll: true });
      }
    });
    at("cell-clear").addEventListener("click", () => State.set({ cell: "" }));
    at("boundary").addEventListener("click", (event) => {
      const text = event.target.closest("[data-query]")?.dataset.query;
      const q = State.get().q.trim();
      if (text) State.set({ q: q ? `(${q}) & ${text}` : text });
    });
  }

  function rowClicks() {
    at("rows").addEventListener("click", (event) => {
      const tr = event.target.closest("tr.row");
      if (!tr || String(window.getSelection())) return;
      const r = Number(tr.dataset.row), k = Rows.key(r);
      State.set({ row: State.get().row === k ? "" : k });
      at("rows").querySelector(`button[data-row="${r}"]`)?.focus({ preventScroll: true });
    });
    for (const [id, step] of [["before", -1], ["after", 1], ["before2", -1], ["after2", 1]]) {
      at(id).addEventListener("click", () => {
        State.set({ page: Math.max(0, Math.min(State.get().page, Math.ceil(listed.length / Rows.PAGE) - 1) + step), row: "" });
        at("rows-title").scrollIntoView();
      });
    }
  }

  function controls() {
    let timer = 0;
    at("query").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => State.set({ q: at("query").value }), Data.rows > 20000 ? 150 : 40); });
    at("ask").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); State.set({ q: at("query").value }); });
    at("levels").addEventListener("click", (event) => {
      const word = event.target.closest("[data-level]")?.dataset.level, off = State.get().off;
      if (word) State.set({ off: off.includes(word) ? off.filter((w) => w !== word) : [...off, word].sort() });
    });
    at("findings-only").addEventListener("click", () => State.set({ off: outcomes.filter((o) => !["failure", "error"].includes(o.kind)).map((o) => o.word).sort() }));
    at("all").addEventListener("click", () => State.set({ ...State.fresh() }));
    at("device").append(...Data.devices.map((d) => element("option", { value: d }, d)));
    at("device").addEventListener("change", () => State.set({ device: at("device").value }));
    for (const b of document.querySelectorAll("[data-view]")) b.addEventListener("click", () => State.set({ view: b.dataset.view }));
    at("split").addEventListener("click", () => State.set({ split: !State.get().split }));
    at("link").addEventListener("click", () => Rows.copy(State.address(), at("link")));
    for (const b of document.querySelectorAll("[data-copy]")) b.addEventListener("click", () => Rows.copy(b.dataset.copy, b));
    for (const b of document.querySelectorAll("[data-find]")) b.addEventListener("click", () => { State.set({ ...State.fresh(), q: b.dataset.find, device: b.dataset.on }); at("rows-title").scrollIntoView(); });
    for (const b of document.querySelectorAll("[data-save]")) b.addEventListener("click", () => save(b.dataset.save));
  }

  // ---- download what is seen ----

  function seen(r) {
    const t = Data.target(r), reason = Data.dict.reason[columns.reason[r]];
    return { case: Data.name(r), cudnn: t.cudnn, build: t.build, device: t.device, grade: Data.dict.grade[columns.grade[r]], outcome: Data.outcome(r).word, engine: Data.dict.engine[columns.engine[r]],
      config: columns.config[r], ratio: columns.ratio[r], reason_class: reason.class ?? "", reason_status: reason.status ?? "", reason: reason.text ?? "" };
  }

  const inert = (v) => (/^[=+@\t-]/.test(v) && !/^[+-]?\d+(\.\d+)?$/.test(v) ? `'${v}` : v);
  const csv = (v) => { const s = inert(v === null || v === undefined ? "" : String(v)); return /[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s; };
  const md = (v) => String(v ?? "").replace(/[\\`*_[\]<>|#]/g, "\\$&").slice(0, 200);

  function save(kind) {
    const list = listed.map(seen), state = State.get();
    const about = { title: Data.raw.title, query: state.q, view: State.write(state), rows: list.length, suites: Data.raw.suite_hashes };
    let text;
    if (kind === "json") text = JSON.stringify({ ...about, rows: list }, null, 1);
    else if (kind === "csv") text = list.length ? [Object.keys(list[0]).join(","), ...list.map((o) => Object.values(o).map(csv).join(","))].join("\n") + "\n" : "";
    else text = [`${md(about.title)}: ${about.rows} rows, query \`${state.q.replaceAll("`", "'") || "none"}\`, suite ${md(about.suites.join(", "))}`, "", "| outcome | case | cuDNN | device | why |", "|---|---|---|---|---|",
      ...list.slice(0, 500).map((o, i) => `| ${Data.outcome(listed[i]).mark} ${o.outcome} | ${md(o.case)} | ${md(o.cudnn)} | ${md(o.device)} | ${md(Rows.note(listed[i]))} |`)].join("\n") + "\n";
    const a = element("a", { download: `facts-view.${kind}`, href: URL.createObjectURL(new Blob([text], { type: "text/plain" })) });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }

  // Sticky heads stand below the bar, whatever its height is.
  function measure() { document.documentElement.style.setProperty("--bar", `${at("bar").offsetHeight}px`); }

  for (const e of document.querySelectorAll("[data-link]")) e.replaceChildren(Rows.link(e.dataset.link) || "no link");
  controls();
  cells();
  rowClicks();
  State.listen(render);
  State.set(State.read(location.hash), { quiet: true });
  new ResizeObserver(measure).observe(at("bar"));
  document.documentElement.dataset.ready = "1";
  return { listed: () => listed };
})();
