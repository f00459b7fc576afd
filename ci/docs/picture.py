#!/usr/bin/env python3
"""Prints the picture of README: the top of the report on example records, in a browser.

    python3 ci/docs/picture.py [OUT.png]      default: docs/images/report.png

FACTS_CHROMIUM names the browser; otherwise the first one on PATH. Run it with build/venv/bin/python, which has Jinja2.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reports"))

from facts_reports import commands

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
RECORDS = [str(ROOT / f"reports/examples/{name}.jsonl.xz") for name in ("smoke", "regress")]


def main(arguments):
    """Writes the report, then the picture of it. 3 when there is no browser."""
    out = Path(arguments[0] if arguments else ROOT / "docs/images/report.png").resolve()
    browser = os.environ.get("FACTS_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if not browser:
        print("picture.py: no browser; set FACTS_CHROMIUM", file=sys.stderr)
        return 3
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        status = commands.main(
            [*RECORDS, "-o", folder, "--title", "cuDNN fused attention on an H100"]
        )
        if status:
            return status
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--window-size=1240,720",
                "--virtual-time-budget=8000",
                f"--screenshot={out}",
                (Path(folder) / "index.html").as_uri(),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
