"""Text from elsewhere: made harmless once, here, before anything keeps it."""

import math
import re
import textwrap
from functools import lru_cache
from itertools import islice

_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def clean(value, limit):
    """One bounded string without control, direction or half characters (so also valid XML 1.0)."""
    if len(value) <= limit and value.isprintable():
        return value  # nearly always: none of what is replaced is printable
    text = _CONTROL.sub("\ufffd", value[: limit + 1])
    if len(value) > limit:
        text = f"{text[:limit]} … (cut: {len(value):,} characters)"
    return text


def line(value, limit):
    cleaned = clean(value, limit)
    return cleaned if cleaned.isprintable() else re.sub(r"[\t\n\r]+", " ", cleaned)


@lru_cache(maxsize=4096)
def _key(name):
    return line(str(name), 80)


def clean_json(value, limit=4000, depth=8, items=400):
    """The same for a parsed JSON value: bounded in length, depth and breadth."""
    kind = type(value)  # of what json makes there is no subclass
    if kind is str:
        return value if len(value) <= limit and value.isprintable() else clean(value, limit)
    if kind is float:
        # of 1e999; the reader makes words of NaN and Infinity too
        return value if math.isfinite(value) else str(value)
    if kind is int:
        return value if -1 << 63 < value < 1 << 63 else str(value)[:40]
    if value is None or kind is bool:
        return value
    if depth == 0:
        return "…"
    if kind is list:
        return [clean_json(v, limit, depth - 1, items) for v in value[:items]]
    members = value.items() if len(value) <= items else islice(value.items(), items)
    return {
        _key(k): v
        if type(v) is str
        and len(v) <= limit
        and v.isprintable()
        or type(v) is float
        and -math.inf < v < math.inf
        or type(v) is int
        and -1 << 63 < v < 1 << 63
        else clean_json(v, limit, depth - 1, items)
        for k, v in members
    }  # most members need no call


def objects(value, key):
    """The objects in the list that an object of a record holds under a key: a record from elsewhere may hold anything there."""
    found = value.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def offered(row):
    """The engines of a row, as mode A of cuDNN's heuristics has them."""
    return [one for one in objects(row, "engines") if one.get("mode", "A") == "A"]


def texts(value, key):
    """The same of texts."""
    found = value.get(key)
    return [str(one) for one in found] if isinstance(found, list) else []


def shell(word):
    """Quoted for a POSIX shell: what is copied from a page must do nothing but what it says."""
    return word if _SAFE_WORD.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def markdown(value, limit=300):
    """Inline text for a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]<>|#!~])", r"\\\1", line(value, limit)).replace("@", "@\u200b")


def ticks(value, least=1):
    """As many backticks as fence a text: more than it holds in a row."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", value)), default=0))


def code(value):
    """Inline code for a Markdown table."""
    value = line(value, 1500).replace("|", "\\|")
    fence = ticks(value)
    pad = " " if "`" in value else ""
    return f"{fence}{pad}{value}{pad}{fence}"


def count(n, word, plural=None):
    return f"{n:,} {word if n == 1 else plural or word + 's'}"


_WHOLE = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)")  # code and links: a line does not break inside
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
_LITERAL = re.compile(r"\s*$|[|#<>]|    ")


def _fill(lines, first, rest, width):
    kept = []

    def keep(found):
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0".ljust(len(found[0]), "\1")

    held = _WHOLE.sub(keep, " ".join(line.strip() for line in lines))
    filled = textwrap.wrap(
        held,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for i in range(1, len(filled)):  # a line that begins like an item would become one
        mark, _, tail = filled[i].lstrip().partition(" ")
        if _ITEM.match(mark + " ") or mark[0] in "|#>":
            filled[i - 1], filled[i] = f"{filled[i - 1]} {mark}", rest + tail
    return [re.sub("\0(\\d+)\0\1*", lambda found: kept[int(found[1])], part) for part in filled]


def wrapped(page, width=118):
    """A Markdown page with its paragraphs and list items in lines of at most `width` columns. Tables, headings and code stay."""
    out, held, first, rest, code = [], [], "", "", False

    def flush():
        if held:
            out.extend(_fill(held, first, rest, width))
        held.clear()

    for row in page.split("\n"):
        item = _ITEM.match(row)
        if row.strip().startswith("```"):
            code = not code
        elif not code and (
            item or (held or not _LITERAL.match(row)) and row.strip() and row[0] not in "|#<>"
        ):
            if item:
                flush()
            if not held:
                first = item[0] if item else re.match(r"\s*", row)[0]
                rest = " " * len(first)
            held.append(row[len(first) :] if item else row)
            continue
        flush()
        out.append(row)
    flush()
    return "\n".join(out)
