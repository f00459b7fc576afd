// Pictures of numbers: how near to their bounds the errors are, where an error sits, how fast each engine is.
const Numbers = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  function svg(tag, attributes = {}, ...children) {
    const e = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
  }

  // ---- errors against bounds: a bar for each power of two, the bound between two of them ----

  const WIDTH = 13, HEIGHT = 44;
  function distribution({ tensor, gate, bins }, low) {
    const most = Math.max(...bins), total = bins.reduce((a, b) => a + b, 0), bound = 1 - low, above = bins.slice(bound).reduce((a, b) => a + b, 0);
    const nearest = bins.reduce((a, n, i) => (n ? i : a), 0), name = (i) => (i === 0 ? `below 2^${low}` : i === bins.length - 1 ? `2^${low + i - 1} and more` : `2^${low + i - 1} to 2^${low + i}`);
    const words = `${tensor}, gate ${gate}: ${count(total)} checks, ${count(above)} above the bound, the largest ${name(nearest)} of it`;
    const bars = bins.map((n, i) => {
      const h = n ? Math.max(2, Math.log1p(n) / Math.log1p(most) * HEIGHT) : 0;
      return svg("rect", { x: i * WIDTH + 1, y: HEIGHT - h, width: WIDTH - 2, height: h, class: i >= bound ? "above" : "below" }, svg("title", {}, `${name(i)} of the bound: ${count(n)}`));
    });
    const picture = svg("svg", { class: "bars", role: "img", "aria-label": words, viewBox: `0 0 ${bins.length * WIDTH} ${HEIGHT + 12}`, width: bins.length * WIDTH, height: HEIGHT + 12 }, ...bars,
      svg("line", { x1: bound * WIDTH, x2: bound * WIDTH, y1: 0, y2: HEIGHT + 2, class: "bound" }), svg("text", { x: bound * WIDTH, y: HEIGHT + 11, "text-anchor": "middle" }, "bound"), svg("text", { x: 0, y: HEIGHT + 11 }, `2^${low}`));
    return element("figure", {}, picture, element("figcaption", {}, element("b", {}, tensor), ` ${gate}`, element("span", { class: "quiet" }, ` ${count(total)}${above ? `, ${count(above)} above` : ""}`)));
  }

  // ---- where an error sits: the maps of `facts repro`, drawn ----

  const SHADES = { ".": 0, "-": 0.25, "+": 0.45, "#": 0.7, "@": 1 }, SIDE = 7;
  function maps(text) {
    const out = [], words = [];
    for (const line of text.split("\n")) {
      const row = /^\s*([\d-]+) \|([.\-+#@]+)\|$/.exec(line), title = /^\s*(\S+ down, .*)$/.exec(line);
      if (title) out.push({ title: title[1], rows: [] });
      else if (row && out.length) out[out.length - 1].rows.push({ label: row[1], cells: [...row[2]] });
      else if (line.trim() && !line.includes(". none")) words.push(line.trim());
    }
    return { words, maps: out.filter((m) => m.rows.length) };
  }

  function picture(tensor, text) {
    const found = maps(String(text));
    return element("div", { class: "pictures" }, element("p", { class: "line" }, element("b", {}, `Where ${tensor} is wrong `), found.words.join("; ")), ...found.maps.map((m) => {
      const across = m.rows[0].cells.length, words = `${tensor}: ${m.title}`;
      return element("figure", {}, svg("svg", { class: "where", role: "img", "aria-label": words, viewBox: `0 0 ${across * SIDE} ${m.rows.length * SIDE}`, width: across * SIDE, height: m.rows.length * SIDE },
        ...m.rows.flatMap((row, y) => row.cells.map((sign, x) => svg("rect", { x: x * SIDE, y: y * SIDE, width: SIDE - 1, height: SIDE - 1, class: SHADES[sign] ? "wrong" : "right", "fill-opacity": SHADES[sign] || 1 }, svg("title", {}, `${row.label}: ${sign}`))))),
      element("figcaption", { class: "quiet" }, m.title));
    }));
  }

  // ---- times ----

  const MOST = 400;
  function speed(line, most, peaks) {
    const bar = element("span", { class: "speed" }, element("span", { class: "bar" })), top = peaks[line.device] || most;
    bar.firstChild.style.setProperty("--part", `${Math.min(100, 100 * line.tflops / top).toFixed(1)}%`);
    return [element("code", {}, line.case), line.build, line.device, element("span", {}, line.engine, line.mark ? element("b", {}, ` ${line.mark}`) : ""), shown(Number(line.us.toPrecision(4))), element("span", {}, shown(Number(line.tflops.toPrecision(3))), " ", bar), line.share ? `${Math.round(100 * line.share)} % of its ${line.limit}` : "", line.change];
  }

  function start() {
    const { errors, speeds } = Data.raw.figures, box = at("numbers");
    if (!errors.tensors.length && !speeds.lines.length) { box.hidden = true; return; }
    if (errors.tensors.length) {
      box.append(element("p", { class: "quiet" }, "How large the errors are against their bounds, for each tensor and the gate that came nearest. Both scales are logarithmic; right of the line is wrong. Gates: t0 exact values, t1 each element, t2 each row, t3 the whole tensor, tg gain, ts sign, tl statistics."),
        element("div", { class: "figures" }, ...errors.tensors.map((one) => distribution(one, errors.low))));
    }
    if (speeds.lines.length) {
      const peaks = Object.entries(speeds.peaks).filter(([, p]) => p).map(([d, p]) => `${d}: ${shown(Number(p.toPrecision(4)))} TFLOP/s`), most = Math.max(...speeds.lines.map((l) => l.tflops));
      const cases = new Set(speeds.lines.map((l) => l.case)).size, more = speeds.lines.length - MOST;
      box.append(smallTable(["Case", "Build", "Device", "Engine", "µs", "TFLOP/s", "Share of the card", "Against the first"], speeds.lines.slice(0, MOST).map((l) => speed(l, most, speeds.peaks)),
        `Times of ${count(cases)} ${cases === 1 ? "case" : "cases"}${more > 0 ? `, without the last ${count(more)} rows` : ""}. A bar is as long as its part of ${peaks.length ? `the card's bf16 GEMM (${peaks.join("; ")})` : "the fastest case"}`));
    }
  }

  return { start, picture };
})();
