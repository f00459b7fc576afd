"""The pages of ci/docs for their tests: the modules on the path, and a way to run the command."""

import contextlib
import io
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME / "ci/docs"), str(HOME / "reports/test")]

import page  # noqa: E402
import support  # noqa: E402
import synthetic  # noqa: E402


def printed(*args):
    """(exit code, stdout, stderr)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = page.main([str(a) for a in args])
    return code, out.getvalue(), err.getvalue()
