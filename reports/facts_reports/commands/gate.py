"""`facts gate`: may CI move from one cuDNN to another? Asks both builds the same cases in one run, or reads existing records, and compares."""

import os
import re
import sys
import tempfile

from ..compare import diff_files, times
from ..known import known, knowledge
from ..read import cases, files, reader
from ..read.versions import version_key
from . import asking, diff
from .options import BAD_INPUT, ENVIRONMENT, INTERRUPTED, NOTHING
from .options import Command, Failed, UsageError, options

_EXAMPLE = "facts gate --baseline 9.20.0 --candidate 9.27.0"
COMMAND = Command(
    "gate",
    (
        *options("device output plan jobs resume overwrite timeout"),
        *options("plan-dir pinned-only"),
        *diff.COMPARES,
        *options("--bench  measure times, the builds in turns; a slower case is then a finding"),
    ),
    (
        _EXAMPLE,
        "facts gate core --baseline 9.20.0 --candidate 9.27.0 --device h100-sxm --markdown",
    ),
)
# cuDNN answers: no guards, no kernels of FACTS.
_ALONE = ("--guards", "off") + ("--with", "policy=cudnn") * ("policy" in cases.defaults())


# ---- mistakes, found before anything is installed or asked ----


def _is_suite(word):
    places = (asking.home(f"{above}/{word}") for above in ("cases", "cases/suites"))
    return "/" not in word and any(place.exists() for place in places)


def _is_record(word):
    """A record, or a folder of records: a path that is neither a case nor a suite."""
    if os.path.isdir(word):
        return not _is_suite(word)
    if not os.path.exists(word):
        return False
    if reader.is_record_name(word):
        return True
    with open(word, "rb") as file:
        return file.read(1) == b"{"


def _say_how(args):
    if len(args.words) == 2 and all(re.fullmatch(r"\d[\d.]*", word) for word in args.words):
        said = "facts gate --baseline {} --candidate {}".format(*args.words)
        raise UsageError(f"name both versions with options: {said}")
    lacks = [f"--{name} V" for name in ("baseline", "candidate") if not getattr(args, name)]
    said = f"{' and '.join(lacks)} {'are' if len(lacks) > 1 else 'is'} missing"
    raise UsageError(f"{said}. Example: {_EXAMPLE}. Or give two records")


def _check_devices(args, devices):
    """The kinds of the devices, which have cuDNN, and their architectures."""
    found = asking.rows("devices", "--device", devices)
    kinds = {kind for _, kind, *_ in found}
    if "cpu" in kinds:
        raise UsageError("--device cpu runs no cuDNN; give a GPU or a described device")
    if "described" in kinds and args.bench:
        raise UsageError("--bench: a described device runs nothing; give --device 0")
    return kinds, {int(sm) for _, _, sm, *_ in found if sm.isdigit()}


def _check_build(option, word, described):
    """One build, which can read a description if there is one. A build that is not known yet is asked for later."""
    try:
        found = [row[1] for row in asking.rows("cudnn", "find", word, quiet=True)]
    except Failed:
        found = []
    if len(found) > 1:
        raise UsageError(f"{option} {word}: is {len(found)} builds; give one")
    version = found[0] if found else word
    if described and (9,) <= version_key(version) < (9, 8):
        said = "cuDNN before 9.8 cannot read a described device; use 9.8 or newer, or a GPU"
        raise UsageError(f"{option} {word}: {said}")


# ---- asking ----


class Unasked(Exception):
    """(exit code, why there is no record)"""


def _check_cases(args):
    checked = args.words or (["bench"] if args.bench else ["smoke", "regress"])
    try:
        asking.view("list", "--count", *args.given("where"), "--", *checked)
    except Failed as failed:
        if failed.args[0] == NOTHING:
            raise Unasked(NOTHING, "no case is selected") from None
        raise


def _find_build(args, word):
    """(name, version, what --cudnn takes). A folder keeps its path, because its name alone does not lead to it."""
    try:
        pinned = args.given("pinned-only")
        [[name, version, *_]] = asking.rows("cudnn", "find", "--install", *pinned, word)
    except Failed as failed:
        raise Unasked(failed.args[0], f"cuDNN {word} could not be asked") from None
    return name, version, word if "/" in word else name


