#!/usr/bin/env python3
"""Writes the program of `facts repro CASE --standalone FOLDER` out of what the worker left in FOLDER/data.

usage: standalone.py FOLDER [--frontend] [--keep] [--clean] [--new]
Writes repro.c, Makefile and README.md into FOLDER, and leaves the .npy files that they read. --frontend: repro.py, reference.py and check.py, too.
  --keep     the worker's answers about the case stay, too
  --clean    writes nothing: the worker could not give all of its files
  --new      FOLDER/data was not there before, and goes if nothing is written
Exit: 0 written, 3 the case cannot be written as a program (one line with the reason).
"""

import json
import pathlib
import re
import shutil
import sys

import frontend
import program_check
import program_graph
from program_check import CannotSay

HERE = pathlib.Path(__file__).resolve().parent
FINE = ("pass", "supported")
INTERNAL = ("case.json", "decided.json", "rows.jsonl")  # the generator's own; they do not stay


def text_of(path):
    return path.read_text(encoding="utf-8")


def read(folder):
    """(case, rows of the answers, what the heuristics offered)."""
    case, decided = folder / "case.json", folder / "decided.json"
    rows = list(map(json.loads, text_of(folder / "rows.jsonl").splitlines()))
    reason = rows[0].get("reason", {}) if rows else {"text": "the case was not asked"}
    if not case.exists() or not rows or reason.get("class") == "environment":
        raise CannotSay(reason.get("text", ""))
    offered = json.loads(text_of(decided)) if decided.exists() else {}
    return json.loads(text_of(case)), rows, offered


def chosen(rows):
    """The row that the program repeats: the first that is no pass."""
    return next((row for row in rows if row.get("verdict") not in FINE), rows[-1])


def engine_of(row, decided):
    """(index, {knob: value}); (None, {}) when no engine was in hand: the program then asks the heuristics."""
    if "pins" in row:
        return row["pins"]["engine"], row["pins"]["knobs"]
    asked = re.search(r" engine=(\d+)", row["case"])
    for engine in row.get("engines", decided.get("engines", [])):
        found = row.get("config", engine.get("config")) == engine.get("config")
        if "engine" in row:
            found &= engine["index"] == row["engine"]
        elif "config" not in row:
            found = not engine.get("removed") if asked is None else engine["index"] == int(asked[1])
        if found and engine["mode"] == "A":
            return engine["index"], engine["knobs"]
    return None, {}


def check_words(case, row):
    """Calls that one launch does not repeat."""
    if row.get("verdict") == "unsupported" and row.get("reason", {}).get("class") == "policy":
        raise CannotSay(
            f"FACTS refuses this case itself ({row['reason'].get('rule') or row['reason'].get('text', '')}); ask with guards=off"
        )
    if case["exec"] not in ("eager", "graph"):
        raise CannotSay(
            f"exec={case['exec']}: the program makes one call, eager or as a CUDA graph"
        )
    if " memory=" in case["case"]:
        raise CannotSay("memory=: the program does not fill the GPU before its call")
    if row.get("reason", {}).get("text", "").startswith("O or Stats of its own forward"):
        raise CannotSay("the forward of the captured graph fails; the program makes one call")
    if case["check"] != "none":
        raise CannotSay(f"check={case['check']} compares several calls; the program makes one")


