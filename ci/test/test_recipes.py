"""What people copy into their CI, checked as their services check it: actionlint with shellcheck, and the vendors' schemas. Options and names exist."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import recipes

HOME = recipes.HOME
ACTION, COMPONENT = HOME / "action.yml", HOME / "templates/cudnn-gate.yml"
WORKFLOWS = (HOME / "ci/gate/github.yml", HOME / "ci/nightly/github-pages.yml")
JOBS = (HOME / "ci/gate/gitlab.yml", HOME / "ci/nightly/gitlab-pages.yml")
SHELL = (*(HOME / "ci/gate").glob("*.sh"), HOME / "ci/slurm_once.sh")
BIN = Path(sys.executable).parent  # of the environment that has the pinned tools


def tool(name):
    recipes.documents("{}")  # skips, or fails, without the packages
    return BIN / name


def run(*command, **more):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **more
    )
    return done.returncode, done.stdout + done.stderr


def scripts(path):
    """Every shell text of a YAML file."""
    found = []

    def walk(node):
        if isinstance(node, dict):
            found.extend(
                value if isinstance(value, str) else "\n".join(value)
                for key, value in node.items()
                if key in ("run", "script")
            )
            node = node.values()
        if not isinstance(node, str):
            for part in node if hasattr(node, "__iter__") else ():
                walk(part)

    walk(recipes.documents(path))
    return found


def as_workflow(action):
    """An action's steps as a job, whose inputs a caller gives: actionlint reads workflows alone."""
    inputs = {name: {"type": "string"} for name in action["inputs"]}
    return json.dumps(
        {
            "on": {"workflow_call": {"inputs": inputs}, "pull_request": {}},
            "jobs": {"action": {"runs-on": "ubuntu-24.04", "steps": action["runs"]["steps"]}},
        }
    )


