"""Prints facts_reports/read/keys.json from the harness's list of keys, so that the page knows the defaults that a name omits.

python3 reports/test/keys_from_header.py > reports/facts_reports/read/keys.json
"""

import json
import re
import sys
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "harness/attention/keys/keys.h"
VOCABULARY = HEADER.with_name("vocabulary.h")  # lists of words that keys.h refers to
SOURCE = HEADER.with_name("keys.c")  # says what the forms of a stride are
PUBLIC = Path(__file__).resolve().parents[2] / "lib/include/fattn/problem.h"
# Where absence means "as another key".
FOLLOWS = dict.fromkeys(("out", "grad", "bias_dtype"), "dtype") | {"do_dtype": "out"}
FOLLOWS |= dict.fromkeys("qkv", "layout")
# Defaults that depend on another key's value, as harness/core/language/draft.c has them: key, another key, its value or start*, default.
WHEN = """
out dtype mx* bf16
grad dtype mx* bf16
do_dtype dtype mxe4m3 mxe4m3
do_dtype dtype mxe5m2 mxe5m2
bias_dtype dtype e* bf16
bias_dtype dtype mx* bf16
stats q t* th1
window mask causal* inf:0
align mask causal_br br
want pass bwd stats
"""
WHEN = [line.split() for line in WHEN.strip().splitlines()]
# Keys that only older records name: after which key they stood in a name, the key, its default, whether it is a number.
RETIRED = [
    ("scales", "scale_format", "auto", False),
    ("exec", "threads", "1", True),
    ("threads", "workspace", "aligned", False),
]
# One argument of X(...): string literals and macro words side by side.
_ARGUMENTS = re.compile(r'((?:"[^"]*"|[^",()]|\([^()]*\))+)(?:,|$)')


def _lists(header, public):
    """{macro: its text}: lists of words, of this header and of the library's."""
    found = {}
    for name, body in re.findall(r"#define (FATTN_\w+_LIST)\(X\)((?:[^\n]*\\\n)*[^\n]*)", public):
        found[f"{name}(FACTS_AS_WORD_)"] = " ".join(re.findall(r'X\(\w+, \d+, "(\w+)"\)', body))
    for name, body in re.findall(r"#define (FACTS_WORDS_\w+) (.*)", header.replace("\\\n", " ")):
        parts = re.findall(r'"([^"]*)"|(\w+)', body)
        known = [found.get(macro, found.get(f"{macro}(FACTS_AS_WORD_)", "")) for _, macro in parts]
        found[name] = "".join(literal or words for (literal, _), words in zip(parts, known))
    found["FACTS_WORDS_DTYPE"] = found["FATTN_DTYPE_LIST(FACTS_AS_WORD_)"]
    return found


def _templates(allowed, lists):
    """What a key may be, word by word; capital letters stand for numbers: one kind, N."""
    parts = re.findall(r'"([^"]*)"|(\w+(?:\(\w+\))?)', allowed)
    text = "".join(lists.get(macro, "") if macro else literal for literal, macro in parts)
    words = [re.sub(r"(?<![a-z0-9])[NMXPL](?![a-z0-9])", "N", word) for word in text.split()]
    return list(dict.fromkeys(words))


def _spelled(header, vocabulary):
    """The header with each list of the vocabulary written out as a string of words."""
    form = r"#define (FACTS_\w+_LIST)\(X\)((?:[^\n]*\\\n)*[^\n]*)"
    for name, body in re.findall(form, vocabulary):
        words = " ".join(re.findall(r'X\(\w+, "([^"]+)"\)', body))
        header = header.replace(f"{name}(FACTS_AS_TEMPLATE_)", f'"{words}"')
    return header


def keys(header, vocabulary, public, source):
    """[{key, kind, default, values?, follows?}] in the order of a canonical name."""
    header = _spelled(header, vocabulary)
    listed = header.split("#define FACTS_KEY_LIST(X)")[1].split("#define AS_ENUM")[0]
    listed = listed.replace("\\\n", "\n")
    rows, lists = [], _lists(header, public)
    for chunk in re.split(r"\n\s*X\(", "\n" + listed.split("/* clang-format on")[0])[1:]:
        _, word, kind, allowed, default, *_ = [
            a.strip() for a in _ARGUMENTS.findall(chunk.strip().rstrip(")"))
        ]
        word, default = word.strip('"'), default.strip('"')
        row = {"key": word, "kind": kind.lower(), "default": default}
        words = " ".join(re.findall(r'"([^"]*)"', allowed)).split()
        values = [v for v in words if re.fullmatch(r"[a-z0-9_]+(:[a-z]+)?", v)]
        if values and kind in ("WORD", "SET"):
            row["values"] = values
        row["templates"] = _templates(allowed, lists)
        if kind == "STRIDE":
            forms = re.search(r'define FORM_STRIDE[^"]*"([^"]*)"', source).group(1)
            row["templates"] += re.findall(r"([a-z0-9]+):", forms)
        if kind == "WORD" and re.search(r'(?:^|[" ])[NMXP](?:$|[" ])', allowed):
            row["number"] = True
        if word in FOLLOWS:
            row["follows"] = FOLLOWS[word]
        when = [rest for key, *rest in WHEN if key == word]
        if when:
            row["when"] = when
        rows.append(row)
    for before, word, default, number in RETIRED:
        place = [row["key"] for row in rows].index(before) + 1
        row = {"key": word, "kind": "word", "default": default, "templates": [], "retired": True}
        rows.insert(place, row | ({"number": True} if number else {}))
    return rows


def from_sources():
    return keys(
        *(path.read_text(encoding="utf-8") for path in (HEADER, VOCABULARY, PUBLIC, SOURCE))
    )


def main():
    rows = from_sources()
    sys.stdout.write("[\n" + ",\n".join("  " + json.dumps(r) for r in rows) + "\n]\n")


if __name__ == "__main__":
    main()
