#!/usr/bin/env python3
"""Prints a page of the API from the comments and declarations of headers.

    python3 ci/docs/api.py           the C API of libfattn
    python3 ci/docs/api.py python    the module fattn, from its docstrings

A paragraph of a header is a comment and the declarations below it. Words at the start of a comment's line, followed by two blanks, are the headings of a
contract (Memory, Threads, Returns).
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FATTN = Path("lib/include/fattn")
HEADERS = "fattn problem status policy score_mod cache graph device descriptors".split()
HEAD = """# C API

Printed from the headers in `lib/include/fattn` by `ci/docs/api.py`. [install.md](../install.md) says how
to link the library, and `examples/` has short programs.
"""
MODULE = Path("lib/python/fattn")
PYTHON = """# Python API

Printed from the docstrings of `lib/python/fattn` by `ci/docs/api.py python`. The module is in the
[wheel](../install.md#libfattn-in-python).

Ask about a GPU that is not here. A [described device](../explain-devices.md) decides and compiles; it runs nothing:

```python
import subprocess, fattn
folder = subprocess.run(["facts", "cudnn", "path", "9.27.0"], stdout=subprocess.PIPE, text=True).stdout.strip()
h100 = fattn.Context("h100-sxm", folder)
problem = fattn.Problem(dtype="bf16", batch=2, heads_q=8, seq_q=256, seq_kv=256, dim_qk=100)
answer = fattn.decide(problem, context=h100)
print(answer)            # unsupported: why, and what to do
print(answer.explain())  # [<fattn.Neighbour: dim_qk and dim_v 104 instead of 100>, ...]
```
"""
NOISE = re.compile(r'#ifndef \w+_H$|#define \w+_H$|#if|#endif|#include|#undef|extern "C"|\}$')


def paragraphs(text):
    """The header's text between blank lines; braces and comments hold a paragraph together."""
    depth, comment, lines = 0, False, []
    for line in text.split("\n"):
        if not line.strip() and depth == 0 and not comment:
            if lines:
                yield lines
            lines = []
            continue
        bare = re.sub(r'/\*.*?\*/|"[^"]*"', "", line)
        comment = "/*" in bare or (comment and "*/" not in bare)
        if not comment and not re.match(r'extern "C"|\}$', line):
            depth += bare.count("{") - bare.count("}")
        lines.append(line)
    if lines:
        yield lines


def split(lines):
    """(comment, code) of a paragraph: the comments at its beginning without their marks, and what follows."""
    text = "\n".join(lines)
    found = re.match(r"(?:\s*/\*.*?\*/[ \t]*(?:\n|$))+", text, re.S)
    if not found:
        return "", text
    comment = re.sub(r"(?m)^\s*/\*+ ?| ?\*/\s*$|^ \*", "", found[0])
    return comment, text[found.end() :]


def prose(comment):
    """A comment as Markdown: the headings of a contract are list items, shapes a table; indented lines are code."""
    out, item = [], []

    def flush():
        if item:
            how = {"break_long_words": False, "break_on_hyphens": False}
            how["subsequent_indent"] = "  " * item[0].startswith("- ")
            out.append(textwrap.fill(" ".join(" ".join(item).split()), 118, **how))
        item.clear()

    for line in comment.split("\n"):
        heading = re.match(r" ?([A-Z][a-z]+) {2,}(.*)", line)
        if heading:
            flush()
            item.append(f"- **{heading[1]}**: {heading[2]}")
        elif shapes := re.findall(r" {3,}(\w[\w, ]*?) (\[[^]]+\](?:, fp32)?)", line):
            flush()
            out += [] if out[-1].startswith("  |") else ["", "  | tensors | shape |", "  |---|---|"]
            out += [f"  | {tensors} | {re.sub(' +', ' ', shape)} |" for tensors, shape in shapes]
        elif line.startswith("     ") and not item:
            out.append(line[1:])
        elif not line.strip():
            flush()
            out.append("")
        else:
            plain = line.strip()
            item.append(plain if "`" in line else plain.replace("<", "\\<").replace("*", "\\*"))
    flush()
    return "\n".join(out).strip("\n")


def names(code):
    """What a piece of code declares."""
    bare = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    found = re.findall(
        r"(?m)^(?:typedef )?(?:struct|enum) (fattn_\w+) \{|^typedef .*?\b(fattn_\w+);"
        r"|^[a-z].*?\b(fattn_\w+)\(|^#define (FATTN_\w+)",
        bare,
    )
    found = ["".join(group) for group in found]  # one of them is not empty
    return [name for name in dict.fromkeys(found) if not name.endswith("_")]


def header(path):
    """The lines of one header's part of the page."""
    yield f"\n## {path.name}\n"
    level = "###"
    text = (ROOT / path).read_text(encoding="utf-8")
    for lines in paragraphs(text):
        comment, code = split(lines)
        code = "\n".join(line for line in code.split("\n") if not NOISE.match(line)).strip("\n")
        section = re.match(r"-{4} (.*?) -{4,}$", comment.split("\n")[0])
        if section:
            yield f"### {section[1][0].upper()}{section[1][1:]}\n"
            level = "####"
            comment = comment.partition("\n")[2]
        declared = names(code)
        if declared and not section:
            yield f"{level} {', '.join(declared[:4])}{' ...' if len(declared) > 4 else ''}\n"
        if comment.strip():
            yield prose(comment) + "\n"
        if code:
            yield f"```c\n{code}\n```\n"


def documented(node, depth=0):
    """A function or a class as its user sees it: heads and docstrings, without bodies and private parts."""
    pad = "    " * depth
    if isinstance(node, ast.ClassDef):
        yield f"{pad}class {node.name}({', '.join(map(ast.unparse, node.bases))}):".replace(
            "():", ":"
        )
    else:
        yield from (f"{pad}@{ast.unparse(one)}" for one in node.decorator_list if depth)
        returns = ast.unparse(node.returns or ast.Constant(None))
        head = f"def {node.name}({ast.unparse(node.args)}) -> {returns}:"
        head = textwrap.wrap(head, 118 - len(pad), subsequent_indent=" " * 8)
        yield from (pad + line for line in head)
    if text := ast.get_docstring(node):
        lines = ('"""' + text + "\n" * ("\n" in text) + '"""').split("\n")
        yield from (f"{pad}    {line}" if line else "" for line in lines)
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.AnnAssign):
            yield f"{pad}    {ast.unparse(part)}"
        elif isinstance(part, ast.FunctionDef) and (part.name == "__init__" or part.name[0] != "_"):
            yield from documented(part, depth + 1)


def python():
    """The page of the Python module: functions, then classes."""
    paths = sorted((ROOT / MODULE).glob("*.py"))
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    top, nodes = trees["__init__"], {}
    for node in reversed([node for tree in trees.values() for node in tree.body]):
        nodes[getattr(node, "name", "")] = node
    names_ = next(ast.literal_eval(node.value) for node in top.body if isinstance(node, ast.Assign))
    parts = [PYTHON, "## fattn\n", f"```text\n{ast.get_docstring(top)}\n```\n"]
    for name in sorted(names_, key=lambda name: name != name.lower()):
        node = nodes.get(name)
        text = "\n".join(documented(node)) if node else ast.get_docstring(trees[name])
        parts.append(f"### `{name}`\n\n```{'python' if node else 'text'}\n{text}\n```\n")
    return "\n".join(parts)


def page(word="c"):
    """The whole page."""
    if word == "python":
        return python()
    lines = (line for name in HEADERS for line in header(FATTN / f"{name}.h"))
    return re.sub(r"\n{3,}", "\n\n", HEAD + "\n".join(lines))


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:]))
