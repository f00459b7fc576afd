// Predicates of the case language. cases/predicates.test says what they mean.
const Predicate = (() => {
  const TOKEN = /\s*(?:(<=|>=|!=|!~|==|&&|\|\||[()&|!=<>~,%])|"([^"]*)"|'([^']*)'|([^\s()&|!=<>~,%"']+)|([^]))/y;
  const SAME = { "==": "=", "&&": "&", "||": "|" };
  const ORDERED = ["<", "<=", ">", ">="];
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
      const match = TOKEN.exec(text), symbol = match[1] !== undefined, quoted = match[2] ?? match[3];
      const word = symbol ? SAME[match[1]] ?? match[1] : quoted ?? match[4];
      const column = TOKEN.lastIndex - (match[1] ?? match[4] ?? match[5] ?? `"${quoted}"`).length + 1;
      if (match[5] !== undefined) throw new QueryError(`column ${column}: a quote is not closed`);
      out.push({ word, symbol, column });
    }
    return out;
  }

  // `keys`: every key that may be asked for; `numbers`: a Set of those whose values are numbers.
  function parse(text, keys, numbers) {
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

    function modulus(key, start) {
      if (symbol() !== "%") return 0;
      if (!numbers.has(key)) { at = start; fail(`${key} is not a number`); }
      at++;
      const n = word("a whole number above 0 after %");
      if (!/^[1-9]\d{0,8}$/.test(n)) { at--; fail("expected a whole number above 0 after %"); }
      return Number(n);
    }

    function leaf() {
      const start = at, key = word("a key");
      if (!keys.includes(key)) { at = start; fail(`no key '${key}'; nearest: ${nearest(key, keys)}`); }
      const mod = modulus(key, start), op = symbol();
      if (ORDERED.includes(op) && !numbers.has(key) && key !== "cudnn") {
        const parts = keys.filter((k) => k.startsWith(`${key}.`));
        fail(`${key} has no order; ${parts.length ? `its parts have: ${parts.join(" ")}` : "= != ~ in apply"}`);
      }
      if (["=", "!=", "~", "!~", ...ORDERED].includes(op)) {
        at++;
        const value = word(`a value after ${key}${op}`);
        if (ORDERED.includes(op) && (key === "cudnn" ? !/^\d+(\.\d+)*$/.test(value) : !numbers.has(value) && number(value) === null)) { at--; fail(`${value} is not a ${key === "cudnn" ? "version, such as 9.10.2" : "number"}`); }
        return { op, key, value, mod, number: numbers.has(key), other: numbers.has(key) && numbers.has(value) };
      }
      if (op === null && at < list.length && list[at].word === "in") {
        at++;
        take("(");
        const values = [word("a value")];
        while (symbol() === ",") { at++; values.push(word("a value")); }
        take(")");
        return { op: "in", key, value: values, mod, number: numbers.has(key) };
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

  function number(text) {
    if (text === "inf") return Infinity;
    const plain = text.startsWith("sm_") ? text.slice(3) : text;
    return /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Number(plain) : null;
  }

  function order({ key, mod }, left, right) {
    if (key === "cudnn") return compareVersions(left, right);
    let a = number(left);
    const b = number(right);
    if (mod && a !== null) a = Number.isFinite(a) ? a % mod : null;
    return a === null || b === null ? null : a < b ? -1 : a > b ? 1 : 0;
  }

  function equal(leaf, left, right) {
    if (leaf.key !== "cudnn" && !leaf.number) return left === right;
    const o = order(leaf, left, right);
    return o === null ? left === right && !leaf.mod : o === 0;
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
  function compare(leaf, left, right = leaf.value) {
    if (left === null || left === undefined || right === null || right === undefined) return false;
    const { op } = leaf;
    left = String(left);
    if (op === "~" || op === "!~") return glob(right).test(left) === (op === "~");
    if (op === "in") return right.some((v) => equal(leaf, left, v));
    if (op === "=" || op === "!=") return equal(leaf, left, String(right)) === (op === "=");
    const o = order(leaf, left, String(right));
    return o !== null && (op === "<" ? o < 0 : op === "<=" ? o <= 0 : op === ">" ? o > 0 : o >= 0);
  }

  const leaves = (tree) => (tree.terms ? tree.terms.flatMap(leaves) : tree.term ? leaves(tree.term) : [tree]);

  return { parse, compare, compareVersions, leaves, QueryError };
})();
