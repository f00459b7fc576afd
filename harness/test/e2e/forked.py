"""Python scripts that need NumPy or pip. One process imports it, and each script runs in a fork of that process: it starts once, not once for each script.

started by a test (run): reads {"script" or "code", "arguments", "folder", "environment"} from stdin, one a line, and answers {"status", "out", "err"}.
"""

import json
import os
import subprocess
import sys

PYTHON = os.environ.get("FACTS_PYTHON") or sys.executable


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self.text = out + err


class Forks:
    """A module, imported in a process of its own; nothing of it runs in this one."""

    def __init__(self, module="numpy", environment=None):
        environment = {
            **(environment or os.environ),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        command = [PYTHON, "-B", __file__, module]
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.has_numpy = self.process.stdout.readline() == "ready\n"

    def run(self, script, *arguments, folder=None, code=False, **environment):
        """The result of a file, or of a text with code=True."""
        request = {"code" if code else "script": script, "folder": folder}
        request |= {"arguments": [str(word) for word in arguments], "environment": environment}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Result(**json.loads(self.process.stdout.readline()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def execute(request):
    """In the fork: the script as `python script arguments` runs it. Does not return."""
    import atexit
    import runpy
    import traceback

    status = 1
    try:
        os.chdir(request["folder"] or "/")
        os.environ.update(request["environment"])
        if "code" in request:
            sys.argv = ["-c", *request["arguments"]]
            exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = [request["script"], *request["arguments"]]
            sys.path[0] = os.path.dirname(request["script"])
            runpy.run_path(request["script"], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def serve():
    import importlib
    import tempfile

    importlib.import_module(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                execute(json.loads(line))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        print(json.dumps({"status": status, "out": texts[0], "err": texts[1]}), flush=True)


if __name__ == "__main__":
    serve()
