"""Python of this package as JavaScript, so that the page runs the rule of `facts diff` and no copy of it. scripts/python.js is what the result needs at run time.

What the program `page/dropped.py` reaches is translated, nothing else. A construct that is not known here is an error, not a guess.
"""

import ast
import json
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_RESERVED = frozenset(
    "arguments await case catch const debugger default delete do enum eval export extends function implements instanceof interface let new null package private protected "
    "public static super switch this throw typeof undefined var void _".split()
)
_BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "div",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "BitAnd": "band",
    "BitOr": "bor",
    "BitXor": "bxor",
    "LShift": "shl",
    "RShift": "shr",
}
_COMPARE = {
    "Eq": "eq({}, {})",
    "NotEq": "!_.eq({}, {})",
    "Lt": "lt({}, {})",
    "Gt": "lt({1}, {0})",
    "LtE": "!_.lt({1}, {0})",
    "GtE": "!_.lt({}, {})",
    "In": "has({1}, {0})",
    "NotIn": "!_.has({1}, {0})",
    "Is": "is({}, {})",
    "IsNot": "!_.is({}, {})",
}


class TranslateError(ValueError):
    """A construct without a translation: where, and what."""


def _assigned(nodes):
    """Names that a function's body binds; a comprehension and a function inside have names of their own."""
    names = {}

    def look(node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = True
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            names.update(
                dict.fromkeys(w.target.id for w in ast.walk(node) if isinstance(w, ast.NamedExpr))
            )
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = True
        if isinstance(node, ast.ExceptHandler) and node.name:
            names[node.name] = True
        for child in ast.iter_child_nodes(node):
            look(child)

    for node in nodes:
        look(node)
    return set(names) - {
        name
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Nonlocal)
        for name in inner.names
    }