def _cases(args, versions, sms):
    """The default: smoke, and what is known of the two versions: entries that begin or end on a device, and crashes. A case that hangs can disable a GPU: last."""
    if args.words or args.bench:
        return args.words or ["bench"]
    old, new = map(known.number, versions)
    chosen = []
    for entry in known.load(asking.home("cases/known")):
        if not entry.groups or entry.size == "big":
            continue
        lines = [knowledge.line(failure) for failure in entry.failures]
        for sm in sms:
            held = [[knowledge.holds(one, v, sm) for one in lines] for v in (old, new)]
            crashes = any("crash" in one["verdict"] and any(h) for one, *h in zip(lines, *held))
            if held[0] != held[1] or crashes:
                hangs = any("hang" in one["verdict"] for one in lines)
                chosen.append((hangs, f"regress/{entry.name}"))
                break
    return ["smoke", *(name for _, name in sorted(chosen))]


def _ask(args, cases, builds, devices, kinds, *more):
    """The record of both builds. Here only a difference is a finding, not a failure."""
    task = "decide" if kinds == {"described"} else "run"
    if args.plan and "described" in kinds and task == "run":
        said = "--plan compiles for described devices only without a GPU"
        print(f"facts gate: {said}", file=sys.stderr)
    passing = args.given("jobs", "timeout", "plan-dir", "pinned-only")
    if task == "decide":
        passing += args.given("plan")
    if args.bench:
        passing.append("--turns")
    words = ("--cudnn", ",".join(builds), "--device", devices, *_ALONE, *passing, *more)
    status, record = asking.run(task, cases, *words)
    if status in (BAD_INPUT, INTERRUPTED):
        raise Failed(status)
    if status == NOTHING:
        raise Unasked(status, "no case is selected")
    if not record:
        said = "the two builds could not be asked (the message on stderr says why)"
        raise Unasked(ENVIRONMENT, said)
    asking.say(record)
    return record


def _confirm(args, record, names, builds, *where):
    """Cases that may be slower are measured again: other workers have other memory, and twice in a row is no accident."""
    found = times.may_be_slower(record, *names, args.slower or times.LEAST)
    if not found:
        return []
    print("facts gate: measuring again the cases that may be slower", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        suite = os.path.join(scratch, "slower.cases")
        head = "name: slower\nwhy: measured again by other workers\n"
        files.write(suite, head + "".join(f"{name}\n" for name in found))
        more = args.given("resume", "overwrite")
        if args.output:
            more += ["-o", f"{args.output}.again.jsonl"]
        return [_ask(args, [suite], builds[::-1], *where, *more)]


def _ask_and_compare(args):
    if not (args.baseline and args.candidate):
        _say_how(args)
    devices = asking.devices("gate", args.device)
    kinds, sms = _check_devices(args, devices)
    try:
        _check_cases(args)
        asked = {"--baseline": args.baseline, "--candidate": args.candidate}
        for option, word in asked.items():
            _check_build(option, word, "described" in kinds)
        (old, one, *first), (new, other, *second) = (
            _find_build(args, word) for word in asked.values()
        )
        if old == new:
            raise UsageError(f"--baseline and --candidate are both {old}")
        cases = _cases(args, (one, other), sms)
        asked = (first + second, devices, kinds)
        records = [_ask(args, cases, *asked, *args.given("where", "output", "resume", "overwrite"))]
        if args.bench:
            records += _confirm(args, records[0], (old, new), *asked)
    except Unasked as unasked:
        if unasked.args[0] in (NOTHING, ENVIRONMENT):
            diff_files.unasked(unasked.args[1], args)
        return unasked.args[0]
    args.where, args.baseline, args.candidate = None, old, new  # --where has chosen the cases
    return diff.show(args, records, COMMAND, args.bench)


def _gate(args):
    for word in args.words:
        if reader.is_record_name(word) and not os.path.exists(word):
            raise UsageError(f"{word}: no such file")
    records = [word for word in args.words if _is_record(word)]
    if records and len(records) < len(args.words):
        raise UsageError("give records or cases, not both")
    return diff.show(args, records, COMMAND, args.bench) if records else _ask_and_compare(args)


def main(argv):
    if any(word.partition("=")[0] == "--cudnn" for word in argv):
        return COMMAND.fail(f'no option "--cudnn": name both versions: {_EXAMPLE}')
    return COMMAND.main(argv, _gate)
