#!/usr/bin/env python3
"""Prints docs/api.md, the C API of libfattn, from the comments and declarations of its headers.

    python3 ci/docs/api.py >docs/api.md

A paragraph of a header is a comment and the declarations below it. Words at the start of a comment's line, followed by two blanks, are the headings of a
contract (Memory, Threads, Returns).
"""
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ("fattn.h", "problem.h", "status.h", "policy.h", "score_mod.h", "cache.h", "graph.h", "device.h", "descriptors.h")
HEAD = """# C API

Printed from the headers in `lib/include/fattn` by `ci/docs/api.py`; a test compares. [install.md](install.md) says how
to link the library, and `examples/` has short programs. `fattn.hpp` wraps these functions for C++17.
"""
NOISE = re.compile(r'#ifndef \w+_H$|#define \w+_H$|#endif|#include|#undef|#ifdef __cplusplus|extern "C"|\}$')


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
        depth += 0 if comment or 'extern "C"' in line or line == "}" else bare.count("{") - bare.count("}")
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
    return comment, text[found.end():]


def prose(comment):
    """A comment as Markdown: the headings of a contract are list items; indented lines are code."""
    out, item = [], []

    def flush():
        if item:
            out.append(textwrap.fill(" ".join(" ".join(item).split()), 118, subsequent_indent="  " if item[0].startswith("- ") else "",
                                     break_long_words=False, break_on_hyphens=False))
        item.clear()

    for line in comment.split("\n"):
        heading = re.match(r" ?([A-Z][a-z]+) {2,}(.*)", line)
        if heading:
            flush()
            item.append(f"- **{heading[1]}**: {heading[2]}")
        elif line.startswith("     ") and not item:
            out.append(line[1:])
        elif not line.strip():
            flush()
            out.append("")
        else:
            if line.startswith("     ") and not item[0].startswith("- "):
                flush()
                out.extend(("", line[1:]))
                continue
            item.append(line.strip().replace("<", "\\<").replace("*", "\\*") if "`" not in line else line.strip())
    flush()
    return "\n".join(out).strip("\n")


def names(code):
    """What a piece of code declares."""
    bare = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    found = re.findall(r"(?m)^(?:typedef )?(?:struct|enum) (fattn_\w+) \{|^typedef .*?\b(fattn_\w+);|^[a-z].*?\b(fattn_\w+)\(|^#define (FATTN_\w+)", bare)
    return list(dict.fromkeys(next(filter(None, group)) for group in found if not next(filter(None, group)).endswith("_")))


def header(name):
    """The lines of one header's part of the page."""
    yield f"\n## {name}\n"
    level = "###"
    for lines in paragraphs((ROOT / "lib/include/fattn" / name).read_text(encoding="utf-8")):
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


def page():
    """The whole page."""
    return re.sub(r"\n{3,}", "\n\n", HEAD + "\n".join(line for name in HEADERS for line in header(name)))


if __name__ == "__main__":
    sys.stdout.write(page())
