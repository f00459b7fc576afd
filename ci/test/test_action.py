"""action.yml and the GitLab component, run here step by step: real shells, pip and `facts gate`; a stub of the services around them."""

import contextlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile
from pathlib import Path

import needs
import recipes

ACTION = recipes.HOME / "action.yml"
COMMENT = recipes.HOME / "ci/gate/comment.py"
LOST = "pass=fwd dtype=f32,bf16 impl=unified b=1 h=2 s=128 d=64,128"  # 9.27.0 refuses f32 here, 9.20.0 takes it
LAUNCHER = (
    f"import os, sys\ndef main(): os.execv({str(recipes.FACTS)!r}, ['facts', *sys.argv[1:]])\n"
)


def wheel(folder):
    """A wheel as ours is, as far as pip looks: it starts the program of this build."""
    path, info = folder / "facts_cudnn-0.4.0-py3-none-any.whl", "facts_cudnn-0.4.0.dist-info"
    files = {
        "facts_cudnn.py": LAUNCHER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: facts-cudnn\nVersion: 0.4.0\n",
        f"{info}/RECORD": "",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\nfacts = facts_cudnn:main\n",
    }
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return path


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
        page = int(
            re.fullmatch(r"/repos/me/mine/issues/7/comments\?per_page=100&page=(\d+)", self.path)[1]
        )
        self.answer(200, self.comments[100 * page - 100 : 100 * page])

    def do_POST(self):
        body = self.sent()
        if not self.refuses:
            assert self.path == "/repos/me/mine/issues/7/comments"
            self.comments.append(
                {"id": len(self.comments) + 1, "user": {"type": self.author}, "body": body}
            )
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
        yield (
            {
                "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
                "GITHUB_REPOSITORY": "me/mine",
                "no_proxy": "127.0.0.1",
            },
            handler.comments,
        )
        server.shutdown()


class Runner:
    """A composite action on GitHub's runner: expressions, conditions, outputs and the summary; `uses` steps are written down."""

    def __init__(self, at, temp, inputs, pull="", **environment):
        self.at, self.failed, self.outputs, self.used, self.log = at, None, {}, {}, ""
        (self.action,) = recipes.documents(ACTION)
        given = {
            name: about.get("default", "") for name, about in self.action["inputs"].items()
        } | inputs
        assert set(given) == set(self.action["inputs"])
        self.context = {f"inputs.{name}": value for name, value in given.items()} | {
            "github.event.pull_request.number": pull,
            "github.token": "secret",
            "runner.os": "Linux",
            "runner.arch": "X64",
        }
        self.environment = {
            **os.environ,
            "HOME": str(at),
            "RUNNER_TEMP": str(temp),
            "GITHUB_ACTION_PATH": str(recipes.HOME),
            "XDG_CACHE_HOME": str(at / "cache"),
            "GITHUB_STEP_SUMMARY": str(at / "summary"),
            "PIP_NO_INDEX": "1",
            "FACTS_PYTHON": sys.executable,
            **environment,
        }
        (at / "summary").write_text("")

    def value(self, text):
        """Text with its expressions put in. A step that did not run has no outputs; another unknown name is an error here."""
        while "${{" in str(text):
            text = re.sub(
                r"\$\{\{ *([\w.-]+) *\}\}",
                lambda m: str(
                    self.context.get(m[1], "") if m[1].startswith("steps.") else self.context[m[1]]
                ),
                text,
            )
        return str(text)

    def holds(self, condition):
        def one(term):
            name, operator, literal = re.fullmatch(
                r" *([\w.-]+)(?: ([!=]=) '([^']*)')? *", term
            ).groups()
            value = self.value(self.context[name])
            return bool(value) if operator is None else (value == literal) == (operator == "==")

        return all(map(one, condition.split("&&")))

    def run(self):
        for number, step in enumerate(self.action["runs"]["steps"]):
            if self.failed is not None or not self.holds(step.get("if", "runner.os")):
                continue
            if "uses" in step:
                self.used[step["uses"].split("@")[0]] = {
                    name: self.value(value) for name, value in step["with"].items()
                }
                continue
            script, output = self.at / f"step-{number}", self.at / f"output-{number}"
            script.write_text(step["run"])
            output.write_text("")
            assert step["shell"] == "bash"
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
                cwd=self.at,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                env=self.environment
                | {name: self.value(value) for name, value in step.get("env", {}).items()}
                | {"GITHUB_OUTPUT": str(output)},
            )
            self.log += done.stdout
            self.context |= {
                f"steps.{step.get('id')}.outputs.{name}": value
                for name, _, value in (
                    line.partition("=") for line in output.read_text().splitlines()
                )
            }
            self.failed = done.returncode or None
        self.outputs = {
            name: self.value(about["value"]) for name, about in self.action["outputs"].items()
        }
        self.summary = (self.at / "summary").read_text()
        return self


