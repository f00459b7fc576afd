"""action.yml and the GitLab component, run here step by step: real shells, pip and `facts gate`; a stub of the services around them."""

import contextlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import unittest
import zipfile
from pathlib import Path

import needs
import recipes
import wheels
from scripts import FACTS, HOME, VERSION, Folder, OneFolder, run

ACTION = HOME / "action.yml"
COMMENT = HOME / "ci/gate/comment.py"
LOST = "pass=fwd dtype=f32,bf16 impl=unified b=1 h=2 s=128 d=64,128"  # 9.27.0 refuses f32 here, 9.20.0 takes it
MOVE = {"baseline": "9.20.0", "candidate": "9.27.0", "devices": "h100-sxm"}
LAUNCHER = f"import os, sys\ndef main(): os.execv({str(FACTS)!r}, ['facts', *sys.argv[1:]])\n"
OURS = {"PIP_NO_INDEX": "1", "FACTS_PYTHON": sys.executable}


def wheel(folder):
    """A wheel as ours is, as far as pip looks: it starts the program of this build."""
    path, info = folder / "facts_cudnn-0.4.0-py3-none-any.whl", "facts_cudnn-0.4.0.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        for name, text in {
            "facts_cudnn.py": LAUNCHER,
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: facts-cudnn\nVersion: 0.4.0\n",
            f"{info}/RECORD": "",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": "[console_scripts]\nfacts = facts_cudnn:main\n",
        }.items():
            made.writestr(name, text)
    return str(path)


def bash(script, at, environment, **more):
    """A step of a service: (exit, what it prints)."""
    path = at / "step"
    path.write_text(script)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", path]
    more |= {"cwd": at, "stderr": subprocess.STDOUT, "env": environment}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **more)
    return done.returncode, done.stdout


