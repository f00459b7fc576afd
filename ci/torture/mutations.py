"""Changed files: what is in a good one, bent by a seeded generator; and which bytes no output may hold."""

import gzip
import io
import json
import lzma
import re
import warnings
import zipfile

LARGE = 1 << 20
MARKS = "\x1b]0;title\x07\x1b[31m \x9b2J \u202e\u2066\u200f\u061c\u2028\ufeff"
TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    MARKS.encode(),
    b"\r\n",
    b"\n\n",
    b"'\"`",
    b"=1+1",
    b"%s%n",
    b"../../../etc/passwd",
    b"</script>",
    b"\\u0000",
    b"\\ud800",
    b"NaN",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e999",
    b"99999999999999999999999999",
    b"-2147483649",
    b"2147483648",
    b"true",
    b"null",
    b"{}",
    b"[]",
    b"[" * 3000,
    b"(" * 3000,
    b'{"a":' * 3000,
    b"x" * 70000,
    b"1..999999999",
    b"1,2,3,4,5,6,7,8,9",
    b"#",
    b"=",
    b":",
    b",",
    b'"',
)
VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1 << 62,
    -(1 << 63),
    1 << 70,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    "0",
    "9.99.0",
    "gpu0",
    "nan",
    "inf",
    MARKS,
    "=1+1",
    "x" * 5000,
    "pass",
    "wrong",
    "../" * 9,
    "__proto__",
    "pass=fwd dtype=bf16 " + MARKS,
    "</script>",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"a": None},
    {"": {}},
    [1] * 3000,
    {MARKS: MARKS},
    {str(i): i for i in range(1000)},
    [[[[[[[[[[[[1]]]]]]]]]]]],
)
NUMBER = re.compile(rb"-?\d+(\.\d+)?")
# Characters that a terminal, a page or a spreadsheet may obey: controls except line ends and tabs, C1 controls, marks of direction, line separators.
OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def obeyed(data):
    """The first place in an output that a terminal could obey, or that is no UTF-8; empty: none."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8 at byte {error.start}"
    found = OBEYED.search(text)
    return (
        f"{found[0]!r} after {text[max(found.start() - 60, 0) : found.start()]!r}" if found else ""
    )


def place(rng, data):
    return rng.randrange(len(data) + 1)


def some_line(rng, data):
    lines = data.split(b"\n")
    return lines, rng.randrange(len(lines))


def flip(rng, data):
    at = place(rng, data[:-1])
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] if data else data


def insert(rng, data):
    at = place(rng, data)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def cut(rng, data):
    at = place(rng, data)
    return data[:at] + data[at + rng.choice((1, 4, 40, 400)) :]


def end(rng, data):
    return data[: place(rng, data)]


def number(rng, data):
    found = list(NUMBER.finditer(data))
    if not found:
        return insert(rng, data)
    one = rng.choice(found)
    return data[: one.start()] + rng.choice(TOKENS) + data[one.end() :]


def double_line(rng, data):
    lines, at = some_line(rng, data)
    return b"\n".join(lines[:at] + [lines[at]] * rng.choice((2, 2, 50)) + lines[at + 1 :])


def drop_line(rng, data):
    lines, at = some_line(rng, data)
    return b"\n".join(lines[:at] + lines[at + 1 :])


def swap_lines(rng, data):
    lines, at = some_line(rng, data)
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def copy_part(rng, data):
    at, to = place(rng, data), place(rng, data)
    return data[:to] + data[at : at + rng.choice((3, 30, 300))] + data[to:]


def values(node, path=()):
    """The paths of every value below a parsed JSON value."""
    for key, value in (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    ):
        yield (*path, key)
        yield from values(value, (*path, key))


def json_value(rng, data):
    """A value of a file of JSON, or of one of its lines, becomes one of another type or size, or goes."""
    whole = data.startswith(b"{\n")
    lines, at = ([data], 0) if whole else some_line(rng, data)
    try:
        node = json.loads(lines[at])
        *way, last = rng.choice(list(values(node)))
    except (ValueError, IndexError, RecursionError):
        return flip(rng, data)
    inside = node
    for key in way:
        inside = inside[key]
    if rng.random() < 0.15:
        del inside[last]
    else:
        inside[last] = rng.choice(VALUES)
    return b"\n".join(
        lines[:at] + [json.dumps(node, indent=1 if whole else None).encode()] + lines[at + 1 :]
    )


WAYS = (
    flip,
    flip,
    insert,
    insert,
    cut,
    end,
    number,
    number,
    double_line,
    drop_line,
    swap_lines,
    copy_part,
    json_value,
    json_value,
    json_value,
    json_value,
)


def mutated(rng, data, large):
    """`large`: grown to 1 MB, of which whole lines are repeated or one place is."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        data = rng.choice(WAYS)(rng, data)
    if large and data:
        if rng.random() < 0.7:
            data = data * (LARGE // len(data) + 1)
        else:
            at, part = place(rng, data), rng.choice(TOKENS) * 200
            data = data[:at] + part * (LARGE // len(part)) + data[at:]
    return data[:LARGE]


def packed(rng, data, ending):
    """A file as its ending says; one in three is changed after it was packed."""
    if ending.endswith(".xz"):
        data = lzma.compress(data, preset=0)
    elif ending.endswith(".gz"):
        data = gzip.compress(data, 1)
    else:
        return data
    return rng.choice((flip, end, cut, insert))(rng, data) if rng.random() < 0.33 else data


def wheel(rng, data):
    """A wheel whose entries are changed: names, links, contents, doubles, RECORD; or the bytes of the file."""
    if rng.random() < 0.3:
        return mutated(rng, data, False)
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as good,
        zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as bad,
    ):
        entries = [(info.filename, good.read(info)) for info in good.infolist()]
        for name, content in entries:
            what = rng.randrange(40)
            info = zipfile.ZipInfo(name)
            if what == 0:
                info.filename = rng.choice(
                    (
                        "../" * 9 + name,
                        "/tmp/hostile/" + name,
                        "nvidia/../../lib/" + name.rsplit("/", 1)[-1],
                        "C:" + name,
                        name + "/",
                        name.replace("/", "\\"),
                        name + MARKS,
                    )
                )
            elif what == 1:
                info.external_attr = 0o120777 << 16
                content = b"/etc/passwd"
            elif what == 2:
                content = mutated(rng, content, False)
            elif what == 3:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a name is there twice
                    bad.writestr(info, rng.randbytes(100))
                    bad.writestr(info, content)
                continue
            elif what == 4:
                continue
            elif what == 5:
                content = bytes(64 << 20)
            bad.writestr(info, content)
    return out.getvalue()
