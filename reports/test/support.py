"""What every test needs: the package on the path, a folder, and a way to run the command."""
import contextlib
import io
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from facts_reports import cli  # noqa: E402
from facts_reports.store import load  # noqa: E402


def run(*args):
    """(exit code, stdout, stderr)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(a) for a in args])
    return code, out.getvalue(), err.getvalue()


def store(folder, data, name="r.jsonl"):
    path = Path(folder) / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load([path])
