// Predicates of the case language; the twin of predicate.py (test/predicates.json holds both to one behaviour).
const Predicate = (() => {
  const TOKEN = /\s*(?:(<=|>=|!=|[()&|!=<>~,])|([^\s()&|!=<>~,]+))/y;

  const DEPTH = 60;

  class QueryError extends Error {}

  function distance(a, b) {
    const row = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      let last = row[0];
      row[0] = i;
      for (let j = 1; j <= b.length; j++) {
        const above = row[j];
        row[j] = Math.min(above + 1, row[j - 1] + 1, last + (a[i - 1] === b[j - 1] ? 0 : 1));
        last = above;
      }
    }
    return row[b.length];
  }

  function nearest(word, words) {
    let best = words[0], least = Infinity;
    for (const w of words) {
      const d = distance(word, w);
      if (d < least || (d === least && w < best)) { best = w; least = d; }
    }
    return best;
  }

  function tokens(text) {
    const out = [], end = text.trimEnd().length;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < end) {
      const match = TOKEN.exec(text), symbol = match[1] !== undefined, word = symbol ? match[1] : match[2];
      out.push({ word, symbol, column: TOKEN.lastIndex - word.length + 1 });
    }
    return out;
  }

  function parse(text, keys) {
    const list = tokens(text);
    let at = 0, depth = 0;
    const symbol = () => (at < list.length && list[at].symbol ? list[at].word : null);
    const fail = (what) => { throw new QueryError(`column ${at < list.length ? list[at].column : text.length + 1}: ${what}`); };
    const take = (s) => { if (symbol() !== s) fail(`expected '${s}'`); at++; };
    const word = (what) => { if (at >= list.length || list[at].symbol) fail(`expected ${what}`); return list[at++].word; };

    function joined(mark, name, inner) {
      const terms = [inner()];
      while (symbol() === mark) { at++; terms.push(inner()); }
      return terms.length === 1 ? terms[0] : { op: name, terms };
    }
    const either = () => joined("|", "or", () => joined("&", "and", negation));

    function negation() {
      if (symbol() !== "!" && symbol() !== "(") return leaf();
      if (++depth > DEPTH) fail(`more than ${DEPTH} ( and ! inside one another`);
      const not = list[at++].word === "!", inner = not ? { op: "not", term: negation() } : either();
      if (!not) take(")");
      depth--;
      return inner;
    }

    function leaf() {
      const start = at, key = word("a key");
      if (!keys.includes(key)) { at = start; fail(`no key '${key}'; nearest: ${nearest(key, keys)}`); }
      const op = symbol();
      if (["=", "!=", "<", "<=", ">", ">=", "~"].includes(op)) { at++; return { op, key, value: word(`a value after ${key}${op}`) }; }
      if (op === null && at < list.length && list[at].word === "in") {
        at++;
        take("(");
        const values = [word("a value")];
        while (symbol() === ",") { at++; values.push(word("a value")); }
        take(")");
        return { op: "in", key, value: values };
      }
      return fail(`expected = != < <= > >= ~ or in (...) after ${key}`);
    }

    const tree = either();
    if (at < list.length) fail("expected & or | between comparisons");
    return tree;
  }

  function version(text) {
    const parts = (text.split("-")[0].match(/\d{1,9}/g) || []).slice(0, 6).map(Number);
    while (parts.length && parts[parts.length - 1] === 0) parts.pop();
    return parts;
  }

  function compareVersions(a, b) {
    const left = version(a), right = version(b);
    for (let i = 0; i < Math.max(left.length, right.length); i++) {
      if (i >= left.length) return -1;
      if (i >= right.length) return 1;
      if (left[i] !== right[i]) return left[i] < right[i] ? -1 : 1;
    }
    return 0;
  }

  const number = (text) => (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(text) ? Number(text) : null);

  function order(key, left, right) {
    if (key === "cudnn" || key === "build") return compareVersions(left, right);
    const a = number(left), b = number(right);
    return a === null || b === null ? null : Math.sign(a - b);
  }

  function equal(key, left, right) {
    if (key === "cudnn") return compareVersions(left, right) === 0;
    const a = number(left);
    return left === right || (a !== null && a === number(right));
  }

  const globs = new Map();
  function glob(pattern) {
    if (!globs.has(pattern)) {
      const body = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, "*").replace(/\*/g, "[^]*").replace(/\?/g, "[^]");
      globs.set(pattern, new RegExp(`^${body}$`));
    }
    return globs.get(pattern);
  }

  // One leaf; null is "not known" and makes every comparison false.
  function compare({ op, key, value }, left) {
    if (left === null || left === undefined) return false;
    left = String(left);
    if (op === "~") return glob(value).test(left);
    if (op === "in") return value.some((v) => equal(key, left, v));
    if (op === "=" || op === "!=") return equal(key, left, value) === (op === "=");
    const o = order(key, left, value);
    return o !== null && (op === "<" ? o < 0 : op === "<=" ? o <= 0 : op === ">" ? o > 0 : o >= 0);
  }

  const leaves = (tree) => (tree.terms ? tree.terms.flatMap(leaves) : tree.term ? leaves(tree.term) : [tree]);

  return { parse, compare, compareVersions, leaves, QueryError };
})();
