"""A gate over many machines: Slurm's jobs and the containers of the Kubernetes Jobs, as processes here. A lost part is named, and asked again."""

import json
import os
import re
import shutil
import subprocess
import unittest

import needs
import recipes
from scripts import FACTS, HOME, Folder, run, start

GATE = HOME / "ci/gate"
# 9.27.0 refuses the last one, 9.20.0 takes it; of 4 parts it is in the first; the second has no case.
CASES = "pass=fwd dtype=bf16 impl=unified b=1 h=2 s=128,256 d=64,128\npass=fwd dtype=f32 impl=unified b=1 h=2 s=128 d=128\n"
LOST = "DO NOT MOVE (cuDNN 9.20.0 -> 9.27.0): 1 accepted case is refused now."
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
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "verdict" in json.loads(line)]


class Shards(Folder):
    def setUp(self):
        super().setUp()
        for name in (needs.OLD, needs.NEW):
            needs.need(name)
        self.suite, self.out = self.put("some.cases", CASES), self.at / "records/gate"
        self.given = {
            "PATH": f"{self.at}:{os.environ['PATH']}",
            "SHARDS": "4",
            "DEVICE": "h100-sxm",
            "OUT": str(self.out),
        }

    def check_a_lost_part_is_named_and_asked_again(self, gate):
        """gate(lost) runs the whole gate and gives its status and all that it printed."""
        status, said = gate("1")
        self.assertEqual((status, "CANNOT TELL" in said), (4, True), said)
        shard = r"shard 1/4 of {}\S* on h100-sxm"
        either = f"incomplete: .*{shard.format('9.20.0')};.* {shard.format('9.27.0')}"
        self.assertRegex(said, either)
        kept = {path.name: path.read_text() for path in self.out.glob("part-*.jsonl")}
        self.assertEqual(sorted(kept), ["part-3.jsonl", "part-4.jsonl"])
        whole = max(kept, key=len)
        kept[whole] = kept[whole].split(rows(self.out / whole)[-1])[0]  # its machine died
        (self.out / whole).write_text(kept[whole])
        status, said = gate("")
        self.assertEqual((status, LOST in said), (1, True), said)
        self.assertEqual((self.out / "status").read_text(), "1\n")
        self.assertEqual(sum(len(rows(path)) for path in self.out.glob("part-*.jsonl")), 10)
        for name, text in kept.items():  # what was answered was not asked again
            self.assertTrue((self.out / name).read_text().startswith(text), name)

    def test_slurm(self):
        self.put("sbatch", SBATCH)

        def gate(lost):
            add = {**self.given, "FACTS": str(FACTS), "LOSE": lost}
            done = start(GATE / "slurm.sh", "9.20.0", "9.27.0", self.suite, add=add)
            return done.returncode, done.stdout + done.stderr

        self.check_a_lost_part_is_named_and_asked_again(gate)

    @needs.night
    def test_slurm_s_own_daemons(self):
        if not shutil.which("slurmctld") or os.geteuid() != 0:
            self.skipTest("needs root, and the packages slurm-wlm and munge")
        words = (HOME / "ci/slurm_once.sh", "9.20.0", "9.27.0", self.suite)
        done = start(*words, add={**self.given, "FACTS": str(FACTS)})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(LOST, done.stdout)

    def test_kubernetes(self):
        (self.at / "facts").symlink_to(FACTS)
        jobs, config = objects()
        given = {**os.environ, **config, **self.given, "SUITE": str(self.suite), "WAIT": "0"}

        def container(job, index=""):
            command = jobs[job]["spec"]["template"]["spec"]["containers"][0]["command"]
            return subprocess.Popen(
                [part.replace("/etc/facts/", f"{GATE}/") for part in command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**given, "JOB_COMPLETION_INDEX": index},
            )

        def gate(lost):
            pods = [container("facts-shards", i) for i in "0123" if str(int(i) + 1) != lost]
            for pod in pods:  # another exit code than 0, and Kubernetes starts it again
                said = pod.communicate(timeout=200)[0]
                self.assertEqual(pod.returncode, 0, said)
            last = container("facts-gate")
            said = last.communicate(timeout=200)[0]
            return last.returncode, said

        self.check_a_lost_part_is_named_and_asked_again(gate)

    def shard(self, *words, **more):
        given = {"BASELINE": "a", "CANDIDATE": "b", "SUITE": "s", **self.given, **more}
        return start("sh", GATE / "shard.sh", *words, add=given)

    def test_join_waits_for_a_part_that_is_still_asked(self):
        asked = self.at / "asked"
        merge = f'[ "$1" != merge ] || [ "$(grep -c merge {asked})" -gt 2 ] || exit 4'
        self.put("facts", f'#!/bin/sh\necho "$1" >>{asked}\n{merge}\n')
        self.put("sleep", "#!/bin/sh\n")
        for wait, commands in (("60", "merge merge merge gate"), ("0", "merge gate")):
            asked.write_text("")
            self.assertEqual(self.shard("join", WAIT=wait).returncode, 0)
            self.assertEqual(asked.read_text().split(), commands.split())

    def test_without_arguments_there_is_one_line_of_usage(self):
        shard = "shard.sh"
        for words in (("slurm.sh",), ("slurm.sh", "9.20.0"), (shard,), (shard, "join")):
            done = start(GATE / words[0], *words[1:])
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertTrue(done.stderr.startswith("usage: "))

    def test_a_part_runs_on_gpus_decides_for_descriptions_and_ends_well_with_any_answer(self):
        self.put("facts", '#!/bin/sh\n[ "$1" = cudnn ] || { echo "$1 $*"; exit $STATUS; }\n')
        found = [self.shard("part", "2", STATUS=str(status)).returncode for status in range(7)]
        self.assertEqual(found, [0, 0, 2, 3, 4, 0, 6])
        described = ("h100-sxm", "h100-sxm,sm100-spec")
        for device in ("0", "0,1", "all", *described):
            said = self.shard("part", "2", STATUS="0", DEVICE=device).stdout
            self.assertEqual(said.split()[0], "decide" if device in described else "run")
            self.assertIn(f"--shard 2/4 -o {self.out}/part-2.jsonl --resume", said)


