// The whole view is one small object, and the address says all of it: what is not default stands in the fragment.
const State = (() => {
  const fresh = () => ({ q: "", off: [], device: "", view: "ranges", split: false, cell: "", row: "", page: 0 });
  let now = fresh();
  const listeners = [];

  function write(s) {
    const p = new URLSearchParams();
    if (s.q) p.set("q", s.q);
    if (s.off.length) p.set("off", [...s.off].sort().join(","));
    if (s.device) p.set("device", s.device);
    if (s.view !== "ranges") p.set("view", s.view);
    if (s.split) p.set("split", "1");
    if (s.cell) p.set("cell", s.cell);
    if (s.row) p.set("row", s.row);
    if (s.page) p.set("page", String(s.page));
    return p.toString();
  }

  function read(fragment) {
    const p = new URLSearchParams(fragment.replace(/^#/, "")), s = fresh();
    const words = new Set(Data.outcomes.map((o) => o.word));
    s.q = (p.get("q") || "").slice(0, 4000);
    s.off = (p.get("off") || "").split(",").filter((w) => words.has(w)).sort();
    s.device = Data.devices.includes(p.get("device")) ? p.get("device") : "";
    s.view = p.get("view") === "columns" ? "columns" : "ranges";
    s.split = p.get("split") === "1";
    s.cell = (p.get("cell") || "").slice(0, 2000);
    s.row = (p.get("row") || "").slice(0, 4000);
    s.page = Math.max(0, Math.min(1e6, parseInt(p.get("page") || "0", 10) || 0));
    return s;
  }

  function set(change, { quiet = false } = {}) {
    const before = now;
    now = { ...now, ...change };
    // Another set of rows: what was opened or turned to no longer stands where it stood.
    if (["q", "off", "device", "cell"].some((k) => k in change && String(change[k]) !== String(before[k]))) {
      if (!("page" in change)) now.page = 0;
      if (!("row" in change)) now.row = "";
    }
    const fragment = write(now), address = location.href.split("#")[0] + (fragment ? `#${fragment}` : "");
    if (!quiet) history.replaceState(null, "", address);
    for (const listener of listeners) listener(now, before);
  }

  window.addEventListener("hashchange", () => set(read(location.hash), { quiet: true }));
  return { get: () => now, set, read, write, fresh, listen: (f) => listeners.push(f), address: () => location.href };
})();
