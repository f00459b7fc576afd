// When a row was asked, how old that is, and whether something newer asked the same build.
const Trust = (() => {
  const { columns, dict, raw } = Data, UNKNOWN = { started: "", suite: "", suites: [], builds: [], tolerance: "", by: "" };
  const run = (r) => raw.runs[dict.run[columns.run[r]]] ?? UNKNOWN;

  // The newest run of each build and of each suite, by its date.
  const newest = new Map();
  const note = (key, one) => { if (one.started > (newest.get(key)?.started ?? "")) newest.set(key, one); };
  for (const one of Object.values(raw.runs)) {
    for (const build of one.builds) note(`build ${build}`, one);
    for (const suite of one.suites) note(`suite ${suite}`, one);
  }

  const DAY = 86400000;
  function age(started) {
    const days = Math.floor((Date.now() - Date.parse(started)) / DAY);
    return Number.isNaN(days) ? "" : days < 1 ? "today" : `${count(days)} ${days === 1 ? "day" : "days"} ago`;
  }

  // "" or why a newer record should be looked at.
  function stale(r) {
    const one = run(r), build = Data.target(r).build, later = newest.get(`build ${build}`);
    if (!one.started) return "";
    if (later && later.started.slice(0, 10) > one.started.slice(0, 10)) return `older than the newest record of ${build} (${later.started.slice(0, 10)})`;
    const suite = one.suites.map((s) => newest.get(`suite ${s}`)).find((s) => s && s.suite !== one.suite && s.started.slice(0, 10) > one.started.slice(0, 10));
    return suite ? `the suite has changed since (${suite.started.slice(0, 10)})` : "";
  }

  function words(r) {
    const { started } = run(r), late = stale(r);
    return started ? `asked ${started.slice(0, 10)}, ${age(started)}${late ? `; stale: ${late}` : ""}` : "date not recorded";
  }

  // The same for several rows: the oldest and the newest date, the age of the oldest, and how many are stale.
  function spread(rows) {
    let low = "", high = "", late = 0;
    for (const r of rows) {
      const day = run(r).started.slice(0, 10);
      if (!day) continue;
      if (!low || day < low) low = day;
      if (day > high) high = day;
      if (stale(r)) late++;
    }
    return low ? `asked ${low}${high > low ? ` to ${high}` : ""}, ${high > low ? "up to " : ""}${age(low)}${late ? `, ${count(late)} stale` : ""}` : "";
  }

  // Rules of other projects that say otherwise than cuDNN here: those that an audit of these rows found, and those that refuse what cuDNN accepts.
  // [{id, project, says, link, word, short}]; `word` is the audit's.
  let rules = null;
  function compiled() {
    const all = (texts) => texts.map((text) => Data.compile(Data.parse(text)));
    return raw.claims.flatMap((rule) => {
      try { return [{ ...rule, refuse: all(rule.refuse), unless: all(rule.unless) }]; } catch (error) { if (error instanceof Predicate.QueryError) return []; throw error; }
    });
  }
  const refuses = (rule, r) => rule.refuse.some((f) => f(r)) && !rule.unless.some((f) => f(r));
  const shown_ = new Map(raw.audit.flatMap((one) => one.shown.map(([c, t]) => `${c} ${t}`)).map((key) => [key, []]));
  for (const one of raw.audit) for (const [c, t] of one.shown) shown_.get(`${c} ${t}`).push({ ...one, short: one.word === "too loose" ? `${one.project} lets this through` : `${one.project} refuses this` });
  function otherwise(r) {
    const found = shown_.get(`${columns.case[r]} ${columns.target[r]}`) ?? [];
    if (Data.outcome(r).kind !== "good" || !raw.claims.length) return found;
    rules ??= compiled();
    return [...found, ...rules.filter((rule) => refuses(rule, r) && !found.some((one) => one.id === rule.id)).map((rule) => ({ ...rule, word: "", short: `${rule.project} refuses this` }))];
  }
  // Tests of the rows with which a rule disagrees that speaks of a word.
  function disagreeing(word) {
    const speaks = (one) => [one.id, one.project, one.says, one.link, one.word ?? ""].some((text) => text.toLowerCase().includes(word)), ids = new Set([...raw.claims, ...raw.audit].filter(speaks).map((one) => one.id));
    return ids.size ? (r) => otherwise(r).some((one) => ids.has(one.id)) : () => false;
  }

  return { run, age, words, stale, spread, otherwise, disagreeing };
})();
