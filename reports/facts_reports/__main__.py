import os
import sys

from . import cli, diff_cli

try:
    code = diff_cli.main(sys.argv[2:]) if sys.argv[1:2] == ["--diff"] else cli.main()
    sys.stdout.flush()
except BrokenPipeError:  # the reader of our output has seen enough
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    code = 0
sys.exit(code)
