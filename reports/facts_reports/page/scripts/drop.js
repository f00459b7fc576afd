// Two record files from the reader's disk, verdict beside verdict. The classes and groups of `facts diff` are not made here: they are Python's, and the command is shown.
const Drop = (() => {
  const MOST_BYTES = 512 << 20, SHOWN = 50;

  async function textOf(file) {
    if (file.size > MOST_BYTES) throw new Error("is larger than 512 MiB");
    if (file.name.endsWith(".xz")) throw new Error("is packed with xz, which a browser cannot read: unpack it first");
    return file.name.endsWith(".gz") ? new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).text() : file.text();
  }

  // {rows: Map of case and device -> row, builds, unreadable}. Of several rows the last that answers counts.
  async function read(file) {
    const rows = new Map(), builds = new Set();
    let unreadable = 0;
    for (const line of (await textOf(file)).split("\n")) {
      if (!line.trim()) continue;
      let one = null;
      try { one = JSON.parse(line); } catch { unreadable++; continue; }
      if (typeof one?.case !== "string" || typeof one.verdict !== "string") continue;
      const key = `${one.case}\n${one.device}\n${/(^| )engine=all( |$)/.test(one.case) ? one.config : ""}`;
      builds.add(String(one.build));
      if (one.verdict !== "not_run" || !rows.has(key)) rows.set(key, one);
    }
    if (!rows.size) throw new Error("holds no row of a record");
    if (builds.size > 1) throw new Error(`holds ${builds.size} builds: give a record of one build each`);
    return { name: file.name, rows, build: [...builds][0], unreadable };
  }

  const said = (one) => (one ? [one.verdict, one.engine === undefined || one.engine === null ? "" : `engine ${shown(one.engine)}`, shown(one.reason?.text).slice(0, 200)].filter(Boolean).join(", ") : "no row");

  function compared(a, b) {
    const ways = new Map();
    let same = 0;
    for (const key of new Set([...a.rows.keys(), ...b.rows.keys()])) {
      const one = a.rows.get(key), other = b.rows.get(key);
      if (one && other && one.verdict === other.verdict) { same++; continue; }
      const way = `${one?.verdict ?? "no row"} → ${other?.verdict ?? "no row"}`;
      if (!ways.has(way)) ways.set(way, []);
      ways.get(way).push([...key.split("\n").slice(0, 2), said(one), said(other)]);
    }
    return { same, ways: [...ways].sort((x, y) => y[1].length - x[1].length) };
  }

  function draw(a, b) {
    const { same, ways } = compared(a, b), unreadable = a.unreadable + b.unreadable;
    const parts = ways.map(([way, list]) => element("details", {}, element("summary", {}, `${way}: ${count(list.length)}`), smallTable(["Case", "Device", a.build, b.build], list.slice(0, SHOWN), way),
      list.length > SHOWN ? element("p", { class: "quiet" }, `${count(list.length - SHOWN)} more.`) : ""));
    at("drop-result").replaceChildren(element("p", {}, `${a.name} (${a.build}) and ${b.name} (${b.build}): ${count(same)} verdicts are the same, ${count(ways.reduce((n, [, l]) => n + l.length, 0))} differ.${unreadable ? ` ${count(unreadable)} ${unreadable === 1 ? "line" : "lines"} could not be read.` : ""}`),
      ...parts, element("p", { class: "quiet" }, "These are the records' own verdicts. The command groups the changes, names what separates them and says whether you may move:"), copyable(`facts diff ${shell(a.name)} ${shell(b.name)}`));
  }

  async function take(files) {
    const list = [...files].sort((x, y) => (x.name < y.name ? -1 : 1)), read_ = [];
    const fail = (words) => at("drop-result").replaceChildren(element("p", { class: "known" }, words));
    if (list.length !== 2) return fail(`Choose two records; this was ${list.length}.`);
    for (const file of list) {
      try { read_.push(await read(file)); } catch (error) { return fail(`${file.name} ${error.message}.`); }
    }
    return draw(...read_.sort((x, y) => Predicate.compareVersions(x.build, y.build)));
  }

  function start() {
    at("files").addEventListener("change", () => take(at("files").files));
    for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => { if ([...event.dataTransfer?.types ?? []].includes("Files")) event.preventDefault(); });
    document.addEventListener("drop", (event) => { if (event.dataTransfer?.files.length) take(event.dataTransfer.files).then(() => at("drop-result").scrollIntoView()); });
  }

  return { start };
})();
