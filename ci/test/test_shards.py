"""A gate over many machines: Slurm's jobs and the containers of the Kubernetes Jobs, as processes here. A lost part is named, and asked again."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import needs
import recipes

GATE = recipes.HOME / "ci/gate"
# 9.27.0 refuses the last one, 9.20.0 takes it; of 4 parts it is in the second; the first has no case.
CASES = "pass=fwd dtype=bf16 impl=unified b=1 h=2 s=128,256 d=64,128\npass=fwd dtype=f32 impl=unified b=1 h=2 s=128 d=128\n"
LOST = "DO NOT MOVE: 1 accepted case is refused now. 5 answers compared, 4 same."
# sbatch as far as the recipe needs it: every task of an array but LOSE, one after another; --wait ends as the job did. A node has nothing of our environment.
SBATCH = """\
#!/usr/bin/env bash
tasks=1 out=/dev/null array=
while [[ $1 == --* ]]; do
    case $1 in
    --array) tasks=${2#1-} array=1; shift 2 ;;
    --output) out=$2; shift 2 ;;
    --job-name | --dependency) shift 2 ;;
    *) shift ;;
    esac
done
script=$(mktemp); cat "$1" >"$script"; shift
for ((i = 1; i <= tasks; i++)); do
    [[ -z $array || $i != "${LOSE:-}" ]] || continue
    env -i PATH="$PATH" HOME="$HOME" TMPDIR="${TMPDIR:-/tmp}" FACTS_HOME="${FACTS_HOME:-}" FACTS_PYTHON="${FACTS_PYTHON:-}" SLURM_ARRAY_TASK_ID=$i \
        sh "$script" "$@" >"${out/\\%a/$i}" 2>&1; status=$?
