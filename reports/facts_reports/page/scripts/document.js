// Small helpers for the document.
function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") e.className = value;
    else if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}
const at = (id) => document.getElementById(id);
const NUMBER = new Intl.NumberFormat("en");
const count = (n) => (n < 1000 ? String(n) : NUMBER.format(n));
const mark = (o) => element("span", { class: `mark ${o.kind}`, "aria-hidden": "true" }, o.mark);
const shell = (word) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
const shown = (v) => (v === null || v === undefined ? "" : typeof v === "number" ? (Number.isInteger(v) ? count(v) : String(Number(v.toPrecision(5)))) : typeof v === "object" ? JSON.stringify(v) : String(v));

const short = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

function copy(text, button) {
  const done = (word) => { const before = button.textContent; button.textContent = word; setTimeout(() => { button.textContent = before; }, 1200); };
  const byHand = () => {
    const box = element("textarea", { class: "hidden" });
    box.value = text;
    document.body.append(box);
    box.select();
    const ok = document.execCommand("copy");
    box.remove();
    done(ok ? "Copied" : "Press Ctrl+C");
  };
  if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(() => done("Copied"), byHand);
  else byHand();
}

function copyable(text) {
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", () => copy(text, button));
  return element("div", { class: "command" }, element("code", {}, text), button);
}

function smallTable(heads, lines, caption) {
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, element("table", { class: "small stack" }, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...lines.map((cells) => element("tr", {}, ...cells.map((c, i) => element("td", { "data-head": heads[i] }, c instanceof Node ? c : shown(c))))))));
}

// An address, or OWNER/NAME#NUMBER of the usual forge; anything else stays text.
function linked(address) {
  const issue = typeof address === "string" && /^([\w.-]+\/[\w.-]+)#(\d+)$/.exec(address);
  if (issue) return element("a", { href: `https://github.com/${issue[1]}/issues/${issue[2]}`, rel: "noreferrer noopener" }, address);
  return typeof address === "string" && /^https?:\/\/[^\s]+$/i.test(address) ? element("a", { href: address, rel: "noreferrer noopener" }, address) : shown(address);
}