def version_text(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


# What cuDNN was doing when the process ended, by the stage of the row.
DOING = {"decide": "decided", "build": "built the plan", "plan": "built the plan"}
DEATHS = ("crash", "hang", "exit_crash")


def death(row):
    """The end of a process in a sentence. The text of a hang's or crash's reason is about the worker of FACTS, up to what the process wrote itself."""
    reason = row.get("reason", {})
    doing = f"while it {DOING.get(row.get('stage'), 'executed the plan')}"
    if row["verdict"] == "hang":
        return f"cuDNN did not return {doing}"
    wrote = reason.get("text", "").partition(": ")[2].strip()
    return (
        f"cuDNN ended the process {doing} ({reason.get('status') or 'signal ' + str(row.get('signal'))})"
        + (f"; the process wrote: {wrote}" if wrote else "")
    )


def expected(case, row):
    """For the README."""
    if row.get("verdict") in DEATHS and row.get("stage") in DOING:
        return "a plan or a refusal."
    runs = program_check.Program(case, row).runs()
    same = f", and {runs} runs give the same bits" if runs > 1 else ""
    return f"every output is within the tolerance, and nothing is written outside a tensor{same}."


COUNTS = {"wrong": "wrong", "not_finite": "not finite"}
COUNTS |= {"unwritten": "not written", "overrun": "written outside"}


def seen_lines(row):
    """What FACTS saw, in words."""
    reason = row.get("reason", {})
    if row.get("verdict") in DEATHS:
        yield death(row)
        return
    decided = row.get("verdict") == "supported"
    yield (
        f"verdict: {'accepted and built; nothing ran' if decided else row.get('verdict')}"
        + (f", stage {row['stage']}" if "stage" in row else "")
        + (f", signal {row['signal']}" if "signal" in row else "")
    )
    if reason.get("status") or reason.get("text"):
        yield " ".join(["cuDNN says:", *(reason[k] for k in ("status", "text") if reason.get(k))])
    for name, error in row.get("errors", {}).items():
        ratio = error.get("ratio")
        is_large = isinstance(ratio, str) or (ratio or 0) > 1
        if not is_large and not error.keys() & COUNTS.keys() - {"wrong"}:
            continue
        counts = ", ".join(f"{error[key]} {word}" for key, word in COUNTS.items() if key in error)
        yield f"{name}: {counts or 'wrong'}; at {error.get('worst_index')} got {error.get('got')}, expected {error.get('want')}, bound {error.get('bound')}"


def about(case, row, engine, knobs):
    name = "none offered, or not known"
    if engine is not None:
        said = " ".join(f"{key}={value}" for key, value in knobs.items())
        name = f"engine {engine}" + (f" with {said}" if knobs else "")
    return [
        f"cuDNN {version_text(case['cudnn'])}, {row.get('device') or case['device']} (sm_{case['sm']}). Engine: {name}.",
        f"Batch {case['batch']}, heads of Q/K/V {case['heads_q']}/{case['heads_k']}/{case['heads_v']}, {case['seq_q']} queries, {case['seq_kv']} keys, "
        f"head dims {case['dim_qk']} and {case['dim_v']}.",
        *seen_lines(row),
    ]


def title(case, row):
    passes = {"fwd": "forward", "bwd": "backward"}[case["pass"]]
    verdict = row.get("verdict")
    what = "not run" if verdict == "supported" else verdict
    return f"cuDNN {version_text(case['cudnn'])}, sm_{case['sm']}: attention {passes}, {case['dtype']}: {what}"


def readme(case, row, engine, knobs, script):
    """`script`: there is one, beside the program."""
    words = {
        "script": script,
        "title": title(case, row),
        "expected": expected(case, row),
        "about": "\n".join("- " + line for line in about(case, row, engine, knobs)),
    }
    return program_check.filled("README.md.in", words)


def comment(lines):
    return "\n".join(" * " + line.replace("*/", "* /") for line in lines)


def write_program(folder, case, row, decided):
    engine, knobs = engine_of(row, decided)
    graph = program_graph.Graph(case["graph"])
    words = program_check.words(case, row)
    words.update(
        title=title(case, row),
        about=comment(about(case, row, engine, knobs)),
        graph=graph.text(),
        helpers=graph.used,
        engine=engine,
        knobs=", ".join(f"knob({knob_name(key)}, {value})" for key, value in knobs.items()),
    )
    put(folder / "repro.c", program_check.filled("program.c.in", words))
    put(folder / "Makefile", text_of(HERE / "Makefile.in"))
    put(folder / "README.md", readme(case, row, engine, knobs, False))


def put(path, text):
    path.write_text(text, encoding="utf-8")


def knob_name(word):
    is_number = re.fullmatch(r"KNOB_\d+", word)
    return f"(cudnnBackendKnobType_t){word[5:]}" if is_number else f"CUDNN_KNOB_TYPE_{word}"


def write_script(folder, case, row, decided):
    engine, knobs = engine_of(row, decided)
    said = about(case, row, engine, knobs)
    text = frontend.script(case, row, title(case, row), said, engine, knobs)
    read_by_check = {key: case[key] for key in case if key not in ("graph", "knob_numbers")}
    put(folder / "repro.py", text)
    put(folder / "check.py", text_of(HERE / "check.py"))
    put(folder / "reference.py", program_check.filled("reference.py.in", {}))
    put(folder / "data/case.json", json.dumps(read_by_check, indent=1))
    put(folder / "README.md", readme(case, row, engine, knobs, True))


def clean(data, words, made):
    """Removes what only this program reads; and all data, if nothing reads it and nobody had put anything there."""
    if not made and "--new" in words:
        shutil.rmtree(data, ignore_errors=True)
    unread = ["sigma"] if "repro.py" in made else ["sigma", "want", "tolerance"]
    for path in (path for word in unread for path in data.glob(f"*.{word}.npy")):
        path.unlink()
    for name in INTERNAL:
        if not ("repro.py" in made and name == "case.json"):  # check.py reads it
            (data / name).unlink(missing_ok=True)


def main(words):
    folder, as_script, made = pathlib.Path(words[0]), "--frontend" in words[1:], ""
    status, option = 0, "--standalone" + " --frontend" * as_script
    try:
        if "--clean" not in words[1:]:
            case, rows, decided = read(folder / "data")
            row = chosen(rows)
            check_words(case, row)
            write_program(folder, case, row, decided)
            made = "repro.c, Makefile"
            if as_script:
                write_script(folder, case, row, decided)
                made += ", repro.py, reference.py, check.py"
            print(f"facts repro: wrote {folder}: {made}, README.md and data/", file=sys.stderr)
    except CannotSay as error:
        alone = f"; wrote the C program alone into {folder}" if made else ""
        print(f"facts repro: {option}: {error}{alone}", file=sys.stderr)
        status = 3
    finally:
        if "--keep" not in words[1:]:
            clean(folder / "data", words[1:], made)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