done
rm "$script"; echo 7; exit $status
"""


def rows(path):
    return [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if "verdict" in json.loads(line)
    ]


class Shards(unittest.TestCase):
    def setUp(self):
        for name in (needs.OLD, needs.NEW):
            needs.need(name)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.suite = self.at / "some.cases"
        self.suite.write_text(CASES, encoding="utf-8")
        self.environment = {**os.environ, "PATH": f"{self.at}:{os.environ['PATH']}"}

    def check_a_lost_part_is_named_and_asked_again(self, gate, out):
        """gate(lost) runs the whole gate and gives its status and all that it printed."""
        status, said = gate("2")
        self.assertEqual(status, 4, said)
        self.assertRegex(
            said,
            r"incomplete: .*shard 2/4 of 9\.20\.0\S* on h100-sxm;.* shard 2/4 of 9\.27\.0\S* on h100-sxm",
        )
        self.assertIn("CANNOT TELL", said)
        kept = {path.name: path.read_text() for path in out.glob("part-*.jsonl")}
        self.assertEqual(sorted(kept), ["part-3.jsonl", "part-4.jsonl"])
        whole = max(kept, key=len)
        cut = rows(out / whole)[-1]
        kept[whole] = kept[whole].split(cut)[0]  # its machine died
        (out / whole).write_text(kept[whole])
        status, said = gate("")
        self.assertEqual(status, 1, said)
        self.assertIn(LOST, said)
        self.assertIn("guards=off", said)
        self.assertEqual((out / "status").read_text(), "1\n")
        self.assertEqual(sum(len(rows(path)) for path in out.glob("part-*.jsonl")), 10)
        for name, text in kept.items():
            self.assertTrue(
                (out / name).read_text().startswith(text), name
            )  # what was answered was not asked again

    def test_slurm(self):
        sbatch = self.at / "sbatch"
        sbatch.write_text(SBATCH, encoding="utf-8")
        sbatch.chmod(0o755)

        def gate(lost):
            done = subprocess.run(
                [GATE / "slurm.sh", "9.20.0", "9.27.0", self.suite],
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
                env=self.environment
                | {
                    "SHARDS": "4",
                    "DEVICE": "h100-sxm",
                    "OUT": str(self.at / "out"),
                    "FACTS": str(recipes.FACTS),
                    "LOSE": lost,
                },
            )
            return done.returncode, done.stdout + done.stderr

        self.check_a_lost_part_is_named_and_asked_again(gate, self.at / "out")

    @needs.night
    def test_slurm_s_own_daemons(self):
        if not shutil.which("slurmctld") or os.geteuid() != 0:
            self.skipTest("needs root, and the packages slurm-wlm and munge")
        done = subprocess.run(
            [recipes.HOME / "ci/slurm_once.sh", "9.20.0", "9.27.0", self.suite],
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
            env=self.environment
            | {
                "SHARDS": "4",
                "DEVICE": "h100-sxm",
                "OUT": str(self.at / "out"),
                "FACTS": str(recipes.FACTS),
            },
        )
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(LOST, done.stdout)

    def test_kubernetes(self):
        (self.at / "facts").symlink_to(recipes.FACTS)
        jobs, config = objects()
        out = self.at / "records/gate"
        environment = (
            self.environment
            | config
            | {
                "SUITE": str(self.suite),
                "DEVICE": "h100-sxm",
                "SHARDS": "4",
                "OUT": str(out),
                "WAIT": "0",
            }
        )

        def container(job, **more):
            command = jobs[job]["spec"]["template"]["spec"]["containers"][0]["command"]
            return subprocess.Popen(
                [part.replace("/etc/facts/", f"{GATE}/") for part in command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment | more,
            )

        def gate(lost):
            pods = [
                container("facts-shards", JOB_COMPLETION_INDEX=str(index))
                for index in range(4)
                if str(index + 1) != lost
            ]
            for pod in pods:
                said = pod.communicate(timeout=200)[0]
                self.assertEqual(
                    pod.returncode, 0, said
                )  # another exit code, and Kubernetes starts it again
            last = container("facts-gate")
            said = last.communicate(timeout=200)[0]
            return last.returncode, said

        self.check_a_lost_part_is_named_and_asked_again(gate, out)

    def test_join_waits_for_a_part_that_is_still_asked(self):
        slow = self.at / "facts"
        slow.write_text(
            f'#!/bin/sh\necho "$1" >>{self.at}/asked\n[ "$1" != merge ] || [ "$(grep -c merge {self.at}/asked)" -gt 2 ] || exit 4\n'
        )
        slow.chmod(0o755)
        sleep = self.at / "sleep"
        sleep.write_text("#!/bin/sh\n")
        sleep.chmod(0o755)
        for wait, asked in (("60", "merge merge merge gate"), ("0", "merge gate")):
            (self.at / "asked").write_text("")
            subprocess.run(
                ["sh", GATE / "shard.sh", "join"],
                check=True,
                env=self.environment
                | {
                    "BASELINE": "a",
                    "CANDIDATE": "b",
                    "DEVICE": "all",
                    "OUT": str(self.at / "o"),
                    "WAIT": wait,
                },
            )
            self.assertEqual((self.at / "asked").read_text().split(), asked.split())

    def test_without_arguments_there_is_one_line_of_usage(self):
        for script, *words in (
            ("slurm.sh",),
            ("slurm.sh", "9.20.0"),
            ("shard.sh",),
            ("shard.sh", "join"),
            ("shard.sh", "part"),
        ):
            done = subprocess.run(
                [GATE / script, *words], capture_output=True, text=True, check=False
            )
            self.assertEqual(
                (done.returncode, done.stderr.count("\n"), done.stderr[:7]),
                (2, 1, "usage: "),
                done.stderr,
            )

    def test_a_part_ends_well_where_it_has_an_answer_or_no_case(self):
        (self.at / "facts").write_text('#!/bin/sh\n[ "$1" = cudnn ] || exit $STATUS\n')
        (self.at / "facts").chmod(0o755)
        given = {
            "BASELINE": "a",
            "CANDIDATE": "b",
            "SUITE": "s",
            "SHARDS": "9",
            "DEVICE": "0",
            "OUT": str(self.at),
        }
        found = [
            subprocess.run(
                ["sh", GATE / "shard.sh", "part", "2"],
                check=False,
                env=self.environment | given | {"STATUS": str(status)},
            ).returncode
            for status in range(7)
        ]
        self.assertEqual(found, [0, 0, 2, 3, 4, 0, 6])

    def test_gpus_run_and_described_devices_decide(self):
        (self.at / "facts").write_text('#!/bin/sh\n[ "$1" = cudnn ] || echo "$1 $*"\n')
        (self.at / "facts").chmod(0o755)
        for device, what in (
            ("0", "run"),
            ("0,1", "run"),
            ("all", "run"),
            ("h100-sxm", "decide"),
            ("h100-sxm,sm100-spec", "decide"),
        ):
            done = subprocess.run(
                ["sh", GATE / "shard.sh", "part", "2"],
                capture_output=True,
                text=True,
                check=True,
                env=self.environment
                | {
                    "BASELINE": "a",
                    "CANDIDATE": "b",
                    "SUITE": "s",
                    "SHARDS": "9",
                    "DEVICE": device,
                    "OUT": str(self.at),
                },
            )
            self.assertEqual(done.stdout.split()[0], what)
            self.assertIn(f"--shard 2/9 -o {self.at}/part-2.jsonl --resume", done.stdout)


def objects():
    """({job: object}, the environment of its containers), as `kubectl kustomize ci/gate` makes them."""
    (kustomization,) = recipes.documents(GATE / "kustomization.yaml")
    literals = dict(
        text.split("=", 1)
        for generator in kustomization["configMapGenerator"]
        for text in generator.get("literals", [])
    )
    made = [made for name in kustomization["resources"] for made in recipes.documents(GATE / name)]
    return {made["metadata"]["name"]: made for made in made if made["kind"] == "Job"}, literals


class Kubernetes(unittest.TestCase):
    def test_the_api_of_every_version_knows_every_field(self):
        all_of_it = recipes.documents(GATE / "kubernetes.yml")
        import kubernetes_validate.utils

        versions = [
            v
            for v in kubernetes_validate.utils.all_versions()
            if "-" not in v and int(v.split(".")[1]) >= 29
        ]
        self.assertGreaterEqual(len(versions), 3)
        for version in (versions[0], versions[-1]):
            for made in all_of_it:
                kubernetes_validate.validate(made, version, strict=True)
        for was, now in (
            ("completionMode", "completionsMode"),
            ("drop", "drops"),
            ("claimName", "claim"),
            ("completions: 4", "completions: four"),
        ):
            text = (GATE / "kubernetes.yml").read_text()
            self.assertIn(was, text)
            with self.assertRaises(kubernetes_validate.ValidationError, msg=now):
                for made in recipes.documents(text.replace(was, now)):
                    kubernetes_validate.validate(made, versions[-1], strict=True)

    def test_the_job_has_as_many_pods_as_there_are_parts_and_mounts_what_it_runs(self):
        jobs, config = objects()
        self.assertEqual(str(jobs["facts-shards"]["spec"]["completions"]), config["SHARDS"])
        (kustomization,) = recipes.documents(GATE / "kustomization.yaml")
        maps = {generator["name"] for generator in kustomization["configMapGenerator"]}
        for job in jobs.values():
            pod = job["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            self.assertEqual(
                {volume["name"] for volume in pod["volumes"]},
                {mount["name"] for mount in container["volumeMounts"]},
            )
            self.assertEqual(
                {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume}
                | {source["configMapRef"]["name"] for source in container["envFrom"]},
                maps,
            )
            self.assertTrue(
                config["OUT"].startswith(
                    next(
                        mount["mountPath"]
                        for mount in container["volumeMounts"]
                        if mount["name"] == "records"
                    )
                    + "/"
                )
            )
            self.assertEqual(container["image"], kustomization["images"][0]["name"])

    def test_kustomize_takes_it_and_the_overlay_of_the_page(self):
        if not shutil.which("kubectl"):
            return  # it is no package of Debian's; the objects are checked above
        page = (recipes.HOME / "docs/cluster.md").read_text(encoding="utf-8")
        overlay = re.search(r"```yaml\n(# kustomization\.yaml.*?)```", page, re.S)[1]
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(GATE, Path(folder, "base"))
            (Path(folder) / "mine").mkdir()
            (Path(folder) / "mine/kustomization.yaml").write_text(
                re.sub(r"\[\"https://[^]]*\]", "[../base]", overlay)
            )
            done = subprocess.run(
                ["kubectl", "kustomize", f"{folder}/mine"],
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        made = {made["metadata"]["name"]: made for made in recipes.documents(done.stdout)}
        self.assertEqual(
            made["facts-shards"]["spec"]["template"]["spec"]["containers"][0]["resources"][
                "limits"
            ],
            {"nvidia.com/gpu": 1},
        )
        (config,) = (made["data"] for name, made in made.items() if name.startswith("facts-gate-"))
        self.assertEqual((config["BASELINE"], config["DEVICE"]), (objects()[1]["BASELINE"], "0"))


if __name__ == "__main__":
    recipes.main()
