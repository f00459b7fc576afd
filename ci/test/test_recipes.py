"""What people copy into their CI, checked as their services check it: actionlint with shellcheck, and the vendors' schemas. Options and names exist."""

import json
import re
import shutil
import sys
import unittest
from pathlib import Path

import recipes
from scripts import FACTS, HOME, Folder, run, start

ACTION, COMPONENT = HOME / "action.yml", HOME / "templates/cudnn-gate.yml"
WORKFLOWS = (HOME / "ci/gate/github.yml", HOME / "ci/nightly/github-pages.yml")
JOBS = (HOME / "ci/gate/gitlab.yml", HOME / "ci/nightly/gitlab-pages.yml")
SHELL = (*(HOME / "ci/gate").glob("*.sh"), HOME / "ci/slurm_once.sh")
BIN = Path(sys.executable).parent  # of the environment that has the pinned tools


def scripts(path):
    """Every shell text of a YAML file."""
    found, nodes = [], recipes.documents(path)
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, dict):
            texts = [node[key] for key in ("run", "script") if key in node]
            found += [text if isinstance(text, str) else "\n".join(text) for text in texts]
            nodes += node.values()
        elif isinstance(node, list):
            nodes += node
    return found


def as_workflow(action):
    """An action's steps as a job, whose inputs a caller gives: actionlint reads workflows alone."""
    inputs = {name: {"type": "string"} for name in action["inputs"]}
    job = {"runs-on": "ubuntu-24.04", "steps": action["runs"]["steps"]}
    events = {"workflow_call": {"inputs": inputs}, "pull_request": {}}
    return json.dumps({"on": events, "jobs": {"action": job}})


def schema(name, text):
    """What the schema of a vendor says of a YAML text: where it is wrong."""
    path = Path(recipes.package("check_jsonschema").__file__).parent / "builtin_schemas/vendor"
    wanted = json.loads((path / f"{name}.json").read_text(encoding="utf-8"))
    validator = recipes.package("jsonschema").validators.validator_for(wanted)(wanted)
    return [e.json_path for one in recipes.documents(text) for e in validator.iter_errors(one)]


