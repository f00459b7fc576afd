#!/usr/bin/env python3
"""Writes fattn/abi.py: the public headers of libfattn as declarations for ctypes.

usage: lib/python/declare.py > lib/python/fattn/abi.py

The compiler's preprocessor ($CC, cc) expands the headers. This script reads what is left: structs, enums, functions. A test compares its output with
the file, so that no declaration is written by hand. It prints the functions, structs and constants that the module names.
"""

import itertools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

MODULE = pathlib.Path(__file__).resolve().parent / "fattn"
HEADERS = pathlib.Path(__file__).resolve().parent.parent / "include/fattn"
HEAD = '''"""The headers of libfattn for ctypes: what the module uses. Made by declare.py; do not edit."""

from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p


def _all(kind, names):
    return [(name, kind) for name in names.split()]
'''
SCALARS = {
    "int": "c_int",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "size_t": "c_size_t",
    "_Bool": "c_bool",
    "bool": "c_bool",
    "double": "c_double",
    "float": "c_float",
    "char": "c_char",
    "uint8_t": "c_uint8",
}


def headers():
    return sorted(HEADERS.glob("*.h"))


def preprocessed():
    """The headers' own lines after the preprocessor, and their constants (#define NAME number)."""
    program = "".join(f"#include <fattn/{header.name}>\n" for header in headers())
    said = subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            "-std=c11",
            "-E",
            "-dD",
            "-I",
            HEADERS.parent,
            "-x",
            "c",
            "-",
        ],
        input=program,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ours, kept, constants = False, [], {}
    for line in said.splitlines():
        if marker := re.match(r'# \d+ "(.*?)"', line):
            ours = marker[1].startswith(str(HEADERS))
        elif not ours:
            continue
        elif number := re.match(r"#define (FATTN_\w+) \(?(-?\d+)u?\)?$", line):
            constants[number[1]] = int(number[2])
        elif not line.startswith("#"):
            kept.append(line)
    return re.sub(r"\s+", " ", " ".join(kept)), constants


def words():
    """{"dtype": {"bf16": 1}}: the lists X(SYMBOL, value, "word") of the headers."""
    out = {}
    for header in headers():
        text = header.read_text().replace("\\\n", " ")
        for name, rows in re.findall(r"#define FATTN_(\w+)_LIST\(X\)([^\n]*)", text):
            found = {
                word: int(value) for value, word in re.findall(r'X\(\w+, (\d+), "(\w+)"', rows)
            }
            if found:
                out[name.lower()] = found
    return out


def inputs():
    """{"select": 3}: how many values each operation of a score modification takes."""
    text = (HEADERS / "score_mod.h").read_text()
    return {word: int(count) for word, count in re.findall(r'X\(\w+, \d+, "(\w+)", (\d)\)', text)}


class Reader:
    """Structs, enums, callbacks and functions, in the order of the headers."""

    def __init__(self):
        text, self.constants = preprocessed()
        text = text.replace('extern "C" {', "")
        self.structs = {}
        self.callbacks = {}
        self.functions = {}
        self.pointees = {}
        self.enums = set()
        for values, name in re.findall(r"\benum(?: \w+)? \{([^}]*)\}\s*(\w*)", text):
            self.enumerators(values)
            self.enums.add(name)
        text = re.sub(r"(typedef )?enum( \w+)? \{[^}]*\}\s*\w*;", "", text)
        self.known = set(re.findall(r"typedef struct (\w+) \{", text))
        pattern = (
            r"typedef struct \w+ \{(?P<body>[^}]*)\} (?P<struct>\w+);|typedef (?P<alias>\w+) (?P<name>\w+);|"
            r"typedef (?P<result>\w+) \(\*(?P<callback>\w+)\)\((?P<takes>[^;]*)\);|(?P<returns>[\w ]+[ *]+)(?P<function>fattn_\w+)\((?P<arguments>[^;{}]*)\);"
        )
        for found in re.finditer(pattern, text):
            self.one(found.groupdict())

    def enumerators(self, values):
        last = -1
        for part in filter(None, (part.strip() for part in values.split(","))):
            name, _, value = (piece.strip() for piece in part.partition("="))
            last = self.number(value) if value else last + 1
            self.constants[name] = last

    def number(self, text):
        text = re.sub(r"\bFATTN_\w+", lambda name: str(self.constants[name[0]]), text)
        # digits, operators and parentheses of our own headers
        return int(eval(re.sub(r"\b(\w+)u\b", r"\1", text), {"__builtins__": {}}))

    def one(self, found):
        if found["struct"]:
            self.structs[found["struct"]] = [
                field
                for part in split(found["body"], ";")
                for field in self.fields(found["struct"], part)
            ]
        elif found["alias"]:
            SCALARS[found["name"]] = SCALARS[found["alias"]]
        elif found["callback"]:
            self.callbacks[found["callback"]] = [
                self.type(found["result"]),
                *self.arguments(found["takes"]),
            ]
        elif found["function"]:
            self.functions[found["function"]] = [
                self.type(found["returns"].strip()),
                *self.arguments(found["arguments"]),
            ]

    def fields(self, struct, text):
        """`const void *q, *k`, `int64_t a[4], b[4]` or a pointer to a function."""
        if callback := re.match(r"(\w+) \(\*(\w+)\)\((.*)\)$", text):
            return [(callback[2], "c_void_p")]
        base, first = re.match(r"((?:const |struct )*\w+)(.*)$", text).groups()
        out = []
        for declarator in split(first, ","):
            stars, name, extent = re.match(
                r"((?:\*|const|\s)*)(\w+)(?:\[(\w+)\])?$", declarator
            ).groups()
            kind = self.type(base + stars)
            if stars.strip() and kind != "c_char_p":
                self.pointees.setdefault(struct, {})[name] = base.removeprefix("const ") + (
                    " *" if stars.count("*") > 1 else ""
                )
                kind = "c_void_p"
            out.append((name, f"{kind} * {self.number(extent)}" if extent else kind))
        return out

    def arguments(self, text):
        if text.strip() == "void":
            return []
        return [self.argument(part) for part in split_arguments(text)]

    def argument(self, text):
        if "(*" in text:
            return "c_void_p"
        text, extent = re.subn(r"\[\w*\]", "", text)
        kind = re.sub(r"(?<=[ *])\w+$", "", text.strip())
        return self.type(kind.strip() + ("*" if extent else ""))

    def type(self, text):
        stars = text.count("*")
        base = re.sub(r"\bconst\b|\bstruct\b|\*", " ", text).split()[0]
        if base in self.callbacks:
            return base
        if base == "char" and stars == 1:
            return "c_char_p"
        if base == "void" and not stars:
            return "None"
        pointee = SCALARS.get(base) or (
            "c_int" if base in self.enums else base if base in self.known else None
        )
        # void, and handles that only the library looks into: an address
        if pointee is None or base == "char" and stars:
            pointee, stars = "c_void_p", max(stars - 1, 0)
        for _ in range(stars):
            pointee = f"POINTER({pointee})"
        return pointee


