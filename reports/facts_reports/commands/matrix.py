"""`facts matrix`: several cuDNN builds, suite smoke and two devices, into records and a page."""

import contextlib
import re
import sys
from pathlib import Path

from . import asking, report
from .options import BAD_INPUT, ENVIRONMENT, FINDINGS, INCOMPLETE, INTERRUPTED, NOTHING, OK
from .options import Command, Failed, UsageError, folder, options

_LEAST_VERSIONS = 3
_BUILDS = "9.14.0-jit-cu13,9.20.0-jit-cu13,9.27.0-jit-cu13"
COMMAND = Command(
    "matrix",
    options(
        """
    cudnn device
    -o, --output DIR  folder for the records and the page
    --json            print the rows, one JSON object a line
    jobs timeout pinned-only
    """,
        output=folder,
    ),
    ("facts matrix", "facts matrix --cudnn 9.20.0,9.27.0 --device h100-sxm,sm100-spec -o matrix"),
)


def _builds():
    """One build of each version that is here; of fewer than three versions also the default three."""
    found = _found()
    if len(found) < _LEAST_VERSIONS:
        print(
            f"facts matrix: fewer than three cuDNN versions here; installing {_BUILDS}",
            file=sys.stderr,
        )
        # the reason is printed; the builds that are here are asked
        with contextlib.suppress(Failed):
            asking.view("cudnn", "install", "--pinned-only", *_BUILDS.split(","))
        found = _found()
    if not found:
        raise Failed(COMMAND.fail("no cuDNN build to ask; facts cudnn install 9.20.0", ENVIRONMENT))
    return ",".join(found)


def _found():
    """[name]: of each version the first, which is the one that --cudnn VERSION means."""
    listed = re.findall(r"(?m)^(\d[\d.]*)(-\S+) (?!.*NVRTC: MISSING)", asking.view("cudnn", "list"))
    first = {}
    for version, rest in listed:
        first.setdefault(version, version + rest)
    return list(first.values())


def _parts(args):
    """[(name, task, devices)]: described devices only decide, GPUs and the CPU backend run."""
    words = [word for word in asking.described("matrix", args.device).split(",") if word]
    described = [word for word in words if asking.are_described(word)]
    parts = [
        ("decisions", "decide", described),
        ("runs", "run", [word for word in words if word not in described]),
    ]
    if not args.device:
        parts += [("gpu", "run", ["0"] * asking.gpus_here()), ("cpu", "run", ["cpu"])]
    parts = [(name, task, ",".join(found)) for name, task, found in parts if found]
    if not parts:
        raise UsageError("--device is empty")
    return parts


def _worse(a, b):
    """The worse of two exit codes: a finding comes before an incomplete answer."""
    order = (INTERRUPTED, BAD_INPUT, FINDINGS, ENVIRONMENT, INCOMPLETE, NOTHING)
    return next((code for code in order if code in (a, b)), OK)


def run(args):
    at = Path(args.output or "./facts-report")
    try:
        at.mkdir(exist_ok=True)
    except OSError as error:
        return COMMAND.fail(
            f"{at}: {error.strerror}; give another folder with -o DIR",
            BAD_INPUT if at.exists() else ENVIRONMENT,
        )
    cudnn, status, records = args.cudnn or _builds(), OK, []
    out = sys.stderr if args.json else sys.stdout
    for name, task, devices in _parts(args):
        record = str(at / f"{name}.jsonl")
        words = args.given("json", "jobs", "timeout", "pinned-only")
        if devices != "cpu":
            words += ["--cudnn", cudnn]
        print(f"\n== {name}", file=out, flush=True)
        done, _ = asking.run(
            task,
            ["smoke"],
            *words,
            "--device",
            devices,
            "-o",
            record,
            "--overwrite",
            out=sys.stdout,
        )
        status = _worse(status, done)
        if done == INTERRUPTED:
            return done
        if done == BAD_INPUT:
            break
        records.append(record)
    if records:
        done = report.COMMAND.main([*records, "-o", str(at)], report.run)
        if done in (OK, INCOMPLETE):
            print(f"\nrecords and report: {at}/\npage: {at}/index.html")
        status = _worse(status, done)
    return status