class _Module:
    """One file: its top-level definitions by name, and what its imports mean."""

    def __init__(self, name):
        self.name, self.defs, self.imports = name, {}, {}
        path = _PACKAGE / (name.replace(".", "/") + ".py")
        for place, node in enumerate(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.ImportFrom):
                base = name.rpartition(".")[0] if node.level == 1 else ""
                for one in node.names:
                    self.imports[one.asname or one.name] = self._meaning(node, base, one.name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    self.imports[one.asname or one.name] = ("outside", one.name, None)
            else:
                for defined in (
                    [node.name]
                    if isinstance(node, (ast.FunctionDef, ast.ClassDef))
                    else sorted(_assigned([node]))
                ):
                    self.defs[defined] = (place, node)

    @staticmethod
    def _meaning(node, base, name):
        """(inside, module, name or None) or (outside, module, name)."""
        if not node.level:
            return "outside", node.module, name
        whole = ".".join(part for part in (base, node.module) if part)
        inside = _PACKAGE / (whole.replace(".", "/") + ".py")
        return (
            ("inside", whole, name)
            if whole and inside.is_file()
            else ("inside", ".".join(part for part in (whole, name) if part), None)
        )


class _Program:
    """What the roots reach, in an order in which each module stands after those that it uses."""

    def __init__(self, roots, instead):
        self.modules, self.reached, self.order, self.instead = {}, {}, [], instead
        for module, name in roots:
            self.reach(module, name)

    def module(self, name):
        if name not in self.modules:
            self.modules[name] = _Module(name)
            for kind, other, _ in self.modules[name].imports.values():
                if kind == "inside" and not other.startswith(self.instead["outside"]):
                    self.module(other)
            self.order.append(name)
        return self.modules[name]

    def is_outside(self, module):
        return module.startswith(self.instead["outside"])

    def reach(self, module, name):
        if (
            self.is_outside(module)
            or (module, name) in self.reached
            or name not in self.module(module).defs
        ):
            return
        self.reached[module, name] = ""
        if (said := self.instead["code"].get((module, name))) is not None:
            self.reached[module, name] = f"{_module_name(module)}.{name} = {said};"
            return
        _, node = self.module(module).defs[name]
        self.reached[module, name] = _Function(self, self.module(module)).top(name, node)

    def text(self):
        out = []
        for module in self.order:
            mine = [
                (self.modules[module].defs[name][0], code)
                for (m, name), code in self.reached.items()
                if m == module
            ]
            if mine:
                out += [f"const {_module_name(module)} = {{}};"] + list(
                    dict.fromkeys(code for _, code in sorted(mine))
                )
        return "\n".join(out)


def _module_name(module):
    return "m_" + module.replace(".", "_")


class _Function:
    """Translates the nodes of one module. `scopes`: the names that the functions around bind."""

    def __init__(self, program, module):
        self.program, self.module, self.scopes = program, module, []

    # ---- names ----

    def name(self, word):
        if any(word in scope for scope in self.scopes):
            return word + "$" if word in _RESERVED else word
        if word in self.module.defs:
            self.program.reach(self.module.name, word)
            return f"{_module_name(self.module.name)}.{word}"
        kind, module, name = self.module.imports.get(word, ("builtin", "", word))
        if kind == "inside" and name and not self.program.is_outside(module):
            self.program.reach(module, name)
            return f"{_module_name(module)}.{name}"
        return (
            f"_.{kind}.{module.replace('.', '_')}{'.' + name if name else ''}"
            if kind == "outside"
            else f"_.builtin.{name}"
            if kind == "builtin"
            else f"_.absent({json.dumps(word)})"
        )

    def attribute(self, node):
        """The attribute of a module, or None."""
        if isinstance(node.value, ast.Name) and not any(
            node.value.id in scope for scope in self.scopes
        ):
            kind, module, name = self.module.imports.get(node.value.id, ("", "", ""))
            if kind == "inside" and name is None and not self.program.is_outside(module):
                self.program.reach(module, node.attr)
                return f"{_module_name(module)}.{node.attr}"
            if kind == "outside" and name is None:
                return f"_.outside.{module.replace('.', '_')}.{node.attr}"
        return None

    # ---- statements ----

    def top(self, name, node):
        if isinstance(node, ast.FunctionDef):
            return f"{_module_name(self.module.name)}.{name} = {self.function(node)};"
        if isinstance(node, ast.ClassDef):
            return f"{_module_name(self.module.name)}.{name} = {self.klass(node)};"
        return self.statement(node)

    def fail(self, node):
        raise TranslateError(
            f"{self.module.name}.py, line {getattr(node, 'lineno', '?')}: {type(node).__name__} has no translation"
        )

    def block(self, nodes):
        return " ".join(self.statement(node) for node in nodes)

    def statement(self, node):
        return getattr(self, "s_" + type(node).__name__, self.fail)(node)

    def s_Expr(self, node):
        return "" if isinstance(node.value, ast.Constant) else self.e(node.value) + ";"

    def s_Return(self, node):
        return f"return {self.e(node.value) if node.value else 'null'};"

    def s_Pass(self, _):
        return ""

    s_Nonlocal = s_Pass

    def s_Continue(self, _):
        return "continue;"

    def s_Break(self, _):
        return "break;"

    def s_Assign(self, node):
        value, targets = self.e(node.value), node.targets
        if len(targets) > 1:
            return f"{{ const $v = {value}; {' '.join(self.assign(target, '$v') for target in targets)} }}"
        return self.assign(targets[0], value)

    def s_AnnAssign(self, node):
        return self.assign(node.target, self.e(node.value)) if node.value else ""

    def s_AugAssign(self, node):
        op = _BINARY[type(node.op).__name__]
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.assign(node.target, f"_.i{op}({self.e(read)}, {self.e(node.value)})")

    def assign(self, target, value):
        return f"({self.target(target)} = {self.unpacked(target, value)});"

    @staticmethod
    def unpacked(target, value):
        return f"_.iter({value})" if isinstance(target, (ast.Tuple, ast.List)) else value

    def target(self, node):
        """What stands on the left."""
        if isinstance(node, (ast.Tuple, ast.List)):
            return f"[{', '.join(self.target(one) for one in node.elts)}]"
        if isinstance(node, ast.Starred):
            return f"...{self.target(node.value)}"
        if isinstance(node, ast.Attribute):
            return f"{self.e(node.value)}.{node.attr}"
        if isinstance(node, ast.Subscript):
            return f"_.place({self.e(node.value)}, {self.e(node.slice)}).value"
        return self.name(node.id) if isinstance(node, ast.Name) else self.fail(node)

    def s_If(self, node):
        return f"if ({self.truth(node.test)}) {{ {self.block(node.body)} }}" + (
            f" else {{ {self.block(node.orelse)} }}" if node.orelse else ""
        )

    def s_While(self, node):
        return f"while ({self.truth(node.test)}) {{ {self.block(node.body)} }}"

    def s_For(self, node):
        if node.orelse:
            self.fail(node)
        return f"for ({self.target(node.target)} of _.iter({self.e(node.iter)})) {{ {self.block(node.body)} }}"

    def s_Raise(self, node):
        return f"throw {self.e(node.exc)};"

    def s_Try(self, node):
        if node.finalbody or node.orelse:
            self.fail(node)
        caught = ""
        for handler in node.handlers:
            bound = f"({self.name(handler.name)} = $e); " if handler.name else ""
            caught += f"if (_.builtin.isinstance($e, {self.e(handler.type)})) {{ {bound}{self.block(handler.body)} }} else "
        return f"try {{ {self.block(node.body)} }} catch ($e) {{ {caught}throw $e; }}"

    def s_FunctionDef(self, node):
        return f"{self.name(node.name)} = {self.function(node)};"

    # ---- functions and classes ----

    def function(self, node):
        args = node.args
        if args.kwarg or args.posonlyargs:
            self.fail(node)
        params = [a.arg for a in args.args + args.kwonlyargs]
        defaults = (
            [None] * (len(args.args) - len(args.defaults)) + args.defaults + list(args.kw_defaults)
        )
        given = [self.e(d) if d is not None else None for d in defaults]
        body = node.body if isinstance(node.body, list) else [ast.Return(node.body)]
        bound = _assigned(body) - set(params)
        self.scopes.append(set(params) | bound | ({args.vararg.arg} if args.vararg else set()))
        heads = [
            self.name(p) + (f" = {d}" if d is not None else "") for p, d in zip(params, given)
        ] + ([f"...{self.name(args.vararg.arg)}"] if args.vararg else [])
        local = f"let {', '.join(sorted(self.name(b) for b in bound))}; " if bound else ""
        star = "*" if self.yields(body) else ""
        said = f"_.def({json.dumps(params)}, function{star} ({', '.join(heads)}) {{ {local}{self.block(body)}{'' if star else ' return null;'} }})"
        self.scopes.pop()
        for decorator in getattr(node, "decorator_list", []):
            said = (
                f"_.outside.functools.lru_cache()({said})"
                if "lru_cache" in ast.unparse(decorator)
                else said
            )
        return said

    @staticmethod
    def yields(body):
        found, left = False, list(body)
        while left:
            node = left.pop()
            found |= isinstance(node, (ast.Yield, ast.YieldFrom))
            left += (
                []
                if isinstance(node, (ast.FunctionDef, ast.Lambda))
                else list(ast.iter_child_nodes(node))
            )
        return found

    def klass(self, node):
        decorators = [ast.unparse(d).partition("(")[0] for d in node.decorator_list]
        bases = [self.e(base) for base in node.bases]
        fields, methods, getters = [], [], []
        for one in node.body:
            if isinstance(one, ast.AnnAssign):
                fields.append(
                    f"[{json.dumps(one.target.id)}{', () => ' + self.default(one.value) if one.value else ''}]"
                )
            elif isinstance(one, ast.FunctionDef):
                marks, said = [ast.unparse(d) for d in one.decorator_list], self.function(one)
                (getters if "property" in marks else methods).append(
                    f"{json.dumps(one.name)}: {f'_.alone({said})' if 'staticmethod' in marks else said}"
                )
            elif not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)):
                self.fail(one)
        kind = (
            "record"
            if "dataclass" in decorators or "_.outside.typing.NamedTuple" in bases
            else "plain"
        )
        return f"_.klass({json.dumps(node.name)}, {json.dumps(kind)}, [{', '.join(bases)}], [{', '.join(fields)}], {{ {', '.join(methods)} }}, {{ {', '.join(getters)} }})"

    def default(self, node):
        """A field's default, created for each object."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "field":
            return f"_.call({self.e(node.keywords[0].value)})"
        return self.e(node)

    # ---- expressions ----

    def e(self, node):
        return getattr(self, "e_" + type(node).__name__, self.fail)(node)

    def truth(self, node):
        return f"_.t({self.e(node)})"

    def e_Constant(self, node):
        if isinstance(node.value, bytes):
            return f"_.bytes({json.dumps(node.value.decode('latin-1'))})"
        return json.dumps(node.value)

    def e_Name(self, node):
        return self.name(node.id)

    def e_Attribute(self, node):
        return self.attribute(node) or f"_.attr({self.e(node.value)}, {json.dumps(node.attr)})"

    def e_JoinedStr(self, node):
        return "[" + ", ".join(self.e(one) for one in node.values) + '].join("")'

    def e_FormattedValue(self, node):
        return f"_.format({self.e(node.value)}, {self.e(node.format_spec) if node.format_spec else json.dumps('')})"

    def e_BinOp(self, node):
        return f"_.{_BINARY[type(node.op).__name__]}({self.e(node.left)}, {self.e(node.right)})"

    def e_UnaryOp(self, node):
        return {
            "Not": f"!{self.truth(node.operand)}",
            "USub": f"_.neg({self.e(node.operand)})",
            "Invert": f"_.inv({self.e(node.operand)})",
        }[type(node.op).__name__]

    def e_BoolOp(self, node):
        *first, said = [self.e(one) for one in node.values]
        for one in reversed(first):
            said = f"_.{'and' if isinstance(node.op, ast.And) else 'or'}({one}, () => {said})"
        return said

    def e_Compare(self, node):
        if len(node.ops) == 1:
            return self.compared(node.ops[0], self.e(node.left), self.e(node.comparators[0]))
        names = [f"$c{i}" for i in range(len(node.ops) + 1)]
        said = " && ".join(self.compared(op, a, b) for op, a, b in zip(node.ops, names, names[1:]))
        return f"(({', '.join(names)}) => {said})({', '.join(self.e(one) for one in [node.left, *node.comparators])})"

    @staticmethod
    def compared(op, left, right):
        form = _COMPARE[type(op).__name__]
        return (form if form.startswith("!") else "_." + form).format(left, right)

    def e_IfExp(self, node):
        return f"({self.truth(node.test)} ? {self.e(node.body)} : {self.e(node.orelse)})"

    def e_Lambda(self, node):
        return self.function(node)

    def e_NamedExpr(self, node):
        return f"({self.name(node.target.id)} = {self.e(node.value)})"

    def e_List(self, node):
        return f"[{', '.join(self.e(one) for one in node.elts)}]"

    def e_Tuple(self, node):
        return f"_.tuple({self.e_List(node)})"

    def e_Set(self, node):
        return f"_.builtin.set({self.e_List(node)})"

    def e_Starred(self, node):
        return f"..._.iter({self.e(node.value)})"

    def e_Dict(self, node):
        return (
            "_.dict(["
            + ", ".join(
                f"[{self.e(k)}, {self.e(v)}]" if k else f"..._.method({self.e(v)}, 'items')()"
                for k, v in zip(node.keys, node.values)
            )
            + "])"
        )

    def e_Subscript(self, node):
        if isinstance(node.slice, ast.Slice):
            return f"_.slice({self.e(node.value)}, {', '.join(self.e(part) if part else 'null' for part in (node.slice.lower, node.slice.upper, node.slice.step))})"
        return f"_.item({self.e(node.value)}, {self.e(node.slice)})"

    def e_Yield(self, node):
        return f"(yield {self.e(node.value)})"

    def e_YieldFrom(self, node):
        return f"(yield* _.iter({self.e(node.value)}))"

    def e_Call(self, node):
        args = [self.e(one) for one in node.args]
        if any(k.arg is None for k in node.keywords):
            self.fail(node)
        named = (
            f"{{ {', '.join(f'{json.dumps(k.arg)}: {self.e(k.value)}' for k in node.keywords)} }}"
            if node.keywords
            else ""
        )
        if ast.unparse(node.func) == "super().__init__":
            return f"_.init(self, {', '.join(args)})"
        if isinstance(node.func, ast.Attribute) and not self.attribute(node.func):
            called = f"_.method({self.e(node.func.value)}, {json.dumps(node.func.attr)})"
        else:
            called = self.e(node.func)
        return (
            f"_.named({called}, [{', '.join(args)}], {named})"
            if named
            else f"{called}({', '.join(args)})"
        )

    def comprehension(self, node, yielded):
        """A generator over the clauses; their names are its own."""
        first = self.e(node.generators[0].iter)
        mine = {
            name.id
            for one in node.generators
            for name in ast.walk(one.target)
            if isinstance(name, ast.Name)
        }
        self.scopes.append(mine)
        local = ", ".join(sorted(map(self.name, mine)))
        said = f"yield {yielded()};"
        for place in range(len(node.generators) - 1, -1, -1):
            one = node.generators[place]
            for test in reversed(one.ifs):
                said = f"if ({self.truth(test)}) {said}"
            said = f"for ({self.target(one.target)} of _.iter({'$first' if not place else self.e(one.iter)})) {{ {said} }}"
        self.scopes.pop()
        return f"(function* ($first) {{ let {local}; {said} }})({first})"

    def e_GeneratorExp(self, node):
        return self.comprehension(node, lambda: self.e(node.elt))

    def e_ListComp(self, node):
        return f"[...{self.e_GeneratorExp(node)}]"

    def e_SetComp(self, node):
        return f"_.builtin.set({self.e_GeneratorExp(node)})"

    def e_DictComp(self, node):
        return f"_.dict({self.comprehension(node, lambda: f'[{self.e(node.key)}, {self.e(node.value)}]')})"


@lru_cache(maxsize=1)
def script():
    """The program of page/dropped.py, with what it needs at run time: a script that defines window.compareRecords and window.compareTargets."""
    outside = (
        "known",
        "bench",
        "times",
        "store",
        "files",
        "findings",
    )  # modules that a comparison of two records on the page never enters
    program = _Program(
        [("page.dropped", "compared"), ("page.dropped", "between")],
        {"outside": outside, "code": {("cases", "key_table"): "() => _.keys"}},
    )  # the page has the table among its data
    runtime = (_PACKAGE / "page" / "scripts" / "python.js").read_text(encoding="utf-8")
    called = "".join(
        f"window.{name} = (keys, ...given) => {{ _.keys = _.known(keys); return _.plain(m_page_dropped.{run}(...given.map(_.known))); }};\n"
        for name, run in (("compareRecords", "compared"), ("compareTargets", "between"))
    )
    return f'"use strict";\n(() => {{\n{runtime}{program.text()}\n{called}}})();\n'