def split(text, at):
    return [part.strip() for part in text.split(at) if part.strip()]


def split_arguments(text):
    """At commas outside of parentheses: an argument may be a pointer to a function."""
    return split(re.sub(r"\([^()]*\)", lambda inner: inner[0].replace(",", ""), text), ",")


def used():
    """A pattern of the names that the module's other files say; a name that ends in _ begins others."""
    texts = (path.read_text() for path in MODULE.glob("*.py") if path.name != "abi.py")
    names = set(re.findall(r"\b(?:fattn|FATTN)_\w+", "".join(texts)))
    return re.compile("|".join(name + "\\w*" * name.endswith("_") for name in sorted(names)))


def wrapped(text, indent=4):
    """Lines of at most 100 columns, the following ones further in."""
    pad = " " * indent
    return textwrap.wrap(
        text,
        100,
        initial_indent=pad,
        subsequent_indent=pad + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def words_in(before, names, after, indent):
    """Lines with one text of all these names."""
    one = wrapped(f'{before}"{names}"{after}', indent)
    return one if len(one) == 1 else wrapped(f'{before}"""{names}"""{after}', indent)


def table(name, entries):
    lines = (f"{key!r}: {value!r}," for key, value in entries)
    return [f"{name} = {{", *(part for line in lines for part in wrapped(line)), "}"]


def struct(name, fields):
    lines = ["", f"class {name}(Structure):", "    _fields_ = ["]
    for kind, group in itertools.groupby(fields, key=lambda field: field[1]):
        names = " ".join(field for field, _ in group)
        lines += words_in(f"*_all({kind}, ", names, "),", 8)
    return [*lines, "    ]", ""]


def written():
    read, wanted = Reader(), used()
    functions = {name: kinds for name, kinds in read.functions.items() if wanted.fullmatch(name)}
    types = " ".join(kind for kinds in functions.values() for kind in kinds)
    structs = {}
    for name, fields in reversed(read.structs.items()):
        if wanted.fullmatch(name) or re.search(rf"\b{name}\b", types):
            structs[name] = fields
            types += " ".join(["", *(kind for _, kind in fields)])
    constants = {name: value for name, value in read.constants.items() if wanted.fullmatch(name)}
    lines = HEAD.split("\n")
    for name in filter(structs.get, read.structs):
        lines += struct(name, structs[name])
    lines += [""]
    lines += [f"{name} = CFUNCTYPE({', '.join(kinds)})" for name, kinds in read.callbacks.items()]
    lines += ["", "FUNCTIONS = {  # name: result, arguments"]
    for name, kinds in sorted(functions.items()):
        lines += wrapped(f'"{name}": ({kinds[0]}, [{", ".join(kinds[1:])}]),')
    lines += ["}"]
    pointees = {}
    for field, pointee in read.pointees["fattn_tensors"].items():
        pointees[pointee] = f"{pointees.get(pointee, '')} {field}".strip()
    lines += ["POINTEES = {  # of the fields of fattn_tensors"]
    for pointee, names in pointees.items():
        lines += words_in(f'"{pointee}": ', names, ",", 4)
    lines += ["}"]
    lines += table("WORDS", words().items())
    lines += ["INPUTS = {", *wrapped(str(inputs())[1:-1]), "}"]
    lines += table("CONSTANTS", sorted(constants.items()))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(written())
