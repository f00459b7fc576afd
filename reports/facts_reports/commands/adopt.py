"""`facts adopt`: adopts a new cuDNN release, step by step, and prints a summary for a pull request.

  1 lock      facts cudnn lock VERSION                adds the packages to ci/cudnn.lock
  2 install   facts cudnn install VERSION             downloads the build, checked against the lock
  3 known     facts known check --cudnn VERSION       do the known failures still happen? edits cases/known
  4 gate      facts gate --baseline V --candidate VERSION
  5 golden    facts expect golden check and add       adds the version to cases/golden/support.txt

Each step is one command that can also be typed alone. Only data files change; the summary names them. A finding does not stop the run. A step that
cannot be done stops the run.
"""

import re
import sys
import time

from ..read import files
from ..read.text import count
from ..read.versions import number
from . import asking
from .options import BAD_INPUT, ENVIRONMENT, FINDINGS, INTERRUPTED, OK, Command, UsageError, options

COMMAND = Command(
    "adopt",
    options("""
    --device D,D       for known failures and gate; default: GPU 0, otherwise described devices
    --baseline V       default: the newest version of the golden matrix before VERSION
    --plan             gate: also compile what cuDNN accepts
    -o, --output FILE  write the summary there too
    """),
    ("facts adopt 9.28.1", "facts adopt 9.28.1 -o summary.md"),
    needs="VERSION",
)
DATA = ("ci/cudnn.lock", "cases")  # all that a step may change
LOCK, GOLDEN = asking.home("ci/cudnn.lock"), asking.home("cases/golden/support.txt")
HOME = GOLDEN.parents[2]


class Stop(Exception):
    """A step that cannot be done: (exit code, reason)."""


class Run:
    def __init__(self, args):
        self.args, self.steps, self.sections, self.findings = args, [], [], False
        self.version = self.build = args.words[0]

    def facts(self, *words, quiet=True):
        """(exit code, standard output, standard error). Not quiet: the command shows its own progress on our standard error."""
        print(f"facts adopt: facts {' '.join(words)}", file=sys.stderr, flush=True)
        done = asking.ended(asking.program(), *words, quiet=quiet)
        if quiet:
            sys.stderr.write(done.stderr)
        return done.returncode, done.stdout, done.stderr or ""

    def step(self, name, work):
        started = time.monotonic()
        answer = "interrupted"
        try:
            answer = work()
        except Stop as stop:
            answer = f"**stopped**: {stop.args[1]}"
            raise
        finally:
            self.steps.append((name, answer, time.monotonic() - started))

    def must(self, status, text, allowed=(OK,)):
        """Stops unless the exit code is allowed; notes a finding."""
        if status not in allowed:
            code = status if status in (BAD_INPUT, FINDINGS, INTERRUPTED) else ENVIRONMENT
            raise Stop(code, last_line(text) or f"exit {status}, see above")
        self.findings = self.findings or status == FINDINGS


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("facts: ")[:300] if lines else ""


def fenced(text):
    return f"```text\n{text.rstrip()}\n```"


def locked(version):
    """The lines of the lock that are of this version."""
    wanted = version.split("-")[0] + "."
    lines = [line for line in LOCK.read_text().splitlines() if line.startswith("nvidia-cudnn")]
    return [line for line in lines if f"{line.split()[1]}.".startswith(wanted)]


def newest_adopted(version):
    """The newest build of the golden matrix that is older than this version."""
    lines = GOLDEN.read_text().splitlines()
    builds = [line.split()[2:4] for line in lines if line.startswith("# build ")]
    older = [words for words in builds if number(words[0]) < number(version)]
    if not older:
        said = f"cases/golden/support.txt has no version before {version}; give --baseline V"
        raise Stop(BAD_INPUT, said)
    return max(older, key=lambda words: number(words[0]))[1]


