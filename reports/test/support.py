"""What every test needs: the package on the path, a folder, and a way to run the command."""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parents[1] / "ci/test"))

from facts_reports import commands  # noqa: E402
from facts_reports.read.store import load  # noqa: E402
from needs import NIGHT  # noqa: E402, F401


def run(*args):
    """(exit code, stdout, stderr)"""
    return called(commands.main, *args)


def called(main, *args):
    """(exit code, stdout, stderr)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(a) for a in args])
    return code, out.getvalue(), err.getvalue()


class Folder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = self.at = Path(folder.name)


def store(folder, data, name="r.jsonl"):
    path = Path(folder) / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load([path])


# What junit-10.xsd of Jenkins' xUnit plugin lets stand where, in both of its versions: attributes, and children in any order.
_JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {
            "name",
            "tests",
            "failures",
            "errors",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "group",
            "file",
            "log",
            "url",
        },
        {"properties", "testcase", "system-out", "system-err", "testsuite"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "classname", "time", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "skipped": ({"message", "type"}, set()),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}
_JUNIT_MUST = {
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name"},
    "property": {"name", "value"},
}


def junit_breaches(path):
    """Where a file breaks the form that Jenkins reads, has a test without a time, two tests of one name, or counts that are not those of its tests."""
    root = ElementTree.parse(path).getroot()
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        attributes, children = _JUNIT.get(element.tag, (set(), set()))
        found += [
            f"{element.tag} has no {name}"
            for name in _JUNIT_MUST.get(element.tag, set()) - set(element.keys())
        ]
        found += [
            f"{element.tag} may not have {name}" for name in set(element.keys()) - attributes
        ] + [f"{one.tag} in {element.tag}" for one in element if one.tag not in children]
        if element.tag in ("testsuite", "testcase") and not re.fullmatch(
            r"\d+(\.\d{1,3})?", element.get("time", "")
        ):
            found.append(f"{element.get('name')}: no time")
    for suite in root.iter("testsuite"):
        tests = suite.findall("testcase")
        for name, due in (
            ("tests", len(tests)),
            ("failures", sum(t.find("failure") is not None for t in tests)),
            ("errors", sum(t.find("error") is not None for t in tests)),
        ):
            if int(suite.get(name)) != due:
                found.append(f"{suite.get('name')}: {name} is {suite.get(name)}, not {due}")
    names = [(t.get("classname"), t.get("name")) for t in root.iter("testcase")]
    return found + [f"twice: {name}" for name in set(names) if names.count(name) > 1][:5]
