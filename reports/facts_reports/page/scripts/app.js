// Joins the parts: query, levels, device, view; everything that is seen follows from State.
const App = (() => {
  const { outcomes, columns } = Data;
  const byOutcome = (rows) => { const out = outcomes.map(() => 0); for (let i = 0; i < rows.length; i++) out[columns.outcome[rows[i]]]++; return out; };
  const total = byOutcome(Data.every);
  let current = [];   // rows under query and device, before levels
  let listed = [];    // rows of the table
  let drawn = false;
  const MATRIX_KEYS = "button.fold, button.segment";

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
    return { rows: !list && !test ? Data.inView() : Data.inView().filter((r) => (!list || list.has(columns.target[r])) && (!test || test(r))), problem };
  }

  // A value that no row has is allowed, but seldom meant.
  function unknownValue(tree) {
    for (const leaf of Predicate.leaves(tree)) {
      if (leaf.op !== "=" || leaf.other || leaf.mod) continue;
      const values = [...new Set(Data.column(leaf.key).values.filter((v) => v !== null && v !== undefined).map(String))].sort((a, b) => a - b || (a < b ? -1 : 1));
      if (!values.some((v) => Predicate.compare(leaf, v))) {
        const some = values.slice(0, 8).join(", ") + (values.length > 8 ? ", …" : "");
        return leaf.key === "case" ? `No case "${leaf.value}" here.` : `No row has ${leaf.key}=${leaf.value}; here: ${some || "nothing"}.`;
      }
    }
    return "";
  }

  function chips(state, rows) {
    const counts = rows === Data.every ? total : byOutcome(rows), box = at("levels");
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
      if (found.why) p.append(element("span", { class: "quiet" }, `${short(found.why, 140)}: `));
      if (found.text) p.append("where ", element("button", { type: "button", class: "boundary", "data-query": found.text, title: "Filter to this" }, found.text));
      else p.append("no three keys separate these rows from the others here");
      box.append(p);
    }
  }

  const inCell = (cell, rows) => rows.filter((r) => cell.targets.has(columns.target[r]) && cell.passes.includes(Data.backward[columns.case[r]]) && Data.inFeature(r, cell.feature));

  function table(state, rows) {
    const cell = state.cell ? Matrix.resolve(state.cell) : null;
    listed = cell ? inCell(cell, rows) : rows;
    at("cell-name").textContent = cell ? cell.words : state.cell ? "This cell is not in this record" : "";
    at("cell-clear").hidden = !state.cell;
    boundary(cell, listed);
    const got = Rows.render(at("rows"), listed, state);
    at("rows-count").textContent = listed.length ? `${count(got.from + 1)} to ${count(got.from + got.shown)} of ${count(listed.length)}` : "No row matches.";
    for (const id of ["before", "before2"]) at(id).disabled = got.page === 0;
    for (const id of ["after", "after2"]) at(id).disabled = got.page >= got.pages - 1;
    at("pager2").hidden = got.pages === 1;
    Keys.settle(at("rows"), "button.open");
  }

  function matrix(state, rows) {
    const focus = document.activeElement?.dataset?.axis, hidden = Matrix.render(at("matrix"), rows, state);
    at("hidden-features").textContent = hidden ? `${hidden} more features have no row in this view.` : "";
    at("unfold").textContent = state.axes.length ? "Fold all" : "Unfold all";
    Keys.settle(at("matrix"), MATRIX_KEYS);
    if (focus) [...at("matrix").querySelectorAll("[data-axis]")].find((b) => b.dataset.axis === focus)?.focus({ preventScroll: true });
  }

  function render(state, before) {
    const box = at("query");
    if (box.value !== state.q) box.value = state.q;
    const found = byQuery(state);
    at("problem").textContent = found.problem;
    box.setAttribute("aria-invalid", String(!!found.bad));
    // With a query that does not parse, the last good view stays.
    const same = (...keys) => drawn && keys.every((k) => String(before[k]) === String(state[k]));
    if (found.rows) current = found.rows;
    chips(state, current);
    const off = new Set(state.off), rows = off.size ? current.filter((r) => !off.has(outcomes[columns.outcome[r]].word)) : current;
    for (const b of document.querySelectorAll("[data-view]")) b.setAttribute("aria-pressed", String(b.dataset.view === state.view));
    at("split").setAttribute("aria-pressed", String(state.split));
    at("device").value = state.device;
    at("absent").textContent = state.absent ? `No device "${state.absent}" here. These records have ${Data.devices.join(", ")}.` : "";
    document.body.classList.toggle("stale", !!found.bad);
    at("shown").textContent = (found.bad ? "still of the query before: " : "") + (rows.length === Data.rows ? `all ${count(rows.length)} rows` : `${count(rows.length)} of ${count(Data.rows)} rows`);
    at("every").setAttribute("aria-pressed", String(state.all));
    if (!same("q", "device", "cell", "all", "issues")) Heat.render(state, current);
    if (!same("device", "a", "b", "group")) Compare.render(state);
    if (!same(...State.ROWS, "view", "split", "axes")) matrix(state, rows);
    if (!same(...State.ROWS, "row", "page")) table(state, rows);
    drawn = true;
  }

  // ---- what is done ----

  function toRows() {
    at("rows-title").scrollIntoView();
    (at("rows").querySelector('button.open[aria-expanded="true"]') ?? at("rows-title")).focus({ preventScroll: true });
  }

  // An address that asks for a row, a cell, a case or two versions opens on it.
  function toAnswer() {
    const state = State.get(), oneCase = new URLSearchParams(location.search).get("case");
    if (oneCase && listed.length && !state.row) State.set({ row: Rows.key(listed[0]) }, { quiet: true });
    if (oneCase && !listed.length) at("problem").scrollIntoView({ block: "center" });
    else if (oneCase || state.row || state.cell) toRows();
    else if (state.a || state.b) Compare.toResult();
  }

  function cells() {
    for (const id of ["heat", "matrix"]) {
      at(id).addEventListener("click", (event) => {
        const { cell, axis } = event.target.closest("[data-cell], [data-axis]")?.dataset ?? {}, open = State.get().axes;
        if (axis) State.set({ axes: open.includes(axis) ? open.filter((a) => a !== axis) : [...open, axis].sort() });
        if (!cell) return;
        const closes = cell === State.get().cell;
        State.set({ cell: closes ? "" : cell }, { entry: !closes });
        if (!closes) toRows();
      });
    }
    for (const kind of ["focusin", "mouseover"]) at("matrix").addEventListener(kind, (event) => { const b = event.target.closest("[data-cell]"), cell = b && Matrix.resolve(b.dataset.cell); if (cell) b.title = Trust.spread(inCell(cell, current)); });
    at("unfold").addEventListener("click", () => State.set({ axes: State.get().axes.length ? [] : [...Matrix.axes].sort() }));
    at("map").addEventListener("click", (event) => {
      const button = event.target.closest("[data-issues]"), { issues } = button?.dataset ?? {}, shown = State.get().issues;
      if (!button) return;
      State.set({ issues: issues === shown ? "" : issues });
      (at("issues").querySelector("h3") ?? [...at("heat").querySelectorAll("[data-issues]")].find((b) => b.dataset.issues === shown))?.focus();
    });
    // Back from the rows of a cell leads to the cell.
    let last = "";
    State.listen((state, before) => { last = before.cell !== state.cell ? before.cell : ""; });
    window.addEventListener("hashchange", () => [...document.querySelectorAll("#heat [data-cell], #matrix [data-cell]")].find((b) => last && b.dataset.cell === last)?.focus());
    Keys.rove(at("matrix"), MATRIX_KEYS);
    Keys.rove(at("rows"), "button.open");
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
    at("bar").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); State.set({ q: at("query").value }); });
    at("levels").addEventListener("click", (event) => {
      const word = event.target.closest("[data-level]")?.dataset.level, off = State.get().off;
      if (word) State.set({ off: off.includes(word) ? off.filter((w) => w !== word) : [...off, word].sort() });
    });
    at("findings-only").addEventListener("click", () => State.set({ off: outcomes.filter((o) => !["failure", "error"].includes(o.kind)).map((o) => o.word).sort() }));
    at("all").addEventListener("click", () => State.set({ ...State.fresh() }));
    at("device").append(...Data.devices.map((d) => element("option", { value: d }, Data.shownDevice(d))));
    at("device").addEventListener("change", () => State.set({ device: at("device").value }));
    for (const b of document.querySelectorAll("[data-view]")) b.addEventListener("click", () => State.set({ view: b.dataset.view }));
    at("every").hidden = !Data.others.length;
    at("every").textContent = Data.others.length > 3 ? `Also ${count(Data.others.length)} other builds` : `Also ${Data.others.join(", ")}`;
    at("every").addEventListener("click", () => State.set({ all: !State.get().all }));
    at("split").addEventListener("click", () => State.set({ split: !State.get().split }));
    at("link").addEventListener("click", () => copy(State.address(), at("link")));
    for (const b of document.querySelectorAll("[data-copy]")) b.addEventListener("click", () => copy(b.dataset.copy, b));
    for (const b of document.querySelectorAll("[data-save]")) b.addEventListener("click", () => Save.save(b.dataset.save, listed));
  }

  // The lines of the first screen: a finding leads to its rows, a change to its group.
  function news() {
    Keys.rove(at("news"), "button");
    at("news").addEventListener("click", (event) => {
      const { find, on, a, b, group, known } = event.target.closest("button")?.dataset ?? {};
      if (find) { State.set({ ...State.fresh(), q: `case="${find}"`, device: on }, { entry: true }); toRows(); }
      if (a) Compare.show(a, b, group);
      if (known !== undefined) { at("known").open = true; at("known").scrollIntoView(); at("known").querySelector("summary").focus({ preventScroll: true }); }
    });
  }

  // Sticky heads stand below the bar, whatever its height is.
  let height = getComputedStyle(document.documentElement).getPropertyValue("--bar").trim();
  function measure() {
    const now = `${at("bar").offsetHeight}px`;
    if (now !== height) document.documentElement.style.setProperty("--bar", height = now);   // the whole page's style is computed again
  }

  // A skip link moves; the address stays the view's.
  for (const link of document.querySelectorAll("a.skip")) link.addEventListener("click", (event) => { const to = at(link.hash.slice(1)); event.preventDefault(); to.scrollIntoView(); to.focus({ preventScroll: true }); });
  for (const e of document.querySelectorAll("[data-link]")) e.replaceChildren(linked(e.dataset.link) || "no link");
  for (const table of document.querySelectorAll(".findings")) Keys.rove(table, "a, button, summary");
  Heat.start((text) => { const cell = Matrix.resolve(text); return cell ? inCell(cell, current) : []; });
  Compare.start();
  Numbers.start();
  controls();
  news();
  cells();
  rowClicks();
  State.listen(render);
  State.set(State.read(location.hash, location.search), { quiet: true });
  new ResizeObserver(measure).observe(at("bar"));
  toAnswer();
  document.documentElement.dataset.ready = "1";
  return { listed: () => listed };
})();
