#!/usr/bin/env python3
"""Checks the language of pages, printed texts and comments: lengths, glossary words and banned private words.

    python3 ci/check_prose.py [FILE...]     every page, printed text and comment, or only these files

A finding is one line: FILE:LINE: what is wrong. Exit 1 when there is one, 2 when a file cannot be
read. docs/glossary.md says which spellings are wrong ("Not: ...").
"""

import ast
import io
import os
import re
import sys
import tokenize
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
# columns of a line, characters of a table cell, words of a sentence of a page and of a source
LINE, CELL, WORDS, SOURCE_WORDS = 120, 80, 25, 40
# Pages with longer sentences, and the words of the longest. A number may only fall: a test finds a page whose longest sentence is shorter.
LONGER = {
    "docs/numerics.md": 35,
    "reports/README.md": 31,
    "reports/catalogue/README.md": 34,
    "reports/examples/README.md": 32,
}

# Words that once had a private meaning here, and what to write instead.
BANNED = {
    r"\bdue\b(?! to\b)": "expected",
    r"\bcourts?\b": "the two programs, by name",
    r"(?<!CANNOT )\btells?\b": "detect, show, say",
    r"\b(?:told|said)\b": "reported",
    r"\bstretch(?:es)?\b": "range of versions",
    r"\bhunts?\b": "search",
    r"\bmanners?\b": "way",
    r"\blent\b": "given",
    r"\bthe truth\b": "reference results",
    r"\bgrave(?:st|r)?\b": "serious, worst",
    r"\blate through us\b": "timed out in FACTS",
    r"\bpacked sequences?\b": "ragged (THD)",
    r"\bgrouped heads\b": "GQA",
    r"\b(?:where|when) we were late\b": "timed out in FACTS",
    r"\bof somebody else's\b": "outside cuDNN",
    r"\bis asked of\b": "FACTS asks X",
    r"\bthe judge\b": "the comparison",
    r"\bmended\b": "fixed",
    r"\bbut for\b": "except",
    r"\bof it all\b": "all of it",
    r"\bwhich of it\b": "the noun",
    r"\banew\b": "again",
    r"\bthe same(?: \w+)? holds\b": "name the thing",
}


def glossary():
    """{wrong spelling: right one} of docs/glossary.md: `- **word**: meaning. Not: one, two.`"""
    text = re.sub(r"\n +", " ", (HOME / "docs/glossary.md").read_text(encoding="utf-8"))
    found = re.findall(r"(?m)^- \*\*([^*]+)\*\*.*Not: ([^.]*)\.", text)
    return {wrong.strip(): right for right, wrongs in found for wrong in wrongs.split(",")}


def plain(text):
    """Markdown as a reader sees it: a link is its text, code is one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "code", text).replace("**", "")


def shown(cell):
    """What a table cell shows: a link is its text, code keeps its characters."""
    cell = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    return cell.replace("`", "").replace("**", "").replace("\\", "").strip()


def sentences(text):
    """The sentences of a paragraph."""
    return re.split(
        r"(?:(?<=[.!?:;])|(?<=[.!?:;][)*])|(?<=[.!?:;]\*\*))\s+(?=[A-Z`*\"'(0-9\[]|cuDNN|cudnn-|libf|get\(|neff |fe/|d[QKVS]|b?f16|[sd] = )",
        text,
    )


def words(text):
    """The words of a sentence; numbers and signs alone are none."""
    return [w for w in plain(text).split() if re.search(r"[A-Za-z]", w)]


def longest(text):
    """The words of a page's longest sentence."""
    pieces = [piece for _, kind, piece in blocks(text) if kind != "line"]
    return max((len(words(one)) for piece in pieces for one in sentences(piece)), default=0)


def language(text, wrong, most=SOURCE_WORDS):
    """Findings about one paragraph, without their place."""
    text = re.sub(r"\bNot: [^.]*\.", "", text)  # the glossary's wrong spellings
    seen = plain(text)
    for sentence in sentences(text):
        count = len(words(sentence))
        if count > most:
            yield f"a sentence of {count} words: {plain(sentence)[:60]}..."
    for pattern, better in BANNED.items():
        for found in re.finditer(pattern, seen, re.IGNORECASE):
            yield f'"{found[0]}": write {better}'
    for spelling, right in wrong.items():
        # fattn.ScoreMod is a name
        if re.search(rf"(?<![\w.-]){re.escape(spelling)}(?![\w-])", seen, re.IGNORECASE):
            yield f'"{spelling}": the glossary has "{right}"'


