"""Text from elsewhere: made harmless once, here, before anything keeps it."""
import re
from functools import lru_cache

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]")
_SAFE_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def clean(value, limit):
    """One bounded string without control, direction or half characters (so also valid XML 1.0)."""
    if len(value) <= limit and value.isprintable():
        return value   # nearly always: none of what is replaced is printable
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
    kind = type(value)   # of what json makes there is no subclass
    if kind is str:
        return clean(value, limit)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        return value if -1 << 63 < value < 1 << 63 else str(value)[:40]
    if depth == 0:
        return "…"
    if kind is list:
        return [clean_json(v, limit, depth - 1, items) for v in value[:items]]
    return {_key(k): clean_json(v, limit, depth - 1, items) for k, v in list(value.items())[:items]}


def shell(word):
    """Quoted for a POSIX shell: what is copied from a page must do nothing but what it says."""
    return word if _SAFE_WORD.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def markdown(value):
    """Inline text for a Markdown table."""
    return re.sub(r"([\\`*_{}\[\]<>|#!~])", r"\\\1", line(value, 300)).replace("@", "@\u200b")


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
