"""Stands between the supervisor and a real worker, and makes the moment that a test needs. `Between` of e2e.py writes the script that starts it.

usage: between.py FOLDER COMMAND...    FOLDER/when holds one of these; without the file, everything is passed on
  kill N    kill -9 of the worker, and of this process, instead of request N of each worker; FOLDER/killed has a byte for each
  hold N    request N, counted over all workers, waits as long as FOLDER/held is there, which says that it was reached
"""

import json
import os
import signal
import subprocess
import sys
import time


def add_byte(folder, name):
    """Returns how many there are now."""
    with open(os.path.join(folder, name), "ab") as file:
        file.write(b".")
        file.flush()
        return file.tell()


def main(folder, *command):
    what, at = None, 0
    if os.path.exists(os.path.join(folder, "when")):
        with open(os.path.join(folder, "when"), encoding="ascii") as file:
            what, at = file.read().split()
    supervisor = os.getppid()
    worker = subprocess.Popen(command, stdin=subprocess.PIPE)
    asked = 0
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "target" in request:
            request["target"]["supervisor"] = os.getpid()
            line = json.dumps(request).encode() + b"\n"
        else:
            asked = asked + 1 if what == "kill" else add_byte(folder, "asked")
        if what == "kill" and asked == int(at):
            add_byte(folder, "killed")
            worker.kill()
            worker.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "hold" and asked == int(at):
            with open(os.path.join(folder, "held"), "x", encoding="ascii"):
                pass
            while os.path.exists(os.path.join(folder, "held")) and os.getppid() == supervisor:
                time.sleep(0.01)
        worker.stdin.write(line)
        worker.stdin.flush()
    worker.stdin.close()
    status = worker.wait()
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