def blocks(text):
    """(line, kind, text) of a page: kind is line, cell or paragraph. Code and comments are left out."""
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    paragraph, start, code = [], 0, False

    def flush():
        nonlocal paragraph
        if paragraph:
            yield start, "paragraph", " ".join(paragraph)
        paragraph = []

    for number, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            yield from flush()
            code = not code
            continue
        if code or (line.startswith("    ") and not paragraph):
            continue
        if stripped.startswith("|"):
            yield from flush()
            row = stripped.replace("\\|", "\0")
            row = re.sub(r"`[^`]*`", lambda m: m[0].replace("|", "\0"), row).strip("|")
            for cell in row.split("|"):
                yield number, "cell", cell.replace("\0", "|").strip()
            continue
        yield number, "line", line
        if not stripped or re.match(r"([-*+]|\d+\.|#+|>)\s", stripped):
            yield from flush()
        if stripped:
            if not paragraph:
                start = number
            paragraph.append(re.sub(r"^([-*+]|\d+\.|#+|>)\s+", "", stripped))
            if stripped.startswith("#"):
                yield from flush()
    yield from flush()


def page_findings(text, wrong, most=WORDS):
    """(line, what) of a Markdown page."""
    for number, kind, piece in blocks(text):
        if kind == "line":
            # what a line cannot break inside
            whole = re.findall(r"!?\[[^\]]*\]\([^)]*\)|`[^`]*`|\S+", piece)
            if len(piece) > LINE and max(map(len, whole)) < LINE // 2:
                yield number, f"a line of {len(piece)} columns"
        elif kind == "cell":
            cell = shown(piece)
            if len(cell) > CELL:
                yield number, f"a table cell of {len(cell)} characters: {cell[:40]}..."
            yield from ((number, what) for what in language(piece, wrong, most))
        else:
            yield from ((number, what) for what in language(piece, wrong, most))


C_STRING = r'"(?:[^"\\\n]|\\.)*"'


def line_of(text, found):
    return text.count("\n", 0, found.start()) + 1


def blanked(found):
    return re.sub(r"[^\n]", " ", found[0])


def c_comments(text):
    """(line, text) of a C file's comments. An example and the heading of a contract ("Order    ...") begin a line."""

    def without_text(found):
        return found[0] if found[0][0] == "/" else f'"{"_" * (len(found[0]) - 2)}"'

    text = re.sub(rf"{C_STRING}|/\*.*?\*/|//[^\n]*", without_text, text, flags=re.S)
    bare = re.sub(r"/\*.*?\*/", blanked, text, flags=re.S)
    for found in re.finditer(r"//[^\n]*(?:\n[ \t]*//[^\n]*)*", bare):
        yield line_of(text, found), re.sub(r"\n[ \t]*// ?", " ", found[0][2:]).strip()
    for found in re.finditer(r"/\*.*?\*/", text, re.S):
        # the next line of a contract's heading
        body = re.sub(r"\n *\* {9,10}(?=\S)", " ", found[0][2:-2])
        # an example, a heading, an empty line
        body = re.sub(r"\n *\*(?: +(?= \S)| (?=[A-Z]\w+ {2,})|(?= ?(?:\n|$)))", "\0", body)
        yield line_of(text, found), re.sub(r"\n *\*? ?", " ", body).replace("\0", "\n")


def c_texts(text):
    """(line, text) of a C file's string literals that are sentences; neighbours are one."""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", blanked, text, flags=re.S)
    for found in re.finditer(rf"{C_STRING}(?:[\s\\]*{C_STRING})*", bare):
        joined = "".join(re.findall(C_STRING, found[0])).replace('""', "")[1:-1]
        joined = joined.replace("\\n", "\n").replace('\\"', '"')
        if " " in joined:
            yield line_of(text, found), joined


def documented(tree):
    """The nodes that have a docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node):
                yield node


def python_texts(text):
    """(line, text) of a Python file's string literals that are sentences, without docstrings."""
    tree = ast.parse(text)
    docs = {id(node.body[0].value) for node in documented(tree)}
    for node in ast.walk(tree):
        said = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(said, str) and id(node) not in docs:
            if " " in said and "SELECT " not in said:
                yield node.lineno, said