def objects():
    """({job: object}, the environment of its containers), as `kubectl kustomize ci/gate` makes them."""
    (kustomization,) = recipes.documents(GATE / "kustomization.yaml")
    maps = kustomization["configMapGenerator"]
    literals = [text for generator in maps for text in generator.get("literals", [])]
    made = [made for name in kustomization["resources"] for made in recipes.documents(GATE / name)]
    jobs = {made["metadata"]["name"]: made for made in made if made["kind"] == "Job"}
    return jobs, dict(text.split("=", 1) for text in literals)


class Kubernetes(Folder):
    def test_the_api_of_every_version_knows_every_field(self):
        check = recipes.package("kubernetes_validate")
        versions = [v for v in recipes.package("kubernetes_validate.utils").all_versions()]
        versions = [v for v in versions if "-" not in v and int(v.split(".")[1]) >= 29]
        self.assertGreaterEqual(len(versions), 3)
        text = (GATE / "kubernetes.yml").read_text()
        for version in (versions[0], versions[-1]):
            for made in recipes.documents(text):
                check.validate(made, version, strict=True)
        for was, now in (("completionMode", "completionsMode"), (": 4 ", ": four ")):
            self.assertIn(was, text)
            with self.assertRaises(check.ValidationError, msg=now):
                for made in recipes.documents(text.replace(was, now)):
                    check.validate(made, versions[-1], strict=True)

    def test_the_job_has_as_many_pods_as_there_are_parts_and_mounts_what_it_runs(self):
        jobs, config = objects()
        self.assertEqual(str(jobs["facts-shards"]["spec"]["completions"]), config["SHARDS"])
        (kustomization,) = recipes.documents(GATE / "kustomization.yaml")
        maps = {generator["name"] for generator in kustomization["configMapGenerator"]}
        for job in jobs.values():
            pod = job["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
            self.assertEqual({volume["name"] for volume in pod["volumes"]}, set(mounts))
            used = {v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v}
            used |= {source["configMapRef"]["name"] for source in container["envFrom"]}
            self.assertEqual(used, maps)
            self.assertTrue(config["OUT"].startswith(mounts["records"] + "/"))
            self.assertEqual(container["image"], kustomization["images"][0]["name"])

    def test_kustomize_takes_it_and_the_overlay_of_the_page(self):
        if not shutil.which("kubectl"):
            return  # it is no package of Debian's; the objects are checked above
        page = (HOME / "docs/cluster.md").read_text(encoding="utf-8")
        overlay = re.search(r"```yaml\n(# kustomization\.yaml.*?)```", page, re.S)[1]
        shutil.copytree(GATE, self.at / "base")
        overlay = re.sub(r"\[\"https://[^]]*\]", "[../base]", overlay)
        self.put("mine/kustomization.yaml", overlay)
        said = run("kubectl kustomize", self.at / "mine")
        made = {made["metadata"]["name"]: made for made in recipes.documents(said)}
        (container,) = made["facts-shards"]["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": 1})
        (config,) = (made["data"] for name, made in made.items() if name.startswith("facts-gate-"))
        self.assertEqual((config["BASELINE"], config["DEVICE"]), (objects()[1]["BASELINE"], "0"))


if __name__ == "__main__":
    unittest.main()
