// What changed between two versions. Python compared them (`facts diff`); this only shows it: each group with its cases side by side.
const Compare = (() => {
  const { targets, dict, columns, raw } = Data, MOST = 60;
  const labels = new Map(targets.map((t) => [t.build, t.label])), label = (build) => labels.get(build) ?? build;
  const every = [...raw.steps, ...raw.others];
  const builds = [...new Set(targets.map((t) => t.build))].filter((b) => every.some((s) => s.a === b || s.b === b));
  const kinds = { worse: "failure", "changed kind": "failure", lost: "failure", missing: "open", inconclusive: "open", "time unknown": "open", better: "good", gained: "good" };

  // A version, a label or a build as it may stand in an address.
  const buildOf = (word) => builds.find((b) => b === word) ?? builds.find((b) => label(b) === word) ?? builds.find((b) => targets.some((t) => t.build === b && t.cudnn === word)) ?? "";

  // The comparisons that lead from one version to another: one, or the steps between them, newest first.
  function path(a, b) {
    const whole = every.find((s) => s.a === a && s.b === b);
    if (whole) return [whole];
    const from = builds.indexOf(a), to = builds.indexOf(b);
    return from < 0 || to < 0 ? [] : raw.steps.filter((s) => builds.indexOf(s.a) >= from && builds.indexOf(s.b) <= to);
  }

  const chosen = (state) => ({ a: buildOf(state.a), b: buildOf(state.b) });

  // The answer to a case on one side (0 or 1) of a comparison; a comparison of dropped records has its own.
  function answer(step, c, device, side) {
    if (step.answers) {
      const [word, engine, why] = step.answers[device][step.names[c]][side], o = Data.outcomes.find((one) => one.word === word);
      return [mark(o), ` ${word} `, element("span", { class: "quiet" }, engine ? `engine ${engine}` : ""), why ? element("div", { class: "quiet why" }, short(why, 240)) : null];
    }
    const build = side ? step.b : step.a;
    const t = targets.findIndex((x) => x.build === build && x.device === device), r = t < 0 ? -1 : Data.rowOf(c, t);
    if (r < 0) return [element("span", { class: "quiet" }, "no row")];
    const o = Data.outcome(r), engines = [...new Set(dict.engines[columns.engines[r]].filter((e) => e && e.mode === "A").map((e) => e.index))], reason = dict.reason[columns.reason[r]];
    return [mark(o), ` ${o.word} `, element("span", { class: "quiet" }, engines.length ? `engine${engines.length > 1 ? "s" : ""} ${engines.join(" ")}` : dict.engine[columns.engine[r]] === null ? "" : `engine ${dict.engine[columns.engine[r]]}`),
      reason.text ? element("div", { class: "quiet why" }, `${reason.status ? `${reason.status}: ` : ""}${short(reason.text, 240)}`) : null];
  }

  function sideBySide(step, group, device = "") {
    const names = step.names ?? dict.case;
    const list = Object.entries(group.members).filter(([d]) => !device || d === device).flatMap(([d, cases]) => cases.map((c) => [d, c]));
    const body = list.slice(0, MOST).map(([d, c]) => element("tr", {}, element("td", { class: "case" }, element("code", {}, names[c])), element("td", {}, d),
      ...[step.a, step.b].map((build, side) => element("td", { "data-version": label(build) }, ...answer(step, c, d, side).filter(Boolean)))));
    const lines = step.names ? [] : Object.entries(group.members).filter(([d]) => !device || d === device).flatMap(([d, cases]) => [element("p", { class: "line quiet" }, `Accepted on ${d}, of ${count(cases.length)} cases`), Timeline.ofCases(cases, d)]);
    return element("div", { class: "inside" }, element("p", { class: "quiet" }, ...(group.where ? [element("code", {}, group.where), ": "] : []), `${group.exactness}.${group.change ? ` ${group.change}.` : ""}`), ...lines, copyable(group.repro), group.bisect ? copyable(group.bisect) : "",
      element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "The cases of the group, before and after" }, element("table", { class: "beside" }, element("caption", { class: "hidden" }, "The cases of the group, before and after"),
        element("thead", {}, element("tr", {}, ...["Case", "Device", label(step.a), label(step.b)].map((h) => element("th", { scope: "col" }, h)))), element("tbody", {}, ...body))),
      list.length > MOST ? element("p", { class: "quiet" }, `${count(list.length - MOST)} more cases.`) : "");
  }

  const nameOf = (step, place) => `${step.a}..${step.b}.${place}`;

  const total = (group) => Object.values(group.counts).reduce((n, m) => n + m, 0);
  const words = (group, cases = total(group)) => [element("span", { class: `mark ${kinds[group.class] ?? "refused"}`, "aria-hidden": "true" }, raw.changes[group.class]), " ", element("b", {}, `${count(cases)} ${group.class}`),
    group.known ? ` (${count(group.known)} known)` : "", ": ", group.words === group.where ? element("code", {}, group.where) : group.words, element("span", { class: "quiet of" }, `${group.before} → ${group.after}`)];

  function groupOf(step, group, place, state) {
    const cases = state.device ? group.counts[state.device] ?? 0 : total(group);
    if (!cases) return null;
    const name = nameOf(step, place), open = state.group === name;
    const button = element("button", { type: "button", class: "group", "data-group": name, "aria-expanded": String(open) }, ...words(group, cases));
    return element("li", {}, button, open ? sideBySide(step, group, state.device) : null);
  }

  function stepOf(step, state, alone) {
    const items = step.groups.map((g, i) => groupOf(step, g, i, state)).filter(Boolean);
    return [element("h3", {}, `${label(step.a)} → ${label(step.b)}`, element("span", { class: "sub" }, ` ${step.headline}${state.device && step.devices.length > 1 ? ` These counts are of ${step.devices.join(", ")}.` : ""}`)), items.length ? element("ul", { class: "groups" }, ...items) : element("p", { class: "quiet" }, "Nothing changed here."),
      ...(alone ? step.notes.map((n) => element("p", { class: "quiet" }, n)) : [])];
  }

  function render(state) {
    if (!every.length) return;
    const { a, b } = chosen(state), box = at("compare-result"), steps = a && b ? path(a, b) : raw.steps.slice(0, state.a ? 0 : 1), focus = document.activeElement?.dataset?.group;
    const shown = a && b ? { a, b } : steps[0] ?? { a: "", b: "" };
    at("from").value = shown.a;
    at("to").value = shown.b;
    const whole = steps.length === 1 && steps[0].a === shown.a && steps[0].b === shown.b;
    box.replaceChildren(...steps.flatMap((s) => stepOf(s, state, whole)));
    if (!steps.length) box.append(element("p", {}, a === b && a ? "Choose two versions." : "These records do not compare those two: the older version stands on the left."));
    else if (!whole) box.prepend(element("p", {}, `${count(steps.length)} steps, newest first. What is left of them in the end: `, element("code", {}, `facts diff --baseline ${label(a)} --candidate ${label(b)} RECORD`)));
    Keys.settle(box, "button.group");
    if (focus) [...box.querySelectorAll("button.group")].find((e) => e.dataset.group === focus)?.focus({ preventScroll: true });
  }

  function start() {
    if (!every.length) { at("versions").hidden = true; return; }
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

  // From a line of the first screen.
  function show(a, b, place) {
    const step = every.find((s) => s.a === a && s.b === b);
    State.set({ a, b, group: step && place !== undefined ? nameOf(step, place) : "" });
    at("compare").scrollIntoView();
    (at("compare-result").querySelector('button[aria-expanded="true"]') ?? at("compare-title")).focus({ preventScroll: true });
  }

  return { start, render, show, words, sideBySide };
})();