def lock(run):
    before = LOCK.read_text().splitlines()
    known = locked(run.version)
    status, _, err = run.facts("cudnn", "lock", run.version)
    if status == ENVIRONMENT and known:
        return "has this version already; the package index did not answer for more of it"
    run.must(status, err)
    lines = [line for line in LOCK.read_text().splitlines() if line not in before]
    new = [line for line in lines if line.startswith("nvidia-")]
    run.sections.append(("Packages", fenced("\n".join(new or known))))
    return f"{count(len(new), 'package')} added" if new else "has this version already"


def install(run):
    status, out, _ = run.facts("cudnn", "install", "--pinned-only", run.version, quiet=False)
    run.must(status, "")
    run.build = out.split("\t")[0]
    return run.build


def known(run):
    words = run.args.given("device")
    status, out, err = run.facts("known", "check", "--cudnn", run.build, "--write", *words)
    run.must(status, err, (OK, FINDINGS))
    # what a person has to look at
    said = [line for line in err.splitlines() if ".known:" in line or ": suspected on " in line]
    run.sections.append(("Known failures", fenced("\n".join([out.rstrip(), *said]))))
    return next((line for line in out.splitlines() if "got no answer" in line), "checked")


def gate(run):
    baseline = run.args.baseline or newest_adopted(run.build)
    words = ["gate", "--baseline", baseline, "--candidate", run.build, "--markdown"]
    words += run.args.given("device", "plan")
    status, out, _ = run.facts(*words, quiet=False)
    run.must(status, "", (OK, FINDINGS))
    run.sections.append((f"Gate: {baseline} to {run.build}", out.strip()))
    return out.partition("\n")[0].strip("*")


def golden(run):
    status, out, err = run.facts("expect", "golden", "check", "--cudnn", run.build)
    run.must(status, err, (OK, FINDINGS))
    lines = [line for line in out.splitlines() if "to add them" not in line]
    lost = [line for line in err.splitlines() if "golden: " in line or "support.txt:" in line]
    added, text, err = run.facts("expect", "golden", "add", "--cudnn", run.build)
    run.must(added, err)
    run.sections.append(("Golden matrix", fenced("\n".join(lost + lines))))
    words = lines[0] if " is new: " in lines[0] else "has this version already"
    return f"**{len(lost)} lost or changed**; {words}" if status == FINDINGS else words


def changed_files():
    """What differs from the last commit, of the files that a step may change."""
    git = ("git", "-C", str(HOME))
    shown = asking.ended(*git, "diff", "--stat", "HEAD", "--", *DATA)
    new = asking.ended(*git, "ls-files", "--others", "--exclude-standard", "--", *DATA)
    if shown.returncode:
        return "This is not a git checkout. The steps may change: " + ", ".join(DATA)
    added = "".join(f" {name} (new)\n" for name in new.stdout.splitlines())
    return fenced(shown.stdout + added or "nothing changed")


def summary(run):
    out = [f"# cuDNN {run.build}", "", "| step | result | seconds |", "|---|---|---|"]
    for name, answer, seconds in run.steps:
        out.append(f"| {name} | {answer.replace('|', '/')} | {seconds:.0f} |")
    for title, text in [*run.sections, ("Files to review", changed_files())]:
        out += ["", f"## {title}", "", text]
    return "\n".join(out) + "\n"


_STEPS = {"lock": lock, "install": install, "known failures": known}
_STEPS |= {"gate": gate, "golden matrix": golden}


def run(args):
    if len(args.words) > 1 or not re.fullmatch(r"[A-Za-z0-9.-]{1,40}", args.words[0], re.ASCII):
        raise UsageError(f'"{args.words[-1][:60]}": give one version, such as 9.28.1')
    if not (HOME / "CMakeLists.txt").exists():
        return COMMAND.fail(f"{HOME}: is no checkout of FACTS; run it in one", ENVIRONMENT)
    run, status = Run(args), OK
    try:
        for name, work in _STEPS.items():
            run.step(name, lambda work=work: work(run))
    except Stop as stop:
        status = stop.args[0]
    except KeyboardInterrupt:
        status = INTERRUPTED
    text = summary(run)
    print(text, end="")
    if args.output:
        files.write(args.output, text)
    return status or (FINDINGS if run.findings else OK)