class Recipe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def builds(self):
        """The builds of this machine in a cache of the test's own, which has no key of plans."""
        needs.link(self.at / "cache", needs.OLD, needs.NEW)


class Action(Recipe):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.temp = Path(folder.name)  # of one job, whose steps these are

    def act(self, pull="", environment=(), **inputs):
        return Runner(
            self.at,
            self.temp,
            {
                "baseline": "9.20.0",
                "candidate": "9.27.0",
                "devices": "h100-sxm",
                "facts": str(wheel(self.at)),
            }
            | inputs,
            pull,
            **dict(environment),
        ).run()

    def test_a_refused_move_in_a_pull_request_of_a_fork_then_a_good_one_with_a_token(self):
        self.builds()
        with service(refuses=True) as (environment, comments):
            bad = self.act("7", environment, suite=LOST)
        self.assertEqual(
            (bad.failed, bad.outputs["decision"], bad.outputs["status"]),
            (1, "DO NOT MOVE", "1"),
            bad.log,
        )
        self.assertTrue(bad.summary.startswith("**DO NOT MOVE: 2 accepted cases are refused now."))
        self.assertIn(
            "\n::error title=FACTS%3A DO NOT MOVE::DO NOT MOVE: 2 accepted", "\n" + bad.log
        )
        self.assertIn("::notice title=FACTS::This token may not comment", bad.log)
        self.assertEqual(comments, [])
        for name in ("gate.jsonl", "gate.md", "gate.xml", "page/index.html"):
            self.assertTrue((Path(bad.outputs["folder"]) / name).is_file(), name)
        self.assertEqual(
            bad.used["actions/upload-artifact"],
            {"name": "cudnn-gate", "path": bad.outputs["folder"], "overwrite": "True"},
        )

        with service() as (environment, comments):
            good = self.act(
                "7",
                environment,
                suite=LOST,
                options="--fail-on worse,lost\n\n--plan\n--where dtype=bf16 & d.qk>32\n",
                artifact="",
            )
        self.assertEqual(
            (good.failed, good.outputs["decision"], good.outputs["status"]),
            (None, "OK TO MOVE", "0"),
            good.log,
        )
        self.assertNotIn("actions/upload-artifact", good.used)
        self.assertEqual(
            [c["body"].splitlines()[0] for c in comments],
            [f"<!-- facts gate {LOST} on h100-sxm -->"],
        )
        self.assertIn("**OK TO MOVE", comments[0]["body"])

    def test_what_is_cached_is_cudnn_and_the_wheel_and_never_the_key_of_plans(self):
        version = re.search(
            r"^project\(facts VERSION (\S+)", (recipes.HOME / "CMakeLists.txt").read_text(), re.M
        )[1]
        done = self.act(facts="", baseline="nonsense")
        self.assertIn(
            done.failed, (1, 2)
        )  # pip has no index here, unless another test installed the wheel before
        cache = done.used["actions/cache"]
        self.assertEqual(
            cache["path"].split(),
            [str(self.at / "cache/facts" / name) for name in ("cudnn", "nvrtc", "pip")],
        )
        self.assertEqual(cache["key"], f"facts-Linux-X64-facts-cudnn=={version}-nonsense-9.27.0")
        self.assertRegex(
            self.act(facts="", baseline="nonsense", candidate="latest").used["actions/cache"][
                "key"
            ],
            r"-nonsense-latest-20\d\d-\d\d-\d\d$",
        )  # of this day
        self.assertTrue(cache["key"].startswith(cache["restore-keys"]))

    def test_a_wrong_input_fails_the_step_and_writes_no_comment(self):
        with service() as (environment, comments):
            done = self.act(
                "7",
                environment,
                baseline="nonsense",
                suite="$(touch pwned)`touch pwned`",
                options="; touch pwned",
            )
        self.assertEqual(
            (done.failed, done.outputs["decision"], done.outputs["status"]), (2, "", "2"), done.log
        )
        self.assertEqual((comments, (self.at / "pwned").exists()), ([], False))

    def test_no_input_is_a_part_of_a_script(self):
        for step in recipes.documents(ACTION)[0]["runs"]["steps"]:
            self.assertNotIn("${{", step.get("run", ""))


