"""Prints facts_reports/read/keys.json from the harness's list of keys, so that the page knows the defaults that a name omits.

python3 reports/test/keys_from_header.py > reports/facts_reports/read/keys.json
"""

import json
import re
import sys
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "harness/src/case/keys/keys.h"
VOCABULARY = HEADER.with_name("vocabulary.h")  # lists of words that keys.h refers to
SOURCE = HEADER.with_name("keys.c")  # says what the forms of a stride are
PUBLIC = Path(__file__).resolve().parents[2] / "lib/include/fattn/problem.h"
# Where absence means "as another key".
FOLLOWS = {
    "out": "dtype",
    "grad": "dtype",
    "do_dtype": "out",
    "bias_dtype": "dtype",
    "q": "layout",
    "k": "layout",
    "v": "layout",
}
# Defaults that depend on another key's value, as harness/src/case/keys/normal_form.c has them: [key, value or start*, default].
WHEN = {
    "out": [["dtype", "mx*", "bf16"]],
    "grad": [["dtype", "mx*", "bf16"]],
    "do_dtype": [["dtype", "mxe4m3", "mxe4m3"], ["dtype", "mxe5m2", "mxe5m2"]],
    "bias_dtype": [["dtype", "e*", "bf16"], ["dtype", "mx*", "bf16"]],
    "stats": [["q", "t*", "th1"]],
    "window": [["mask", "causal*", "inf:0"]],
    "align": [["mask", "causal_br", "br"]],
    "want": [["pass", "bwd", "stats"]],
}
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
        found[name] = "".join(
            literal
            if not macro
            else found[macro]
            if macro in found
            else found.get(f"{macro}(FACTS_AS_WORD_)", "")
            for literal, macro in parts
        )
    found["FACTS_WORDS_DTYPE"] = found["FATTN_DTYPE_LIST(FACTS_AS_WORD_)"]
    return found


def _templates(allowed, lists):
    """What a key may be, word by word; capital letters stand for numbers: one kind, N."""
    text = "".join(
        lists.get(macro, "") if macro else literal
        for literal, macro in re.findall(r'"([^"]*)"|(\w+(?:\(\w+\))?)', allowed)
    )
    return list(
        dict.fromkeys(
            re.sub(r"(?<![a-z0-9])[NMXPL](?![a-z0-9])", "N", word) for word in text.split()
        )
    )


def _spelled(header, vocabulary):
    """The header with each list of the vocabulary written out as a string of words."""
    for name, body in re.findall(
        r"#define (FACTS_\w+_LIST)\(X\)((?:[^\n]*\\\n)*[^\n]*)", vocabulary
    ):
        header = header.replace(
            f"{name}(FACTS_AS_TEMPLATE_)",
            '"' + " ".join(re.findall(r'X\(\w+, "([^"]+)"\)', body)) + '"',
        )
    return header


def keys(header, vocabulary, public, source):
    """[{key, kind, default, values?, follows?}] in the order of a canonical name."""
    header = _spelled(header, vocabulary)
    listed = (
        header.split("#define FACTS_KEY_LIST(X)")[1]
        .split("#define AS_ENUM")[0]
        .replace("\\\n", "\n")
    )
    rows, lists = [], _lists(header, public)
    for chunk in re.split(r"\n\s*X\(", "\n" + listed.split("/* clang-format on")[0])[1:]:
        _, word, kind, allowed, default, *_ = [
            a.strip() for a in _ARGUMENTS.findall(chunk.strip().rstrip(")"))
        ]
        word, default = word.strip('"'), default.strip('"')
        row = {"key": word, "kind": kind.lower(), "default": default}
        values = [
            v
            for text in re.findall(r'"([^"]*)"', allowed)
            for v in text.split()
            if re.fullmatch(r"[a-z0-9_]+(:[a-z]+)?", v)
        ]
        if values and kind in ("WORD", "SET"):
            row["values"] = values
        row["templates"] = _templates(allowed, lists)
        if kind == "STRIDE":
            row["templates"] += re.findall(
                r"([a-z0-9]+):",
                re.search(r'define FORM_STRIDE[^"]*"([^"]*)"', source).group(1),
            )
        if kind == "WORD" and re.search(r'(?:^|[" ])[NMXP](?:$|[" ])', allowed):
            row["number"] = True
        if word in FOLLOWS:
            row["follows"] = FOLLOWS[word]
        if word in WHEN:
            row["when"] = WHEN[word]
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
