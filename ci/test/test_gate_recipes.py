"""The gate's recipes: they parse, they name options that exist, and the one for Slurm gives the gate's answer and exit code."""
import os
import re
import stat
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("FACTS_SOURCE") or Path(__file__).resolve().parents[2])
FACTS = Path(os.environ.get("FACTS_BIN") or SOURCE / "build/release/bin") / "facts"
RECIPES = SOURCE / "ci" / "gate"
# sbatch as far as the recipe needs it: every task of an array at once, one after another; --wait ends as the job did.
SBATCH = """\
#!/usr/bin/env bash
tasks=1 out=/dev/null
while [[ $1 == --* ]]; do
    case $1 in
    --array) tasks=${2#1-}; shift 2 ;;
    --output) out=$2; shift 2 ;;
    --job-name | --dependency) shift 2 ;;
    *) shift ;;
    esac
done
script=$(mktemp); cat "$1" >"$script"; shift
for ((i = 1; i <= tasks; i++)); do SLURM_ARRAY_TASK_ID=$i sh "$script" "$@" >"${out/\\%a/$i}" 2>&1; status=$?; done
rm "$script"; echo 7; exit $status
"""


def shell_of(path):
    """The shell of a recipe: the file, or what its YAML runs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sh":
        return text
    blocks = re.findall(r"^( *)(?:- )?run: \|\n((?:\1  .*\n|\n)+)", text, re.M)
    script = re.search(r"^  script:\n((?:    - .*\n)+)", text, re.M)
    return "\n".join(textwrap.dedent(body) for _, body in blocks) + ("\n".join(line.strip()[2:] for line in script[1].splitlines()) if script else "")


class Recipes(unittest.TestCase):
    def test_every_recipe_is_valid_shell_and_names_options_that_exist(self):
        recipes = sorted(RECIPES.glob("*.*"))
        self.assertEqual([p.name for p in recipes], ["github.yml", "gitlab.yml", "slurm.sh"])
        known = set(re.findall(r"--([a-z-]+)", subprocess.run([FACTS, "gate", "--help"], capture_output=True, text=True, check=True).stdout))
        for path in [*recipes, SOURCE / "ci" / "slurm_once.sh"]:
            self.assertNotIn("\t", path.read_text(encoding="utf-8"))
            shell = shell_of(path) if path.parent == RECIPES else path.read_text(encoding="utf-8")
            done = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path.name)
            joined = shell.replace("\\\n", " ")
            for line in re.findall(r"gate (?:\"\$5/gate.jsonl\" )?--baseline.*", joined):
                self.assertLessEqual(set(re.findall(r" --([a-z-]+)", line)), known, path.name)

    def test_the_nightly_recipes_are_valid_shell_and_publish_a_site(self):
        recipes = sorted((SOURCE / "ci" / "nightly").glob("*.yml"))
        self.assertEqual([p.name for p in recipes], ["github-pages.yml", "gitlab-pages.yml"])
        said = subprocess.run([FACTS, "report", "--help"], capture_output=True, text=True).stdout
        for path in recipes:
            shell = shell_of(path)
            done = subprocess.run(["bash", "-n"], input=shell, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path.name)
            self.assertRegex(shell, r"facts/facts decide core --cudnn .* --overwrite")
            self.assertRegex(shell, r"facts/facts report --site \w+ records")
            self.assertIn("--site DIR", said)

    def test_the_yaml_parses(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML; the shell inside is tested without")
        for path in [*RECIPES.glob("*.yml"), *(SOURCE / "ci" / "nightly").glob("*.yml")]:
            self.assertIsInstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)

    def test_the_slurm_recipe_ends_with_the_gate_s_answer(self):
        listed = subprocess.run([FACTS, "cudnn", "list"], capture_output=True, text=True).stdout
        if not all(build in listed for build in ("9.20.0-jit-cu13", "9.27.0-jit-cu13")):
            self.skipTest("./facts cudnn install 9.20.0,9.27.0")
        with tempfile.TemporaryDirectory() as folder:
            sbatch = Path(folder) / "sbatch"
            sbatch.write_text(SBATCH, encoding="utf-8")
            sbatch.chmod(sbatch.stat().st_mode | stat.S_IXUSR)
            done = subprocess.run([RECIPES / "slurm.sh", "9.20.0", "9.27.0", "pass=fwd dtype=f32,bf16 impl=unified b=1 h=2 s=128 d=64,128"], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SHARDS": "2", "DEVICE": "h100-sxm", "OUT": f"{folder}/out", "FACTS": str(FACTS)})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("DO NOT MOVE: 2 accepted cases are refused now.", done.stdout)
        self.assertIn("guards=off", done.stdout)
        self.assertIn("dtype=f32", done.stdout)


if __name__ == "__main__":
    unittest.main()
