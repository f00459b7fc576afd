"""How this package writes: a file takes the place of what has its name when it is whole. What a link or another name stands for stays as it was."""

import contextlib
import errno
import os
import stat
from pathlib import Path


@contextlib.contextmanager
def replaced(path, newline=None):
    """A text file to write to."""
    path = Path(path)
    aside = path.with_name(f".{path.name[:200]}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind == stat.S_IFCHR or path.parts[:2] == ("/", "dev"):  # /dev/null, /dev/stdout
            aside = path
        elif kind not in (stat.S_IFREG, stat.S_IFLNK):
            raise OSError(errno.EINVAL, "is no file", str(path))
    try:
        with open(aside, "w" if aside is path else "x", encoding="utf-8", newline=newline) as out:
            yield out
        if aside is not path:
            os.replace(aside, path)
    except BaseException as error:
        if aside is not path:
            aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a full disk
            error.filename = str(path)
        raise


def write(path, said):
    with replaced(path) as out:
        out.write(said)
