// Two record files from the reader's disk, compared by the program of compare.js.
const Drop = (() => {
  const MOST_BYTES = 512 << 20;

  async function textOf(file) {
    if (file.size > MOST_BYTES) throw new Error("is larger than 512 MiB");
    if (file.name.endsWith(".xz")) throw new Error("is packed with xz, which a browser cannot read: unpack it first");
    return file.name.endsWith(".gz") ? new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).text() : file.text();
  }

  // [name, parsed lines, how many are no JSON]
  async function read(file) {
    const items = [];
    let unreadable = 0;
    for (const line of (await textOf(file)).split("\n")) {
      if (!line.trim()) continue;
      try { items.push(JSON.parse(line)); } catch { unreadable++; }
    }
    return [file.name, items, unreadable];
  }

  function draw(step) {
    const unreadable = step.unreadable[0] + step.unreadable[1];
    at("drop-result").replaceChildren(element("h3", {}, `${step.records[0]} → ${step.records[1]}`, element("span", { class: "sub" }, ` ${step.headline}`)),
      ...(unreadable ? [element("p", {}, `${count(unreadable)} ${unreadable === 1 ? "line" : "lines"} could not be read.`)] : []),
      ...step.groups.map((group) => element("details", {}, element("summary", {}, ...Compare.words(group)), Compare.sideBySide(step, group))),
      ...step.notes.map((note) => element("p", { class: "quiet" }, note)), copyable(`facts diff ${shell(step.records[0])} ${shell(step.records[1])}`));
  }

  async function take(files) {
    const list = [...files].sort((x, y) => (x.name < y.name ? -1 : 1)), records = [];
    const say = (words) => at("drop-result").replaceChildren(element("p", { class: "known" }, words));
    if (list.length !== 2) return say(`Choose two records; this was ${list.length}.`);
    for (const file of list) {
      try { records.push(await read(file)); } catch (error) { return say(`${file.name} ${error.message}.`); }
    }
    say("Comparing …");
    const { compareRecords } = await Compare.program();
    try { return draw(compareRecords(Data.raw.keys, records)); } catch (error) { return say(error.said ?? String(error)); }
  }

  function start() {
    at("files").addEventListener("change", () => take(at("files").files));
    for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => { if ([...event.dataTransfer?.types ?? []].includes("Files")) event.preventDefault(); });
    document.addEventListener("drop", (event) => { if (event.dataTransfer?.files.length) take(event.dataTransfer.files).then(() => at("drop-result").scrollIntoView()); });
  }

  return { start };
})();