class Comment(Recipe):
    def write(self, environment, text, title="smoke on h100-sxm"):
        (self.at / "gate.md").write_text(text)
        return subprocess.run(
            [sys.executable, COMMENT, self.at / "gate.md", title],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **environment, "GITHUB_TOKEN": "secret", "PULL": "7"},
        ).stdout

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
        self.assertEqual(
            [c["body"] for c in comments[150:]],
            [mark + "four", mark.replace("smoke", "core") + "three"],
        )
        self.assertEqual(comments[:150], others)

    def test_a_service_that_is_away_is_a_warning(self):
        with service() as (environment, _):
            pass
        self.assertIn(
            "::warning title=FACTS::The pull request has no comment", self.write(environment, "one")
        )


class Component(Recipe):
    def component(self, **inputs):
        """The job with inputs put in, as GitLab does it."""
        head, body = (
            (recipes.HOME / "templates/cudnn-gate.yml").read_text(encoding="utf-8").split("\n---\n")
        )
        (spec,) = recipes.documents(head)
        given = {
            name: about.get("default") for name, about in spec["spec"]["inputs"].items()
        } | inputs
        body = re.sub(r"\$\[\[ *inputs\.(\w+) *\]\]", lambda m: given[m[1]], body)
        self.assertNotIn("$[[", body)
        ((name, job),) = recipes.documents(body)[0].items()
        return name, job

    def test_the_job_ends_as_the_gate_does_under_a_runner_s_umask(self):
        self.builds()
        name, job = self.component(
            baseline="9.20.0",
            candidate="9.27.0",
            devices="h100-sxm",
            suite=LOST,
            facts=str(wheel(self.at)),
            job="move",
        )
        self.assertEqual(name, "move")
        (self.at / "cache").rename(self.at / ".facts-cache")
        for folder in (".facts-cache", ".facts-cache/facts", ".facts-cache/facts/cudnn"):
            (self.at / folder).chmod(0o777)
        self.assertEqual(
            job["cache"]["paths"],
            [".facts-cache/facts/cudnn", ".facts-cache/facts/nvrtc", ".facts-cache/pip"],
        )
        environment = {
            **os.environ,
            "HOME": str(self.at),
            "CI_PROJECT_DIR": str(self.at),
            "PIP_NO_INDEX": "1",
            "FACTS_PYTHON": sys.executable,
        }
        for variable, value in job["variables"].items():
            environment[variable] = re.sub(r"\$(\w+)", lambda m: environment[m[1]], value)
        script = self.at / "script"
        script.write_text("set -eo pipefail\n" + "\n".join(job["script"]))
        done = subprocess.run(
            ["bash", script],
            cwd=self.at,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            umask=0,
        )
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(done.stdout.startswith("DO NOT MOVE: 2 accepted cases are refused now."))
        open_to_all = [
            path
            for top in (".facts-cache", ".facts-venv")
            for path in (self.at / top).rglob("*")
            if path.is_dir() and path.stat().st_mode & 0o022
        ]
        self.assertEqual(open_to_all, [])
        self.assertEqual(job["artifacts"]["reports"]["junit"], "cudnn-gate/gate.xml")
        for path in ("gate.xml", "gate.jsonl", "page/index.html"):
            self.assertTrue((self.at / "cudnn-gate" / path).is_file(), path)


if __name__ == "__main__":
    recipes.main()