def python_comments(text):
    """(line, text) of a Python file's comments and docstrings. Indented lines of a docstring are examples, which are not read."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")
    for node in documented(ast.parse(text)):
        said = ast.get_docstring(node, clean=False).lstrip()
        said = said.replace("\n" + " " * node.body[0].col_offset, "\n")
        said = re.sub(r"(?m)^ .*\n?", "\0", said)
        said = re.sub(r"\n(?=\n|[A-Z]\w+[.:] )", "\0", said)
        yield node.body[0].lineno, said.replace("\n", " ").replace("\0", "\n")


def template_texts(text):
    """(line, text) of a page's template: what stands between tags and Jinja's marks."""
    marks = r"<(script|style)\b.*?</\1>|\{[{%#].*?[}%#]\}|<[^>]*>"
    text = re.sub(marks, lambda m: "\n" * m[0].count("\n") + " ", text, flags=re.S)
    yield from ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def script_comments(text):
    """(line, text) of a script's comments that have lines of their own."""
    for found in re.finditer(r"(?m)^ *//.*(?:\n *//.*)*", text):
        yield line_of(text, found), re.sub(r"\s*//\s*", " ", found[0]).strip()


def hash_comments(text):
    """(line, text) of a shell script's or YAML file's comments, printed help (`cat <<'END'`) and `description: "..."`. An indented line is one of its own."""
    for found in re.finditer(r"(?m)^ *#(?!!).*(?:\n *#.*)*|(?<= )# .*", text):
        said = re.sub(r"\n *# (?=\S)", " ", found[0].strip(" #"))
        yield line_of(text, found), re.sub(r"\n *#(?=$|  )", "\n", said, flags=re.M)
    for found in re.finditer(r"(?ms)<<'END'\n(.*?)^END$|description: \"(.*?)\"", text):
        yield line_of(text, found), found[1] or found[2]


READERS = dict.fromkeys((".sh", ".yml", ".yaml", ""), [hash_comments])
READERS |= {".j2": [template_texts], ".js": [script_comments]}
READERS |= {".py": [python_texts, python_comments], ".cu": [c_comments], ".cuh": [c_comments]}


def source_findings(path, text, wrong):
    """(line, what) of a source's printed texts and comments."""
    for read in READERS.get(path.suffix, [c_comments, c_texts]):
        for number, piece in read(text):
            for part in piece.split("\n"):
                yield from ((number, what) for what in language(part, wrong))


# Folders that git ignores hold what our own programs wrote: build/, and the page of `./facts matrix`.
IGNORED = (HOME / ".gitignore").read_text(encoding="utf-8").split()
IGNORED = {".git", *(line.strip("/") for line in IGNORED if line.endswith("/"))}


def pages():
    """Markdown of the tree, without the ignored folders. os.walk goes on where another test has just removed a folder; rglob ends with an error."""
    for folder, folders, names in os.walk(HOME):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        pages_ = (name for name in sorted(names) if name.endswith((".md", ".md.in")))
        yield from (Path(folder, name) for name in pages_)


SOURCES = """harness/core/**/*.[ch] harness/attention/**/*.[ch] harness/attention/cuda/*.cu*
    harness/attention/repro/*.py harness/attention/repro/program.c.in
    lib/src/**/*.[ch] lib/gpu/*.[ch] lib/cuda/*.cu* lib/nulldriver/*.c
    lib/include/fattn/*.h* lib/python/fattn/*.py reference/src/**/*.[ch] reference/cuda/*.cu*
    reference/include/fref/*.h reports/facts_reports/**/*.py reports/facts_reports/page/**/*.j2
    reports/facts_reports/page/**/*.js examples/*.[ch]* ci/*.py ci/docs/*.py ci/package/*.py
    ci/torture/*.py ci/gate/*.py facts action.yml templates/*.yml ci/**/*.sh ci/gate/*.y*ml
    ci/nightly/*.yml""".split()


def files():
    """Every page, and every source that prints or that a reader opens."""
    return sorted(pages()) + sorted(path for glob in SOURCES for path in HOME.glob(glob))


def findings(path, wrong):
    """(line, what) of one file."""
    text = path.read_text(encoding="utf-8")
    most = LONGER.get(os.path.relpath(path, HOME), WORDS)
    if path.name.endswith((".md", ".md.in")):
        return list(page_findings(text, wrong, most))
    return list(source_findings(path, text, wrong))


def main(arguments):
    """Prints the findings; 1 when there is one."""
    wrong, status = glossary(), 0
    for path in [Path(a).resolve() for a in arguments] or files():
        try:
            found = findings(path, wrong)
        except OSError as failed:
            print(f"check_prose.py: {path}: {failed.strerror}", file=sys.stderr)
            return 2
        for line, what in found:
            print(f"{os.path.relpath(path, HOME)}:{line}: {what}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