def actionlint(**files):
    """What it says of workflows in a repository that has our action."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder, ".github/workflows")
        at.mkdir(parents=True)
        (Path(folder) / ".git").mkdir()
        shutil.copy(ACTION, folder)
        for name, text in files.items():
            (at / f"{name}.yml").write_text(
                re.sub(r"uses: (?!actions/)[\w.-]+/[\w.-]+@v[\d.]+", "uses: ./", text),
                encoding="utf-8",
            )
        return run(tool("actionlint"), "-no-color", "-shellcheck", tool("shellcheck"), cwd=folder)


def schema(name, text):
    """What the schema of a vendor says of a YAML text: where it is wrong."""
    check_jsonschema, jsonschema = (
        recipes.package("check_jsonschema"),
        recipes.package("jsonschema"),
    )
    wanted = json.loads(
        (Path(check_jsonschema.__file__).parent / f"builtin_schemas/vendor/{name}.json").read_text(
            encoding="utf-8"
        )
    )
    return [
        error.json_path
        for document in recipes.documents(text)
        for error in jsonschema.validators.validator_for(wanted)(wanted).iter_errors(document)
    ]


class Recipes(unittest.TestCase):
    def test_actionlint_knows_every_key_and_input_and_shellcheck_every_line(self):
        files = {
            path.stem.replace("-", "_"): path.read_text(encoding="utf-8") for path in WORKFLOWS
        }
        files["action"] = as_workflow(*recipes.documents(ACTION))
        self.assertEqual(actionlint(**files), (0, ""))
        gate = files["github"]
        for bad, finding in (
            (gate.replace("candidate: $", "candidat: $"), 'missing input "candidate"'),
            (gate.replace("outputs.baseline }", "output.baseline }"), "output"),
            (gate.replace("runs-on", "runs_on"), "runs_on"),
            (
                files["action"].replace("inputs.suite", "inputs.suit"),
                'property "suit" is not defined',
            ),
            (
                files["action"]
                .replace('\\"$FACTS_', "$FACTS_")
                .replace('\\"$folder/gate.md\\" >>', "$folder/gate.md >>"),
                "SC2086",
            ),
        ):
            self.assertIn(finding, actionlint(bad=bad)[1])

    def test_the_vendors_schemas_take_them(self):
        head, body = COMPONENT.read_text(encoding="utf-8").split("\n---\n")
        body = body.replace("$[[ inputs.stage ]]", "test")
        texts = [
            ("github-actions", ACTION.read_text()),
            *(("github-workflows", path.read_text()) for path in WORKFLOWS),
            *(("gitlab-ci", path.read_text()) for path in JOBS),
            ("gitlab-ci", head),
            ("gitlab-ci", body),
        ]
        for name, text in texts:
            self.assertEqual(schema(name, text), [])
        for name, text, was, now in (
            (*texts[0], "using: composite", "using: compound"),
            (*texts[2], "timeout-minutes: 60", "timeout-minutes: long"),
            (*texts[4], "paths: [public]", "path: [public]"),
            (*texts[-2], "default: test }", "type: text }"),
            (*texts[-1], "when: always", "when: ever"),
        ):
            self.assertIn(was, text)
            self.assertNotEqual(schema(name, text.replace(was, now)), [], now)

    def test_every_command_has_options_that_exist(self):
        texts = [
            text for path in (ACTION, COMPONENT, *WORKFLOWS, *JOBS) for text in scripts(path)
        ] + [path.read_text(encoding="utf-8") for path in SHELL]
        self.assertEqual(len(texts), 12)
        asked = 0
        for text in texts:
            self.assertEqual(run("bash", "-n", input=text), (0, ""))
            joined = re.sub(r"\\\n|\n +--", lambda m: " --" if "--" in m[0] else " ", text)
            for command, rest in re.findall(
                r"(?:facts\"?|\$\{?facts\"?) (gate|decide|run|merge|report)\b(.*)", joined
            ):
                asked += 1
                self.assertLessEqual(
                    set(re.findall(r" --([a-z-]+)", rest)), recipes.known_options(command), rest
                )
        self.assertGreaterEqual(asked, 6)

    def test_a_recipe_installs_the_released_version(self):
        for path in (*WORKFLOWS, *JOBS):
            self.assertNotRegex("\n".join(scripts(path)), r"install .*facts-cudnn(?!==\d)")

    def test_a_step_of_the_release_pushes_the_image_of_the_recipe(self):
        (image,) = recipes.documents(HOME / "ci/gate/kustomization.yaml")[0]["images"]
        self.assertIn(
            f"push {image['newName']}:{image['newTag']}",
            (HOME / "docs/release.md").read_text(encoding="utf-8"),
        )

    def test_the_nights_publish_a_site(self):
        for path in (WORKFLOWS[1], JOBS[1]):
            shell = "\n".join(scripts(path))
            self.assertRegex(shell, r"facts decide core --cudnn .* --overwrite")
            self.assertRegex(shell, r"facts report --site (site|public) records")
        self.assertIn("--site DIR", run(recipes.FACTS, "report", "--help")[1])


class Mentions(unittest.TestCase):
    """One place defines the repository's name and the version."""

    def copy(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        at = Path(folder.name)
        for path in (
            HOME / "CMakeLists.txt",
            HOME / "ci/check_mentions.py",
            HOME / "docs/cluster.md",
            ACTION,
            COMPONENT,
            *WORKFLOWS,
            *JOBS,
        ):
            (at / path.relative_to(HOME)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, at / path.relative_to(HOME))
        run("git", "-C", at, "init", "-q")
        run("git", "-C", at, "add", ".")
        return at

    def test_every_mention_is_the_one_that_is_defined(self):
        self.assertEqual(run(sys.executable, HOME / "ci/check_mentions.py"), (0, ""))

    def test_another_name_or_version_is_found_and_corrected(self):
        at = self.copy()
        check = [sys.executable, at / "ci/check_mentions.py"]
        self.assertEqual(run(*check), (0, ""))
        lists = at / "CMakeLists.txt"
        lists.write_text(
            re.sub(
                r"VERSION \S+ HOMEPAGE_URL \S+",
                "VERSION 7.8.9 HOMEPAGE_URL https://example.org/other/name",
                lists.read_text(),
                count=1,
            )
        )
        status, said = run(*check)
        self.assertEqual(status, 1)
        for place in (
            r"ci/gate/github.yml:\d+: \S+/facts:",
            r"ci/gate/github.yml:\d+: \d\S+: .* 7.8.9",
            r"ci/gate/gitlab.yml:\d+: \S+/facts:",
            r"templates/cudnn-gate.yml:\d+: \d",
            r"docs/cluster.md:\d+: \d\S+:",
        ):
            self.assertRegex(said, place)
        self.assertEqual(run(*check, "--write")[0], 0)
        self.assertEqual(run(*check), (0, ""))
        (at / "action.yml").write_text((at / "action.yml").read_text() + "# see other/name\n")
        self.assertRegex(run(*check)[1], r"action.yml:\d+: other/name: in a form")


if __name__ == "__main__":
    recipes.main()