class Service(http.server.BaseHTTPRequestHandler):
    """GitHub's comments of one pull request, 100 a page. `refuses`: the token may only read."""

    comments, refuses, author = [], False, "Bot"

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def sent(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def do_GET(self):
        assert self.headers["Authorization"] == "Bearer secret"
        path = r"/repos/me/mine/issues/7/comments\?per_page=100&page=(\d+)"
        page = int(re.fullmatch(path, self.path)[1])
        self.answer(200, self.comments[100 * page - 100 : 100 * page])

    def do_POST(self):
        body = self.sent()
        if not self.refuses:
            assert self.path == "/repos/me/mine/issues/7/comments"
            user = {"type": self.author}
            self.comments.append({"id": len(self.comments) + 1, "user": user, "body": body})
        self.answer(403 if self.refuses else 201, {})

    def do_PATCH(self):
        at = int(re.fullmatch(r"/repos/me/mine/issues/comments/(\d+)", self.path)[1]) - 1
        self.comments[at]["body"] = self.sent()
        self.answer(200, {})

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def service(comments=(), refuses=False):
    handler = type("Here", (Service,), {"comments": list(comments), "refuses": refuses})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        add = {"GITHUB_API_URL": url, "GITHUB_REPOSITORY": "me/mine", "no_proxy": "127.0.0.1"}
        yield add, handler.comments
        server.shutdown()


class Runner:
    """A composite action on GitHub's runner: expressions, conditions, outputs and the summary; `uses` steps are written down."""

    def __init__(self, at, temp, inputs, pull="", environment=()):
        self.at, self.failed, self.outputs, self.used, self.log = at, None, {}, {}, ""
        (self.action,) = recipes.documents(ACTION)
        given = {name: about.get("default", "") for name, about in self.action["inputs"].items()}
        assert set(inputs) <= set(given)
        self.context = {f"inputs.{name}": value for name, value in {**given, **inputs}.items()} | {
            "github.event.pull_request.number": pull,
            "github.token": "secret",
            "runner.os": "Linux",
            "runner.arch": "X64",
        }
        self.environment = {
            **os.environ,
            **OURS,
            "HOME": str(at),
            "RUNNER_TEMP": str(temp),
            "GITHUB_ACTION_PATH": str(HOME),
            "XDG_CACHE_HOME": str(at / "cache"),
            "GITHUB_STEP_SUMMARY": str(at / "summary"),
            "GITHUB_SERVER_URL": "https://forge",
            "GITHUB_REPOSITORY": "me/mine",
            "GITHUB_RUN_ID": "9",
            **dict(environment),
        }
        (at / "summary").write_text("")

    def value(self, text):
        """Text with its expressions put in. A step that did not run has no outputs; another unknown name is an error here."""

        def one(found):
            unknown = {} if found[1].startswith("steps.") else self.context
            return str(unknown[found[1]] if unknown else self.context.get(found[1], ""))

        while "${{" in str(text):
            text = re.sub(r"\$\{\{ *([\w.-]+) *\}\}", one, text)
        return str(text)

    def values(self, texts):
        return {name: self.value(text) for name, text in texts.items()}

    def holds(self, condition):
        def one(term):
            form = r" *([\w.-]+)(?: ([!=]=) '([^']*)')? *"
            name, operator, literal = re.fullmatch(form, term).groups()
            value = self.value(self.context[name])
            return bool(value) if operator is None else (value == literal) == (operator == "==")

        return all(map(one, condition.split("&&")))

    def run(self):
        for step in self.action["runs"]["steps"]:
            if self.failed is not None or not self.holds(step.get("if", "runner.os")):
                continue
            if "uses" in step:
                self.used[step["uses"].split("@")[0]] = self.values(step["with"])
                continue
            output = self.at / "output"
            output.write_text("")
            assert step["shell"] == "bash" and "${{" not in step["run"]
            add = {**self.values(step.get("env", {})), "GITHUB_OUTPUT": str(output)}
            status, said = bash(step["run"], self.at, {**self.environment, **add})
            self.log += said
            form = r"(?ms)^([\w-]+)(?:=([^\n]*)|<<([^\n]+)\n(.*?)\n\3)$"
            for name, value, _, lines in re.findall(form, output.read_text()):
                self.context[f"steps.{step.get('id')}.outputs.{name}"] = value or lines
            self.failed = status or None
        outputs = {name: about["value"] for name, about in self.action["outputs"].items()}
        self.outputs = self.values(outputs)
        self.summary = (self.at / "summary").read_text()
        return self


class Action(OneFolder):
    """The steps of one job share RUNNER_TEMP."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.temp = cls.at / "temp"
        cls.temp.mkdir()
        cls.path = f"{wheels.python(cls.at).parent}:{os.environ['PATH']}"

    def act(self, pull="", environment=(), **inputs):
        inputs = {**MOVE, "facts": wheel(self.at), **inputs}
        environment = {"PATH": self.path, **dict(environment)}
        return Runner(self.at, self.temp, inputs, pull, environment).run()

    def test_a_refused_move_in_a_pull_request_of_a_fork_then_a_good_one_with_a_token(self):
        needs.place(self.at / "cache", needs.OLD, needs.NEW)
        with service(refuses=True) as (environment, comments):
            bad = self.act("7", environment, suite=LOST)
        found = (bad.failed, bad.outputs["decision"], bad.outputs["status"], comments)
        self.assertEqual(found, (1, "DO NOT MOVE", "1", []), bad.log)
        said = (
            "FACTS: DO NOT MOVE (cuDNN 9.20.0 → 9.27.0 on h100-sxm): 2 accepted cases are refused"
        )
        self.assertTrue(bad.summary.startswith(f"**{said} now"), bad.summary)
        self.assertIn("[Page](https://forge/me/mine/actions/runs/9)", bad.summary.splitlines()[0])
        error = f"\n::error title=FACTS%3A DO NOT MOVE::{said}"
        self.assertIn(error, "\n" + bad.log)
        self.assertIn("::notice title=FACTS::This token may not comment", bad.log)
        folder = bad.outputs["folder"]
        for name in ("gate.jsonl", "gate.md", "gate.xml", "page/index.html"):
            self.assertTrue((Path(folder) / name).is_file(), name)
        upload = {"name": "cudnn-gate", "path": folder, "overwrite": "True"}
        self.assertEqual(bad.used["actions/upload-artifact"], upload)
        options = "--fail-on worse,lost\n\n--plan\n--where dtype=bf16 & d.qk>64\n"
        with service() as (environment, comments):
            good = self.act("7", environment, suite=LOST, options=options, artifact="")
        found = (good.failed, good.outputs["decision"], good.outputs["status"])
        self.assertEqual(found, (None, "OK TO MOVE", "0"), good.log)
        self.assertNotIn("actions/upload-artifact", good.used)
        (comment,) = comments
        head = f"<!-- facts gate {LOST} on h100-sxm -->\n"
        self.assertTrue(comment["body"].startswith(head), comment)
        self.assertIn("**FACTS: OK TO MOVE (", comment["body"])

    def test_what_is_cached_is_cudnn_and_the_wheel_and_never_the_key_of_plans(self):
        done = self.act(facts="", baseline="nonsense")
        self.assertIn(done.failed, (1, 2))  # pip has no index here, or another test installed it
        cache = done.used["actions/cache"]
        paths = [str(self.at / "cache/facts" / name) for name in ("cudnn", "nvrtc", "pip")]
        self.assertEqual(cache["path"].split(), paths)
        self.assertEqual(cache["key"], f"facts-Linux-X64-facts-cudnn=={VERSION}-nonsense-9.27.0")
        self.assertTrue(cache["key"].startswith(cache["restore-keys"]))
        latest = self.act(facts="", baseline="nonsense", candidate="latest").used["actions/cache"]
        self.assertRegex(latest["key"], r"-nonsense-latest-20\d\d-\d\d-\d\d$")  # of this day

    def test_a_wrong_input_fails_the_step_and_writes_no_comment(self):
        bad = {"suite": "$(touch pwned)`touch pwned`", "options": "; touch pwned"}
        with service() as (environment, comments):
            done = self.act("7", environment, baseline="nonsense", **bad)
        found = (done.failed, done.outputs["decision"], done.outputs["status"], comments)
        self.assertEqual(found, (2, "", "2", []), done.log)
        self.assertFalse((self.at / "pwned").exists())
        for inputs in ({"suite": "--help"}, {"options": "--help"}):
            done = self.act(**inputs)
            self.assertEqual(done.outputs["decision"], "")
            self.assertIn(done.failed, (2, 3), done.log)
        inputs = self.act(facts="facts-cudnn\ncache=/etc", baseline="nonsense").context
        self.assertEqual(inputs["steps.setup.outputs.cache"], str(self.at / "cache/facts"))


class Comment(Folder):
    def write(self, environment, text, title="smoke on h100-sxm"):
        (self.at / "gate.md").write_text(text)
        add = {**environment, "GITHUB_TOKEN": "secret", "PULL": "7"}
        return run(sys.executable, COMMENT, self.at / "gate.md", title, add=add)

    def test_one_comment_for_a_title_edited_in_place(self):
        mark = "<!-- facts gate smoke on h100-sxm -->\n"
        others = [
            {"id": n + 1, "user": {"type": "User"}, "body": mark + "OK TO MOVE, says a stranger"}
            for n in range(150)
        ]
        with service(others) as (environment, comments):
            self.write(environment, "one")
            self.write(environment, "two")
            self.write(environment, "three", "core on h100-sxm")
            self.write(environment, "four")
        wanted = [mark + "four", mark.replace("smoke", "core") + "three"]
        self.assertEqual([c["body"] for c in comments[150:]], wanted)
        self.assertEqual(comments[:150], others)

    def test_a_service_that_is_away_is_a_warning(self):
        with service() as (environment, _):
            pass
        said = self.write(environment, "one")
        self.assertIn("::warning title=FACTS::The pull request has no comment", said)


class Component(Folder):
    def component(self, **inputs):
        """The job with inputs put in, as GitLab does it."""
        text = (HOME / "templates/cudnn-gate.yml").read_text(encoding="utf-8")
        head, body = text.split("\n---\n")
        (spec,) = recipes.documents(head)
        about = spec["spec"]["inputs"].items()
        given = {name: one.get("default") for name, one in about} | inputs
        body = re.sub(r"\$\[\[ *inputs\.(\w+) *\]\]", lambda m: given[m[1]], body)
        self.assertNotIn("$[[", body)
        return recipes.documents(body)[0]

    def test_the_job_ends_as_the_gate_does_under_a_runner_s_umask(self):
        job = self.component(**MOVE, suite=LOST, facts=wheel(self.at), job="move")["move"]
        needs.place(self.at / "cache", needs.OLD, needs.NEW)
        cache = self.at / ".facts-cache"
        (self.at / "cache").rename(cache)
        for folder in (cache, cache / "facts", cache / "facts/cudnn"):
            folder.chmod(0o777)
        paths = [".facts-cache/facts/cudnn", ".facts-cache/facts/nvrtc", ".facts-cache/pip"]
        self.assertEqual(job["cache"]["paths"], paths)
        environment = {**os.environ, **OURS, "HOME": str(self.at), "CI_PROJECT_DIR": str(self.at)}
        environment["PATH"] = f"{wheels.python(self.at).parent}:{os.environ['PATH']}"
        for variable, value in job["variables"].items():
            environment[variable] = re.sub(r"\$(\w+)", lambda m: environment[m[1]], value)
        status, said = bash("\n".join(job["script"]), self.at, environment, umask=0)
        self.assertEqual(status, 1, said)
        first = "\nDO NOT MOVE (cuDNN 9.20.0 -> 9.27.0): 2 accepted cases are refused now."
        self.assertIn(first, "\n" + said)
        folders = [*cache.rglob("*"), *(self.at / ".facts-venv").rglob("*")]
        bad = [path for path in folders if path.is_dir() and path.stat().st_mode & 0o022]
        self.assertEqual(bad, [])
        self.assertEqual(job["artifacts"]["reports"]["junit"], "cudnn-gate/gate.xml")
        for path in ("gate.xml", "gate.jsonl", "page/index.html"):
            self.assertTrue((self.at / "cudnn-gate" / path).is_file(), path)


if __name__ == "__main__":
    unittest.main()
