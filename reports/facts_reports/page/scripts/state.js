// The whole view is one small object, and the address says all of it: what is not default stands in the fragment. `?a=V&b=V&device=D` or `?case=NAME` may be given as well.
const State = (() => {
  const fresh = () => ({ q: "", off: [], device: "", view: "ranges", split: false, all: false, axes: [], cell: "", row: "", page: 0, a: "", b: "", group: "", issues: "", absent: "" });
  const ROWS = ["q", "off", "device", "cell", "all"];   // what chooses the rows
  let now = fresh();
  const listeners = [];

  function write(s) {
    const p = new URLSearchParams();
    for (const key of ["q", "device", "cell", "row", "a", "b", "group", "issues"]) if (s[key]) p.set(key, s[key]);
    for (const key of ["off", "axes"]) if (s[key].length) p.set(key, [...s[key]].sort().join(","));
    if (s.view !== "ranges") p.set("view", s.view);
    for (const key of ["split", "all"]) if (s[key]) p.set(key, "1");
    if (s.page) p.set("page", String(s.page));
    return p.toString();
  }

  function read(fragment, search = "") {
    const p = new URLSearchParams(fragment.replace(/^#/, "")), s = fresh(), said = new URLSearchParams(search);
    const text = (key, most) => (p.get(key) || said.get(key) || "").slice(0, most), list = (key, known) => (p.get(key) || "").split(",").filter((w) => known.has(w)).sort();
    s.q = text("q", 4000) || (said.get("case") ? `case="${said.get("case").slice(0, 1500).trim().split(/\s+/).join(" ").replaceAll('"', "")}"` : "");
    s.off = list("off", new Set(Data.outcomes.map((o) => o.word)));
    s.axes = list("axes", new Set(Data.features.map((f) => f.axis)));
    s.device = Data.devices.includes(text("device", 200)) ? text("device", 200) : "";
    s.absent = s.device ? "" : text("device", 200);   // a device that the address names, and that is not here
    s.view = p.get("view") === "columns" ? "columns" : "ranges";
    for (const key of ["split", "all"]) s[key] = p.get(key) === "1";
    s.cell = text("cell", 2000);
    s.row = text("row", 4000);
    for (const key of ["a", "b", "group", "issues"]) s[key] = text(key, 120);
    s.page = Math.max(0, Math.min(1e6, parseInt(p.get("page") || "0", 10) || 0));
    return s;
  }

  // `quiet`: the address says it already. `entry`: what is shown now is another place, which Back leaves.
  function set(change, { quiet = false, entry = false } = {}) {
    const before = now;
    now = { ...now, absent: "", ...change };
    const differs = (k) => k in change && String(change[k]) !== String(before[k]);
    // Another set of rows: what was opened or turned to no longer stands where it stood.
    if (ROWS.some(differs)) {
      if (!("page" in change)) now.page = 0;
      if (!("row" in change)) now.row = "";
    }
    if (["a", "b"].some(differs) && !("group" in change)) now.group = "";
    const fragment = write(now), address = location.href.split(/[?#]/)[0] + (fragment ? `#${fragment}` : "");
    if (!quiet) history[entry && address !== location.href ? "pushState" : "replaceState"](null, "", address);
    for (const listener of listeners) listener(now, before);
  }

  window.addEventListener("hashchange", () => set(read(location.hash, location.search), { quiet: true }));
  return { get: () => now, set, read, write, fresh, ROWS, listen: (f) => listeners.push(f), address: () => location.href };
})();
