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


# What junit-10.xsd of Jenkins' xUnit plugin lets stand where, in both of its versions: attributes, and children in any order. A * marks what must be there.
_JUNIT = """
testsuites: name time tests failures errors; testsuite
testsuite: name* tests* failures* errors* time skipped timestamp hostname id package group file log url; properties testcase system-out system-err testsuite
properties: ; property
property: name* value*;
testcase: name* classname time group; skipped error failure system-out system-err
failure: message type;
error: message type;
skipped: message type;
"""


def _junit_rule(tag):
    """(attributes, those that must be there, children)"""
    said = re.search(rf"^{tag}: (.*);(.*)$", _JUNIT, re.M) or ("", "", "")
    names = said[1].split()
    must = {name[:-1] for name in names if name.endswith("*")}
    return {name.rstrip("*") for name in names}, must, set(said[2].split())


def junit_breaches(path):
    """Where a file breaks the form that Jenkins reads, has a test without a time, two tests of one name, or counts that are not those of its tests."""
    root = ElementTree.parse(path).getroot()
    found = [] if root.tag == "testsuites" else [f"the root is {root.tag}"]
    for element in root.iter():
        attributes, must, children = _junit_rule(element.tag)
        has = set(element.keys())
        found += [f"{element.tag} has no {name}" for name in must - has]
        found += [f"{element.tag} may not have {name}" for name in has - attributes]
        found += [f"{one.tag} in {element.tag}" for one in element if one.tag not in children]
        if element.tag in ("testsuite", "testcase"):
            if not re.fullmatch(r"\d+(\.\d{1,3})?", element.get("time", "")):
                found.append(f"{element.get('name')}: no time")
    for suite in root.iter("testsuite"):
        tests = suite.findall("testcase")
        for name, kind in (("tests", "."), ("failures", "failure"), ("errors", "error")):
            due = sum(test.find(kind) is not None for test in tests)
            if int(suite.get(name)) != due:
                found.append(f"{suite.get('name')}: {name} is {suite.get(name)}, not {due}")
    names = [(t.get("classname"), t.get("name")) for t in root.iter("testcase")]
    return found + [f"twice: {name}" for name in set(names) if names.count(name) > 1][:5]