class Recipes(Folder):
    def actionlint(self, **files):
        """What it says of workflows in a repository that has our action."""
        recipes.documents("{}")  # skips, or fails, without the packages
        shutil.rmtree(self.at / ".github", ignore_errors=True)
        (self.at / ".git").mkdir(exist_ok=True)
        shutil.copy(ACTION, self.at)
        for name, text in files.items():
            text = re.sub(r"uses: (?!actions/)[\w.-]+/[\w.-]+@v[^\n]+", "uses: ./", text)
            self.put(f".github/workflows/{name}.yml", text)
        words = ("-no-color", "-shellcheck", BIN / "shellcheck")
        done = start(BIN / "actionlint", *words, cwd=self.at)
        return done.stdout + done.stderr

    def test_actionlint_knows_every_key_and_input_and_shellcheck_every_line(self):
        files = {path.stem.replace("-", "_"): path.read_text() for path in WORKFLOWS}
        files["action"] = as_workflow(*recipes.documents(ACTION))
        self.assertEqual(self.actionlint(**files), "")
        action, gate = files["action"], files["github"]
        unquoted = action.replace('\\"$folder/gate.md\\" >>', "$folder/gate.md >>")
        for bad, finding in (
            (gate.replace("candidate: $", "candidat: $"), 'missing input "candidate"'),
            (gate.replace("runs-on", "runs_on"), "runs_on"),
            (action.replace("inputs.suite", "inputs.suit"), 'property "suit" is not defined'),
            (unquoted.replace('\\"$FACTS_', "$FACTS_"), "SC2086"),
        ):
            self.assertIn(finding, self.actionlint(bad=bad))

    @unittest.skipUnless((BIN / "zizmor").exists(), "zizmor; ci/requirements-recipes.txt")
    def test_zizmor_finds_no_hole(self):
        for path in (ACTION, *WORKFLOWS):
            text = re.sub(r"@[0-9a-f]{40} # v", "@v", path.read_text())
            bad = self.put("bad/action.yml" if path == ACTION else "bad.yml", text)
            done = start(BIN / "zizmor", "--offline", "--quiet", path)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("unpinned-uses", start(BIN / "zizmor", "--offline", bad).stdout)

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
            (*texts[-1], "when: always", "when: ever"),
        ):
            self.assertIn(was, text)
            self.assertNotEqual(schema(name, text.replace(was, now)), [], now)

    def test_every_command_has_options_that_exist(self):
        yaml = (ACTION, COMPONENT, *WORKFLOWS, *JOBS)
        texts = [text for path in yaml for text in scripts(path)]
        texts += [path.read_text(encoding="utf-8") for path in SHELL]
        self.assertEqual(len(texts), 12)
        command = r"(?:facts\"?|\$\{?facts\"?) (gate|decide|run|merge|report)\b(.*)"
        asked = 0
        for text in texts:
            self.assertEqual(run("bash -n", input=text), "")
            joined = re.sub(r"\\\n|\n +--", lambda m: " --" if "--" in m[0] else " ", text)
            for name, rest in re.findall(command, joined):
                asked += 1
                options = set(re.findall(r" --([a-z-]+)", rest))
                self.assertLessEqual(options, recipes.known_options(name), rest)
        self.assertGreaterEqual(asked, 6)

    def test_recipes_install_the_released_version_and_the_nights_publish_a_site(self):
        for path in (*WORKFLOWS, *JOBS):
            self.assertNotRegex("\n".join(scripts(path)), r"install .*facts-cudnn(?!==\d)")
        for path in (WORKFLOWS[1], JOBS[1]):
            shell = "\n".join(scripts(path))
            self.assertRegex(shell, r"facts decide core --cudnn .* --overwrite")
            self.assertRegex(shell, r"facts report --site (site|public) records")
        self.assertIn("--site DIR", run(FACTS, "report", "--help"))
        (image,) = recipes.documents(HOME / "ci/gate/kustomization.yaml")[0]["images"]
        pushed = f"push {image['newName']}:{image['newTag']}"
        self.assertIn(pushed, (HOME / "docs/release.md").read_text(encoding="utf-8"))


class Mentions(Folder):
    """One place defines the repository's name and the version."""

    def test_nothing_has_an_address_that_stands_for_another(self):
        words = ("grep", "-nE", r"[a-z]\.example\b[/\">]", "--", ":!*test*")
        done = start("git", "-C", HOME, *words)
        self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_every_mention_is_the_one_that_is_defined(self):
        self.assertEqual(run(sys.executable, HOME / "ci/check_mentions.py"), "")

    def test_another_name_or_version_is_found_and_corrected(self):
        own = [
            HOME / name for name in ("CMakeLists.txt", "ci/check_mentions.py", "docs/cluster.md")
        ]
        for path in (*own, ACTION, COMPONENT, *WORKFLOWS, *JOBS):
            self.put(path.relative_to(HOME), path.read_text())
        run("git -C", self.at, "init", "-q")
        run("git -C", self.at, "add", ".")
        check = (sys.executable, self.at / "ci/check_mentions.py")
        self.assertEqual(run(*check), "")
        lists = self.at / "CMakeLists.txt"
        other = "VERSION 7.8.9 HOMEPAGE_URL https://example.org/other/name"
        text = re.sub(r"VERSION \S+ HOMEPAGE_URL \S+", other, lists.read_text(), count=1)
        lists.write_text(text)
        done = start(*check)
        self.assertEqual(done.returncode, 1)
        for place in (
            r"ci/gate/github.yml:\d+: \S+/facts:",
            r"ci/gate/github.yml:\d+: \d\S+: .* 7.8.9",
            r"ci/gate/gitlab.yml:\d+: \S+/facts:",
            r"templates/cudnn-gate.yml:\d+: \d",
            r"docs/cluster.md:\d+: \d\S+:",
        ):
            self.assertRegex(done.stdout, place)
        run(*check, "--write")
        self.assertEqual(run(*check), "")
        self.put("action.yml", (self.at / "action.yml").read_text() + "# see other/name\n")
        self.assertRegex(start(*check).stdout, r"action.yml:\d+: other/name: in a form")


if __name__ == "__main__":
    unittest.main()
