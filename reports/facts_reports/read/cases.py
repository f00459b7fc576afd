"""Case names, read back: a name says only what is not default, so the defaults come from the table of keys."""

import json
import os
from functools import lru_cache
from pathlib import Path
from sys import intern

# Keys that only older records name: the key before them in a name, the key, its default, whether it is a number.
_RETIRED = (
    ("scales", "scale_format", "auto", False),
    ("exec", "threads", "1", True),
    ("threads", "workspace", "aligned", False),
)
# of a row, not of its case
SUBJECT = "cudnn sm build backend grade verdict engine config class".split()


@lru_cache(maxsize=1)
def key_table():
    """The table of the program that called (FACTS_KEYS), or that of attention."""
    of_attention = Path(__file__).with_name("keys.json")
    text = os.environ.get("FACTS_KEYS") or of_attention.read_text(encoding="utf-8")
    rows = json.loads(text)
    for before, key, default, is_number in _RETIRED:
        for place in [i for i, row in enumerate(rows, 1) if row["key"] == before]:
            rows.insert(place, {"key": key, "default": default, "number": is_number})
    return rows


@lru_cache(maxsize=1)
def defaults():
    return {k["key"]: k["default"] for k in key_table()}


@lru_cache(maxsize=1)
def _follows():
    return {k["key"]: k["follows"] for k in key_table() if "follows" in k}


@lru_cache(maxsize=1)
def _when():
    return {k["key"]: k["when"] for k in key_table() if "when" in k}


@lru_cache(maxsize=1)
def parts():
    """{'h.q': ('h', 0), ...}: the numbers that "/" or ":" separate in a value. A shorter value repeats its last one."""
    return {
        f"{row['key']}.{name}": (row["key"], i)
        for row in key_table()
        for name, i in row.get("parts", {}).items()
    }


def query_keys():
    own = [key for key in SUBJECT if key not in defaults()]
    return [*defaults(), *parts(), *own, "device", "case"]


@lru_cache(maxsize=1)
def numbers():
    """Keys that have an order because their values are numbers."""
    named = {k["key"] for k in key_table() if k.get("number")}
    return named | set(parts()) | {"sm", "engine", "config"}


def parse(name):
    """{key: value} of what the name says. Tokens that are not key=value are kept out: a record is data, not a promise."""
    said = {}
    for token in name.split():
        key, sep, value = token.partition("=")
        if sep and key:
            said[intern(key)] = intern(value)  # of many cases few are different
    return said


def as_asked(row):
    """The row's case as it was asked: of a run with the guards off, a case that leaves `guards` and `policy` open has guards=off."""
    name = row["case"]
    said = any(f" {key}=" in f" {name}" for key in ("guards", "policy"))
    return name if said or row.get("guards") != "off" else renamed(name, guards="off")


def is_library_s(name, build):
    """Does the case ask for the library's answer (policy=), which need not be cuDNN's? The CPU backend has no other."""
    return " policy=" in name and build != "none"


@lru_cache(maxsize=8192)
def renamed(name, **more):
    """The name with other values of some keys, in the order of names."""
    said = {**parse(name), **more}
    return " ".join(f"{key}={said[key]}" for key in defaults() if key in said)


@lru_cache(maxsize=8192)
def bare(name):
    """The name without engine=: a run with engine=all asks the same question."""
    return " ".join(token for token in name.split() if not token.startswith("engine="))


class Columns:
    """The values of a key for many names, as a function of the key."""

    def __init__(self, names):
        self.said, self.at = [parse(name) for name in names], {}

    def __call__(self, key):
        if key not in self.at:
            if key in parts():
                whole, place = parts()[key]
                part = {value: part_of(value, place) for value in set(self(whole))}
                self.at[key] = [part[value] for value in self(whole)]
                return self.at[key]
            plain = key in defaults() and key not in _when() and key not in _follows()
            default = defaults().get(key)
            if plain:
                self.at[key] = [said.get(key, default) for said in self.said]
            else:
                self.at[key] = [value_of(said, key) for said in self.said]
        return self.at[key]


def asked_of(name):
    """What a predicate asks of a case: {key: value}, as a function."""
    said = parse(name)
    return lambda key: value_of(said, key)


def part_of(value, place):
    numbers = value.replace(":", "/").split("/")
    return numbers[min(place, len(numbers) - 1)]


def value_of(said, key):
    """The value of a key or dotted part, defaults included; None when there is no such key."""
    if key in parts():
        key, place = parts()[key]
        return part_of(value_of(said, key), place)
    if key in said or key not in defaults():
        return said.get(key)
    for other, start, default in _when().get(key, ()):
        value = value_of(said, other)
        if value == start or (start.endswith("*") and value.startswith(start[:-1])):
            return default
    if key not in _follows():
        return defaults()[key]
    other, place = value_of(said, _follows()[key]), -1 if key in ("k", "v") else 0
    return other.split("_")[place] if _follows()[key] == "layout" else other
