// What Python means, for the program that page/translate.py made: its dicts, sets, tuples, whole numbers of any size, and the few parts of its library that the program uses.
const _ = (() => {
  const big = (v) => typeof v === "bigint";
  const fail = (kind, text) => { throw builtin[kind](text); };

  // ---- dicts and sets: keys are equal as in Python ----
  let ids = 0;
  const places = new WeakMap();
  const idOf = (o) => { if (!places.has(o)) places.set(o, ++ids); return places.get(o); };
  const inner = (k) => (typeof k === "string" ? JSON.stringify(k) : Array.isArray(k) ? `(${k.map(inner).join()})` : k === null || k === undefined ? "None" : typeof k === "object" || typeof k === "function" ? `#${idOf(k)}` : String(Number(k)));
  const key = (k) => (Array.isArray(k) ? `\u0001${inner(k)}` : typeof k === "boolean" ? Number(k) : big(k) && k <= Number.MAX_SAFE_INTEGER ? Number(k) : k ?? null);
  class Dict {
    constructor() { this.map = new Map(); }
    set(k, v) { const at = key(k), old = this.map.get(at); if (old) old[1] = v; else this.map.set(at, [k, v]); return this; }
    has(k) { return this.map.has(key(k)); }
    find(k, none = null) { const found = this.map.get(key(k)); return found ? found[1] : none; }
    get size() { return this.map.size; }
    *[Symbol.iterator]() { for (const [k] of this.map.values()) yield k; }
  }
  class Bag {
    constructor(items = []) { this.map = new Map(); for (const one of iter(items)) this.add(one); }
    add(v) { const at = key(v); if (!this.map.has(at)) this.map.set(at, v); }
    has(v) { return this.map.has(key(v)); }
    get size() { return this.map.size; }
    [Symbol.iterator]() { return this.map.values(); }
  }
  const dict = (pairs) => { const out = new Dict(); for (const [k, v] of pairs) out.set(k, v); return out; };

  // ---- truth, order, numbers ----
  const t = (v) => (v === null || v === undefined ? false : Array.isArray(v) || v instanceof Uint8Array ? v.length > 0 : v instanceof Dict || v instanceof Bag ? v.size > 0 : typeof v === "object" || typeof v === "function" ? true : !!v);
  const iter = (v) => (v !== null && v !== undefined && v[Symbol.iterator] ? v : fail("TypeError", "not iterable"));
  function eq(a, b) {
    if (a === b) return true;
    if (a === null || a === undefined || b === null || b === undefined) return (a ?? null) === (b ?? null);
    if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((v, i) => eq(v, b[i]));
    if (a instanceof Dict) return b instanceof Dict && a.size === b.size && [...a].every((k) => b.has(k) && eq(a.find(k), b.find(k)));
    if (a instanceof Bag) return b instanceof Bag && a.size === b.size && [...a].every((v) => b.has(v));
    return typeof a !== "object" && typeof b !== "object" && typeof a !== "string" && typeof b !== "string" && a == b;
  }
  function lt(a, b) {
    if (!Array.isArray(a)) return a < b;
    for (let i = 0; i < Math.min(a.length, b.length); i++) if (!eq(a[i], b[i])) return lt(a[i], b[i]);
    return a.length < b.length;
  }
  const integral = (v) => big(v) || Number.isInteger(Number(v));
  const arithmetic = (plain, large) => (a, b) => ((big(a) || big(b)) && integral(a) && integral(b) ? large(BigInt(a), BigInt(b)) : plain(Number(a), Number(b)));
  const whole = (v) => Number.isInteger(v) && v >= -0x80000000 && v <= 0x7fffffff;
  const bits = (plain, large) => (a, b) => { const x = typeof a === "boolean" ? Number(a) : a, y = typeof b === "boolean" ? Number(b) : b; return whole(x) && whole(y) ? plain(x, y) : large(BigInt(x), BigInt(y)); };
  const number = { add: arithmetic((a, b) => a + b, (a, b) => a + b), sub: arithmetic((a, b) => a - b, (a, b) => a - b), mul: arithmetic((a, b) => a * b, (a, b) => a * b),
    band: bits((a, b) => a & b, (a, b) => a & b), bor: bits((a, b) => a | b, (a, b) => a | b), bxor: bits((a, b) => a ^ b, (a, b) => a ^ b) };
  function add(a, b) { return typeof a === "string" ? a + b : Array.isArray(a) ? a.concat(b) : number.add(a, b); }
  function mul(a, b) {
    if (typeof a === "string") return a.repeat(Math.max(0, b));
    if (Array.isArray(a)) return Array.from({ length: a.length * Math.max(0, b) }, (__, i) => a[i % a.length]);
    if (a instanceof Uint8Array) return Uint8Array.from({ length: a.length * b }, (__, i) => a[i % a.length]);
    return number.mul(a, b);
  }
  const joined = (a, b) => new Bag([...a, ...b]);
  const operators = { add, mul, sub: (a, b) => (a instanceof Bag ? new Bag([...a].filter((v) => !b.has(v))) : number.sub(a, b)), div: (a, b) => Number(a) / Number(b), floordiv: (a, b) => (big(a) || big(b) ? BigInt(a) / BigInt(b) : Math.floor(a / b)),
    mod: (a, b) => { const rest = a % b; return rest && rest < 0 !== b < 0 ? rest + b : rest; }, band: (a, b) => (a instanceof Bag ? new Bag([...a].filter((v) => b.has(v))) : number.band(a, b)),
    bor: (a, b) => (a instanceof Bag ? joined(a, b) : number.bor(a, b)), bxor: number.bxor, shl: (a, b) => BigInt(a) << BigInt(b), shr: (a, b) => BigInt(a) >> BigInt(b) };
  const inPlace = Object.fromEntries(Object.entries(operators).map(([name, f]) => [`i${name}`, (a, b) => {
    if (name === "add" && Array.isArray(a)) { for (const one of iter(b)) a.push(one); return a; }
    if (name === "bor" && a instanceof Bag) { for (const one of b) a.add(one); return a; }
    if (name === "bor" && a instanceof Dict) { for (const k of b) a.set(k, b.find(k)); return a; }
    return f(a, b);
  }]));

  // ---- texts ----
  const repr = (v) => (typeof v === "string" ? `'${v}'` : Array.isArray(v) ? `[${v.map(repr).join(", ")}]` : v instanceof Dict ? `{${[...v].map((k) => `${repr(k)}: ${repr(v.find(k))}`).join(", ")}}` : str(v));
  const str = (v) => (typeof v === "string" ? v : v === null || v === undefined ? "None" : v === true ? "True" : v === false ? "False" : v === Infinity ? "inf" : v instanceof Array || v instanceof Dict ? repr(v) : v?.said ?? String(v));
  const grouped = (digits) => digits.replace(/^(-?\d+)/, (n) => n.replace(/\B(?=(\d{3})+$)/g, ","));
  // %.Ng; of two numbers that are as near the even one, which toPrecision() does not choose.
  function general(v, precision) {
    const [exact, exponent] = Math.abs(v).toExponential(100).split("e"), digits = exact.replace(".", ""), rest = digits.slice(precision), half = `5${"0".repeat(rest.length - 1)}`;
    let head = BigInt(digits.slice(0, precision)), power = Number(exponent);
    if (rest > half || (rest === half && head % 2n)) head++;
    let said = String(head);
    if (said.length > precision) { said = said.slice(0, -1); power++; }
    if (power >= precision || power < -4) said = `${said[0]}.${said.slice(1)}`;
    else said = power < 0 ? `0.${"0".repeat(-power - 1)}${said}` : `${said.slice(0, power + 1)}.${said.slice(power + 1)}`;
    return `${v < 0 ? "-" : ""}${said.replace(/\.?0*$/, "")}${power >= precision || power < -4 ? `e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}` : ""}`;
  }
  function format(v, spec) {
    if (!spec) return str(v);
    const [, zero, width, comma, precision, kind] = /^(0)?(\d+)?(,)?(?:\.(\d+))?([bgfd])?$/.exec(spec) ?? fail("ValueError", spec);
    let out = kind === "b" ? v.toString(2) : kind === "g" ? (v === 0 ? "0" : Number.isFinite(v) ? general(v, Number(precision)) : str(v)) : kind === "f" ? v.toFixed(Number(precision ?? 6)) : str(v);
    if (comma) out = grouped(out);
    return width ? out.padStart(Number(width), zero ? "0" : " ") : out;
  }
  const bytes = (said) => Uint8Array.from(said, (c) => c.charCodeAt(0));
  const trimmed = (s, chars, left, right) => { const drop = chars === undefined || chars === null ? /\s/ : { test: (c) => chars.includes(c) }; let a = 0, b = s.length; while (left && a < b && drop.test(s[a])) a++; while (right && b > a && drop.test(s[b - 1])) b--; return s.slice(a, b); };
  const starts = (s, w) => (Array.isArray(w) ? w.some((one) => s.startsWith(one)) : s.startsWith(w)), ends = (s, w) => (Array.isArray(w) ? w.some((one) => s.endsWith(one)) : s.endsWith(w));
  const ofText = {
    split: (s, by = null, most = -1) => { if (by === null) return s.trim() ? s.trim().split(/\s+/) : []; const all = s.split(by); return most < 0 || all.length <= most + 1 ? all : [...all.slice(0, most), all.slice(most).join(by)]; },
    partition: (s, by) => { const i = s.indexOf(by); return i < 0 ? [s, "", ""] : [s.slice(0, i), by, s.slice(i + by.length)]; },
    startswith: starts, endswith: ends, strip: (s, c) => trimmed(s, c, true, true), lstrip: (s, c) => trimmed(s, c, true, false), rstrip: (s, c) => trimmed(s, c, false, true),
    join: (s, list) => [...iter(list)].join(s), replace: (s, a, b) => s.replaceAll(a, () => b), isdigit: (s) => /^\d+$/.test(s), isprintable: (s) => /^[ -~]*$/.test(s) || /^(?:[^\p{C}\p{Z}]| )*$/u.test(s),
    lower: (s) => s.toLowerCase(), upper: (s) => s.toUpperCase(), removeprefix: (s, w) => (s.startsWith(w) ? s.slice(w.length) : s), removesuffix: (s, w) => (w && s.endsWith(w) ? s.slice(0, -w.length) : s),
    encode: (s) => new TextEncoder().encode(s), count: (s, w) => s.split(w).length - 1, format: (s, ...args) => s.replaceAll("{}", () => str(args.shift())), index: (s, w) => s.indexOf(w) };
  const ofList = { append: (a, v) => { a.push(v); }, extend: (a, b) => { a.push(...iter(b)); }, index: (a, v) => a.findIndex((one) => eq(one, v)), count: (a, v) => a.filter((one) => eq(one, v)).length, pop: (a) => a.pop(), tolist: (a) => a };
  const ofDict = { get: (d, k, none = null) => d.find(k, none), items: (d) => [...d.map.values()].map(([k, v]) => [k, v]), keys: (d) => [...d], values: (d) => [...d.map.values()].map(([, v]) => v),
    setdefault: (d, k, v = null) => { if (!d.has(k)) d.set(k, v); return d.find(k); }, update: (d, more) => { if (more instanceof Dict) for (const k of more) d.set(k, more.find(k)); else for (const [k, v] of iter(more)) d.set(k, v); },
    pop: (d, k, none = null) => { const v = d.find(k, none); d.map.delete(key(k)); return v; } };
  const ofBag = { add: (b, v) => b.add(v), update: (b, more) => { for (const one of iter(more)) b.add(one); }, discard: (b, v) => { b.map.delete(key(v)); }, pop: (b) => { const [v] = b; b.map.delete(key(v)); return v; } };
  const ofBytes = { translate: (b, table) => b.map((c) => table[c]), ljust: (b, n, fill = [32]) => { const out = new Uint8Array(Math.max(n, b.length)).fill(fill[0]); out.set(b); return out; }, decode: (b) => new TextDecoder().decode(b) };
  const tableOf = (o) => (typeof o === "string" ? ofText : Array.isArray(o) ? ofList : o instanceof Dict ? ofDict : o instanceof Bag ? ofBag : o instanceof Uint8Array ? ofBytes : null);

  // ---- attributes, items, calls ----
  function method(o, name) {
    const table = tableOf(o);
    if (table) return table[name] ? (...args) => table[name](o, ...args) ?? null : fail("AttributeError", `no method ${name} of ${str(o).slice(0, 40)}`);
    const f = o?.[name];
    if (typeof f !== "function") return fail("AttributeError", `no method ${name}`);
    return f.params && !Object.hasOwn(o, name) && !o.isClass ? def(f.params.slice(1), (...args) => f(o, ...args)) : f.params ? f : f.bind(o);
  }
  const attr = (o, name) => (tableOf(o) || (typeof o[name] === "function" && !Object.hasOwn(o, name)) ? method(o, name) : o[name] === undefined ? fail("AttributeError", `no ${name}`) : o[name]);
  const def = (params, f) => Object.assign(f, { params });
  const alone = (f) => def(["self", ...f.params], (self, ...args) => f(...args));   // a static method
  const named = (f, args, keywords) => (f.params ? f(...Object.entries(keywords).reduce((all, [k, v]) => { all[f.params.indexOf(k)] = v; return all; }, [...args])) : f(...args, { keywords }));
  function item(o, k) {
    if (o instanceof Dict) return o.has(k) ? o.find(k) : fail("KeyError", str(k));
    const at = Number(k) < 0 ? o.length + Number(k) : Number(k);
    if (typeof o.item === "function") return o.item(k);
    return at in Object(o) ? o[at] : fail("IndexError", String(k));
  }
  const put = (o, k, v) => { if (o instanceof Dict) o.set(k, v); else o[k < 0 ? o.length + k : k] = v; };
  const place = (o, k) => ({ set value(v) { put(o, k, v); } });
  function slice(o, from, to, step) {
    const list = typeof o === "string" || Array.isArray(o) || o instanceof Uint8Array ? o : [...iter(o)], out = list.slice(from ?? 0, to ?? undefined);
    return step === -1 ? [...out].reverse() : step ? [...out].filter((__, i) => i % step === 0) : out;
  }
  const has = (o, v) => (typeof o === "string" ? o.includes(v) : o instanceof Dict || o instanceof Bag ? o.has(v) : [...iter(o)].some((one) => eq(one, v)));

  // ---- classes ----
  function klass(name, kind, bases, fields, methods, getters) {
    const base = bases.find((b) => b?.isClass), proto = Object.create(base ? base.prototype : name === "Exception" ? Error.prototype : Object.prototype), all = [...base?.fields ?? [], ...fields];
    const make = (...args) => {
      const self = proto.__call__ ? Object.setPrototypeOf((...called) => proto.__call__(self, ...called), proto) : Object.create(proto);
      if (proto instanceof Error) self.stack = new Error(args[0]).stack;
      if (kind === "record") all.forEach(([field, none], i) => { self[field] = args[i] !== undefined ? args[i] : none ? none() : fail("TypeError", `${name} without ${field}`); });
      else if (proto.__init__) proto.__init__(self, ...args);
      else self.said = str(args[0] ?? "");
      return self;
    };
    Object.assign(proto, methods);
    for (const [word, f] of Object.entries(getters)) Object.defineProperty(proto, word, { get() { return f(this); } });
    if (kind === "record") {
      proto._replace = def(["self", ...all.map(([f]) => f)], (self, ...args) => make(...all.map(([f], i) => (args[i] === undefined ? self[f] : args[i]))));
      Object.defineProperty(proto, Symbol.iterator, { value() { return all.map(([f]) => this[f])[Symbol.iterator](); } });
    }
    return Object.assign(make, { isClass: true, prototype: proto, fields: all, params: kind === "record" ? all.map(([f]) => f) : proto.__init__ ? proto.__init__.params.slice(1) : ["said"], _make: (list) => make(...list) });
  }
  const init = (self, said) => { self.said = str(said); };

  // ---- builtins ----
  const keyed = (args) => { const last = args[args.length - 1]; return last && typeof last === "object" && "keywords" in last && Object.keys(last).length === 1 ? [args.slice(0, -1), last.keywords] : [args, {}]; };
  const best = (better) => (...given) => {
    const [args, { key: by, default: none }] = keyed(given), list = args.length === 1 ? [...iter(args[0])] : args;
    if (!list.length) return none === undefined ? fail("ValueError", "empty") : none;
    const keys = by ? list.map((v) => by(v)) : list;
    let at = 0;
    for (let i = 1; i < list.length; i++) if (better(keys[i], keys[at])) at = i;
    return list[at];
  };
  function sorted(list, by = null, reverse = false) {
    const keys = [...iter(list)].map((v, i) => [by ? by(v) : v, i, v]), order = (a, b) => (lt(a[0], b[0]) ? -1 : lt(b[0], a[0]) ? 1 : 0);
    return keys.sort((a, b) => (t(reverse) ? -order(a, b) : order(a, b)) || a[1] - b[1]).map((k) => k[2]);
  }
  const POP = Uint8Array.from({ length: 256 }, (__, n) => n.toString(2).replaceAll("0", "").length);
  function popcount(v) {
    if (!big(v)) return v.toString(2).replaceAll("0", "").length;
    const hex = v.toString(16);
    let n = 0;
    for (let i = 0; i < hex.length; i++) { const c = hex.charCodeAt(i); n += POP[c < 58 ? c - 48 : c - 87]; }
    return n;
  }
  const int = Object.assign((v = 0, base = 10) => {
    if (base === 2) { const digits = typeof v === "string" ? v : new TextDecoder().decode(v); return digits ? BigInt(`0b${digits}`) : fail("ValueError", "no digits"); }
    if (typeof v === "string") return /^\s*[+-]?\d+\s*$/.test(v) ? Number(v) : fail("ValueError", v);
    return Number.isFinite(Number(v)) ? Math.trunc(Number(v)) : fail("ValueError", str(v));
  }, { bit_count: popcount });
  const float = (v) => (typeof v === "string" ? (/^[+-]?inf$/i.test(v) ? (v[0] === "-" ? -Infinity : Infinity) : v === "nan" ? NaN : Number.isNaN(Number(v)) || !v.trim() ? fail("ValueError", v) : Number(v)) : Number(v));
  const bool = (v = false) => t(v), list = (v = []) => [...iter(v)], tuple = (v = []) => (v.fields ? v : [...iter(v)]), set = (v = []) => new Bag(v);
  const builtin = {
    int, float, bool, list, tuple, set, str: (v = "") => str(v), dict: Object.assign((v = []) => dict(v instanceof Dict ? ofDict.items(v) : iter(v)), { fromkeys: (v, to = null) => dict([...iter(v)].map((k) => [k, to])) }), frozenset: set, sorted: def(["list", "key", "reverse"], sorted), repr,
    len: (v) => ("length" in Object(v) ? v.length : v.size), min: best(lt), max: best((a, b) => lt(b, a)), sum: (v, from = 0) => { let out = from; for (const one of iter(v)) out = add(out, one); return out; },
    any: (v) => { for (const one of iter(v)) if (t(one)) return true; return false; }, all: (v) => { for (const one of iter(v)) if (!t(one)) return false; return true; },
    range: (a, b, step = 1) => { const [from, to] = b === undefined ? [0, a] : [a, b], out = []; for (let i = from; step > 0 ? i < to : i > to; i += step) out.push(i); return out; },
    enumerate: (v, from = 0) => [...iter(v)].map((one, i) => [i + from, one]), reversed: (v) => [...iter(v)].reverse(), map: (f, ...lists) => builtin.zip(...lists).map((args) => f(...args)), filter: (f, v) => [...iter(v)].filter((one) => t(f ? f(one) : one)),
    zip: (...lists) => { const all = lists.map((one) => (Array.isArray(one) ? one[Symbol.iterator]() : iter(one)[Symbol.iterator]())), out = []; for (;;) { const next = all.map((one) => one.next()); if (!next.length || next.some((one) => one.done)) return out; out.push(next.map((one) => one.value)); } },
    next: (v, none) => { for (const one of iter(v)) return one; return none === undefined ? fail("StopIteration", "") : none; },
    bytes: (v) => (v instanceof Uint8Array ? v : Uint8Array.from(iter(v))), bytearray: (v) => Uint8Array.from(v), abs: (v) => (v < 0 ? -v : v), round: (v, n = 0) => Math.round(v * 10 ** n) / 10 ** n, hasattr: () => true,
    getattr: (o, name) => attr(o, name), type: (v) => (typeof v === "string" ? builtin.str : typeof v === "boolean" ? bool : typeof v === "number" ? (Number.isInteger(v) ? int : float) : Array.isArray(v) ? list : v instanceof Dict ? builtin.dict : null),
    isinstance: (v, kinds) => (Array.isArray(kinds) ? kinds : [kinds]).some((kind) => {
      if (kind === int) return typeof v === "boolean" || big(v) || Number.isInteger(v);
      if (kind === float) return typeof v === "number" && !Number.isInteger(v);
      if (kind?.isClass) return v !== null && typeof v === "object" && (kind.prototype === Object.getPrototypeOf(v) || Object.prototype.isPrototypeOf.call(kind.prototype, v));
      return kind === tuple ? false : kind === builtin.type(null) ? v === null : kind !== undefined && builtin.type(v) === kind;
    }),
  };
  for (const name of ["Exception", "ValueError", "TypeError", "KeyError", "IndexError", "AttributeError", "StopIteration", "OSError", "RecursionError"]) {
    builtin[name] = klass(name, "plain", name === "Exception" ? [] : [builtin.Exception], [], {}, {});
  }

  // ---- the library ----
  class Match {
    constructor(found) { this.found = found; this.lastindex = found.reduce((last, one, i) => (i && one !== undefined ? i : last), 0) || null; }
    group(i = 0) { return this.found[i] ?? null; }
    item(i) { return this.group(i); }
    start(i = 0) { return this.found.indices[i][0]; }
    end(i = 0) { return this.found.indices[i][1]; }
  }
  const pattern = (source) => {
    const once = (flags, form, s, at = 0) => { const re = new RegExp(form, `d${flags}`); re.lastIndex = at; const found = re.exec(s); return found ? new Match(found) : null; };
    return { source, match: (s, at) => once("y", source, s, at), search: (s) => once("", source, s), fullmatch: (s) => once("", `^(?:${source})$`, s),
      sub: (to, s) => s.replace(new RegExp(source, "g"), typeof to === "function" ? (...found) => to(new Match(found.slice(0, -2))) : to.replace(/\\(\d)/g, "$$$1")), findall: (s) => [...s.matchAll(new RegExp(source, "g"))].map((one) => one[one.length > 1 ? 1 : 0]) };
  };
  const patterns = new Map();
  const compile = (source) => { if (!patterns.has(source)) patterns.set(source, pattern(source)); return patterns.get(source); };
  function* combinations(items, n) {
    const all = [...iter(items)];
    function* from(start, chosen) { if (chosen.length === n) { yield chosen; return; } for (let i = start; i < all.length; i++) yield* from(i + 1, [...chosen, all[i]]); }
    yield* from(0, []);
  }
  const lru_cache = () => (f) => { const seen = new Map(), kept = (...args) => { const at = inner(args); if (!seen.has(at)) seen.set(at, f(...args)); return seen.get(at); }; return f.params && !f.isClass ? def(f.params, kept) : kept; };
  const glob = (s, wild) => new RegExp(`^${wild.replaceAll("[[]", "[").replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, "[^]*").replace(/\?/g, "[^]")}$`).test(s);
  const outside = {
    math: { inf: Infinity, fmod: (a, b) => a % b, isfinite: (v) => Number.isFinite(v) }, re: { compile, sub: (p, to, s) => compile(p).sub(to, s), fullmatch: (p, s) => compile(p).fullmatch(s), findall: (p, s) => compile(p).findall(s), match: (p, s) => compile(p).match(s) },
    itertools: { combinations, compress: (values, keep) => { const k = [...iter(keep)]; return [...iter(values)].filter((__, i) => t(k[i])); }, repeat: function* repeat(v) { for (;;) yield v; }, islice: (v, n) => [...iter(v)].slice(0, n) },
    collections: { Counter: (v) => { const out = new Dict(); for (const one of iter(v)) out.set(one, out.find(one, 0) + 1); return out; } }, array: { array: (kind, v = []) => [...iter(v)] }, functools: { lru_cache },
    operator: { eq: (a, b) => eq(a, b), ne: (a, b) => !eq(a, b), lt: (a, b) => lt(a, b), le: (a, b) => !lt(b, a), gt: (a, b) => lt(b, a), ge: (a, b) => !lt(a, b), itemgetter: (...at) => (o) => at.map((i) => item(o, i)) },
    fnmatch: { fnmatchcase: glob }, marshal: { dumps: (v) => v, loads: (v) => v }, typing: { NamedTuple: undefined }, dataclasses: {}, pathlib: { PurePosixPath: (path) => ({ parent: { said: path.replace(/\/[^/]*$/, "") || "/" } }) },
  };
  const known = (value) => (Array.isArray(value) ? value.map(known) : value !== null && typeof value === "object" ? dict(Object.entries(value).map(([k, v]) => [k, known(v)])) : value);
  const plain = (v) => (v instanceof Dict ? Object.fromEntries(ofDict.items(v).map(([k, one]) => [k, plain(one)])) : Array.isArray(v) ? v.map(plain) : big(v) ? Number(v) : v);

  return { t, iter, eq, lt, is: (a, b) => (a ?? null) === (b ?? null), has, ...operators, ...inPlace, neg: (v) => -v, inv: (v) => ~v, and: (a, b) => (t(a) ? b() : a), or: (a, b) => (t(a) ? a : b()), format, bytes, tuple: (v) => v,
    dict, attr, method, named, item, place, slice, def, alone, klass, init, call: (f) => f(), builtin, outside, absent: (word) => fail("AttributeError", `${word} is not on the page`), known, plain };
})();
