#!/usr/bin/env python3
"""Makes the source of the site: the tree of this project, with the pages that programs print in docs/printed.

    python3 ci/docs/site_tree.py FOLDER      ./facts docs calls it; it needs the built programs (FACTS_BIN)

PRINTED lists the pages. Pages in git name a printed page as code, `printed/NAME.md`; docs/conf.py makes links of these names.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reports"))

from facts_reports.known import known, pages

PROGRAM = Path(os.environ.get("FACTS_BIN", ROOT / "build/release/bin")) / "facts"
HERE, EXAMPLES = "ci/docs", "reports/examples"
AUDIT = """# Other projects' rules: the answers

[audit.md](../audit.md) explains the words. Printed from `{record}` by `facts audit --markdown --from RECORD`.

"""
PRINTED = {
    "commands.md": [PROGRAM, "help", "markdown"],
    "api.md": [sys.executable, f"{HERE}/api.py"],
    "api-python.md": [sys.executable, f"{HERE}/api.py", "python"],
    "catalogue.md": [
        sys.executable,
        f"{HERE}/page.py",
        "catalogue",
        "reports/catalogue",
        f"{EXAMPLES}/regress.jsonl.xz",
    ],
    "audit-decided.md": [
        PROGRAM,
        "audit",
        "--markdown",
        "--from",
        f"{EXAMPLES}/audit-decided.jsonl.xz",
    ],
    "audit-gpu.md": [PROGRAM, "audit", "--markdown", "--from", f"{EXAMPLES}/audit.jsonl.xz"],
}


def printed(command):
    """What a command prints. 1 is a finding, which a page may show."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


def write_pages(folder):
    """Prints every page into a folder."""
    (folder / "known").mkdir(parents=True)
    entries = known.load(ROOT / "cases/known")
    (folder / "findings.md").write_text(pages.findings(entries), encoding="utf-8")
    for entry in entries:
        (folder / f"known/{entry.name}.md").write_text(pages.page(entry), encoding="utf-8")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, page in zip(PRINTED, pool.map(printed, PRINTED.values())):
            head = AUDIT.format(record=PRINTED[name][-1]) if "audit" in name else ""
            (folder / name).write_text(head + page, encoding="utf-8")


def main(folder):
    """Makes the folder again. Its files are hard links: Sphinx follows symbolic ones out of the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [p for p in ROOT.iterdir() if p.name != "build" and not p.name.startswith(".")]
    for path in names:
        if path.is_dir():
            shutil.copytree(
                path,
                folder / path.name,
                copy_function=os.link,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        else:
            os.link(path, folder / path.name)
    write_pages(folder / "docs/printed")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
