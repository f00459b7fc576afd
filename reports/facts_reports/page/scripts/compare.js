// What changed between two versions: each group with its cases side by side. `facts gate` compared the pairs that stand in the data; for another the page has the command.
const Compare = (() => {
  const { targets, dict, columns, raw } = Data, MOST = 60;   // cases of a group
  const labels = new Map(targets.map((t) => [t.build, t.spec])), versions = new Map(targets.map((t) => [t.build, t.cudnn])), label = (build) => labels.get(build) ?? build;
  const order = (a, b) => Predicate.compareVersions(versions.get(a), versions.get(b)) || (a < b ? -1 : a > b ? 1 : 0);
  const builds = [...versions.keys()].filter((b) => b !== "none").sort(order);
  const kinds = { worse: "failure", "changed kind": "failure", lost: "failure", missing: "open", inconclusive: "open", "time unknown": "open", better: "good", gained: "good" };

  // ---- which two builds on which devices ----

  // Builds that a word of an address means: one by its name, all of a version, or all of the newest version that begins so.
  function named(word) {
    if (builds.includes(word)) return [word];
    const begun = builds.filter((b) => `${versions.get(b)}.`.startsWith(`${word}.`));
    return begun.filter((b) => versions.get(b) === versions.get(begun[begun.length - 1]));
  }

  // How many cases both builds answered on a device.
  const answered = (c, t) => { const r = Data.rowOf(c, t); return r >= 0 && Data.outcome(r).word !== "missing"; };
  function common(a, b, device) {
    const [one, other] = [a, b].map((build) => targets.findIndex((t) => t.build === build && t.device === device));
    return one < 0 || other < 0 ? 0 : dict.case.reduce((n, _, c) => n + (answered(c, one) && answered(c, other)), 0);
  }
  const devicesOf = (state) => (state.device ? [state.device] : Data.devices);
  const of = (steps, a, b, device) => steps.find((s) => s.a === a && s.b === b && (!device || s.devices.includes(device)));
  const made = (a, b, device) => of(raw.steps, a, b, device) ?? of(columns.others, a, b, device);

  // The two builds of an address, the older one first: of several builds those with the most cases in common. null: a word names none.
  function chosen(state) {
    if (!state.a && !state.b) return raw.steps.find((s) => !state.device || s.devices.includes(state.device)) ?? null;
    let best = null;
    for (const one of named(state.a)) {
      for (const other of named(state.b)) {
        const [a, b] = [one, other].sort(order), cases = a === b ? -1 : devicesOf(state).reduce((n, d) => n + common(a, b, d), made(a, b, state.device) ? 0.5 : 0);
        if (!best || cases > best.cases) best = { a, b, cases };
      }
    }
    return best;
  }

  // ---- what is shown ----

  // The answer to a case on one side (0 or 1) of a comparison.
  function answer(step, c, device, side) {
    const build = side ? step.b : step.a;
    const t = targets.findIndex((x) => x.build === build && x.device === device), r = t < 0 ? -1 : Data.rowOf(c, t);
    if (r < 0) return [element("span", { class: "quiet" }, "no row")];
    const o = Data.outcome(r), engines = [...new Set(dict.engines[columns.engines[r]].filter((e) => e && e.mode === "A").map((e) => e.index))], reason = dict.reason[columns.reason[r]];
    return [mark(o), ` ${o.word} `, element("span", { class: "quiet" }, engines.length ? `engine${engines.length > 1 ? "s" : ""} ${engines.join(" ")}` : dict.engine[columns.engine[r]] === null ? "" : `engine ${dict.engine[columns.engine[r]]}`),
      reason.text ? element("div", { class: "quiet why" }, `${reason.status ? `${reason.status}: ` : ""}${short(reason.text, 240)}`) : null];
  }

  function sideBySide(step, group, device = "") {
    const list = Object.entries(group.members).filter(([d]) => !device || d === device).flatMap(([d, cases]) => cases.map((c) => [d, c]));
    const body = list.slice(0, MOST).map(([d, c]) => element("tr", {}, element("td", { class: "case" }, element("code", {}, dict.case[c])), element("td", {}, Data.shownDevice(d)),
      ...[step.a, step.b].map((build, side) => element("td", { "data-version": label(build) }, ...answer(step, c, d, side).filter(Boolean)))));
    const lines = Object.entries(group.members).filter(([d]) => !device || d === device).flatMap(([d, cases]) => [element("p", { class: "line quiet" }, `Accepted on ${Data.shownDevice(d)}, of ${count(cases.length)} ${cases.length === 1 ? "case" : "cases"}`), Timeline.ofCases(cases, d)]);
    return element("div", { class: "inside" }, element("p", { class: "quiet" }, ...(group.where ? [element("code", {}, group.where), ": "] : []), `${group.exactness}.${group.change ? ` ${group.change}.` : ""}`), ...lines, copyable(group.repro), group.bisect ? copyable(group.bisect) : "",
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The cases of the group, before and after" }, element("table", { class: "beside" }, element("caption", { class: "hidden" }, "The cases of the group, before and after"),
        element("thead", {}, element("tr", {}, ...["Case", "Device", label(step.a), label(step.b)].map((h) => element("th", { scope: "col" }, h)))), element("tbody", {}, ...body))),
      list.length > MOST ? element("p", { class: "quiet" }, `${count(list.length - MOST)} more cases.`) : "");
  }

  const nameOf = (step, place) => `${step.a}..${step.b}.${place}`;

  const total = (group) => Object.values(group.counts).reduce((n, m) => n + m, 0);
  const words = (group, cases = total(group)) => [element("span", { class: `mark ${kinds[group.class] ?? "refused"}`, "aria-hidden": "true" }, raw.changes[group.class]), " ", element("b", {}, `${count(cases)} ${group.class}`),
    group.known ? ` (${count(group.known)} known)` : "", ": ", group.words === group.where ? element("code", {}, group.where) : group.words, group.on ? element("span", { class: "quiet" }, ` on ${group.on}`) : "", element("span", { class: "quiet of" }, `${group.before} → ${group.after}`)];

  function groupOf(step, group, place, state) {
    const cases = state.device ? group.counts[state.device] ?? 0 : total(group);
    if (!cases) return null;
    const name = nameOf(step, place), open = state.group === name;
    const button = element("button", { type: "button", class: "group", "data-group": name, "aria-expanded": String(open) }, ...words(group, cases));
    return element("li", {}, button, open ? sideBySide(step, group, state.device) : null);
  }

  function stepOf(step, state) {
    const part = state.device && step.devices.length > 1, items = step.groups.map((g, i) => groupOf(step, g, i, state)).filter(Boolean);
    return [element("h3", {}, `${label(step.a)} → ${label(step.b)}`, element("span", { class: "sub" }, ` ${part ? `On ${Data.shownDevice(state.device)}: ${step.headlines[state.device]}` : step.headline}`)),
      items.length ? element("ul", { class: "groups" }, ...items) : part ? null : element("p", { class: "quiet" }, "Nothing changed here."),
      ...(part ? [] : step.notes.map((n) => element("p", { class: "quiet" }, n)))].filter(Boolean);
  }

  const say = (...words) => [element("p", {}, ...words)];
  // What the page says of a choice.
  function answerTo(state, pair) {
    const unknown = ["a", "b"].map((side) => state[side]).filter((word) => word && !named(word).length);
    if (unknown.length) return say(`No build ${unknown.join(" and no build ")} here. These records have ${builds.map(label).join(", ")}.`);
    if (!pair && !state.a && !state.b) return say(`${Data.shownDevice(state.device)} was asked one version only.`);
    if (!pair || pair.a === pair.b) return say("Choose two versions.");
    const step = made(pair.a, pair.b, state.device), { device } = state, ofBoth = `--baseline ${shell(label(pair.a))} --candidate ${shell(label(pair.b))}`, both = `${label(pair.a)} and ${label(pair.b)}`;
    if (step) return stepOf(step, state);
    if (!devicesOf(state).some((d) => common(pair.a, pair.b, d))) return [...say(`${both} are not compared${device ? ` on ${Data.shownDevice(device)}` : ""}: these records have no case that both answered there. This command asks both:`),
      copyable(`facts gate ${ofBoth}${device ? ` --device ${shell(targets.find((t) => t.device === device).ask)}` : ""}`)];
    const files = raw.files.length > 4 ? "RECORD..." : raw.files.map(shell).join(" ");
    return [...say(`This page does not hold the comparison of ${both}. This command prints it:`), copyable(`facts gate ${files} ${ofBoth}${device ? ` --where ${shell(`device=${device}`)}` : ""}`)];
  }

  function render(state) {
    if (builds.length < 2) return;
    const pair = chosen(state), box = at("compare-result"), focus = document.activeElement?.dataset?.group;
    at("from").value = pair ? pair.a : "";
    at("to").value = pair ? pair.b : "";
    box.replaceChildren(...answerTo(state, pair), ...(pair && pair.a !== pair.b ? Issues.between(pair.a, pair.b, state.device, label) : []));
    Keys.settle(box, "button.group");
    if (focus) [...box.querySelectorAll("button.group")].find((e) => e.dataset.group === focus)?.focus({ preventScroll: true });
  }

  function start() {
    if (builds.length < 2) { at("versions").hidden = true; return; }
    for (const id of ["from", "to"]) {
      at(id).append(...builds.map((b) => element("option", { value: b }, label(b))));
      at(id).addEventListener("change", () => State.set({ a: at("from").value, b: at("to").value }));
    }
    Keys.rove(at("compare-result"), "button.group");
    at("compare-result").addEventListener("click", (event) => {
      const name = event.target.closest("button.group")?.dataset.group;
      if (name) State.set({ group: State.get().group === name ? "" : name });
    });
  }

  // The answer, in view and with the focus.
  function toResult() {
    at("compare").scrollIntoView();
    (at("compare-result").querySelector('button[aria-expanded="true"]') ?? at("compare-title")).focus({ preventScroll: true });
  }

  // From a line of the first screen.
  function show(a, b, place) {
    const step = made(a, b), { device } = State.get();
    State.set({ a, b, group: step && place !== undefined ? nameOf(step, place) : "", device: step?.devices.includes(device) ? device : "" }, { entry: true });
    toResult();
  }

  return { start, render, show, toResult, label };
})();
