"""ci/release.sh in a repository of its own, whose archives are made in no time: what it refuses, and what it leaves behind."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HOME = Path(os.environ.get("FACTS_SOURCE") or Path(__file__).resolve().parents[2])
STUBS = {
    "CMakeLists.txt": "project(facts VERSION 1.0.0 HOMEPAGE_URL https://example.org/some/body LANGUAGES C)\n",
    "use.yml": "uses: some/body@v1.0.0\n",
    "CHANGELOG.md": "# Changes\n\n## 1.0.0 (2026-12-01)\n\n- all\n\n## 0.4.0 (not released)\n",
    "facts": '#!/bin/sh\necho built >"$3"\n',
    "ci/package/wheel.py": '#!/bin/sh\necho wheel >"$2/facts_cudnn-1.0.0${4+-aarch64}.whl"\n',
    "ci/abi.sh": '#!/bin/sh\n! grep gone "${2-lib/package/libfattn.abi}"\n',
    "lib/package/libfattn.abi": "<abi-corpus version='2.1' soname='libfattn.so.1'>\n",
}


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name, "here")
        for name, text in STUBS.items():
            self.put(name, text)
        for name in ("release.sh", "check_mentions.py"):
            shutil.copy(HOME / "ci" / name, self.at / "ci")
        self.git("init", "-q")
        self.commit()

    def put(self, name, text):
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def git(self, *arguments):
        return subprocess.run(
            ["git", "-C", self.at, "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def commit(self):
        self.git("add", ".")
        self.git("commit", "-qm", "all")

    def release(self, *arguments):
        out = self.at.parent / "dist"
        done = subprocess.run(
            [self.at / "ci/release.sh", *arguments, "-o", out],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"},
        )
        return (
            done.returncode,
            done.stdout + done.stderr,
            sorted(path.name for path in out.glob("*")),
        )

    def refused(self, because, name, was, now):
        self.put(name, STUBS[name].replace(was, now))
        self.commit()
        status, said, made = self.release("1.0.0")
        self.assertEqual((status, because in said, made, self.git("tag")), (1, True, [], ""), said)
        self.put(name, STUBS[name])
        self.commit()

    def test_a_dry_run_makes_the_archives_and_no_tag_and_a_release_a_tag(self):
        archives = [
            "SHA256SUMS",
            "facts-1.0.0-aarch64.tar.xz",
            "facts-1.0.0-x86_64.tar.xz",
            "facts-1.0.0.tar.gz",
            "facts_cudnn-1.0.0-aarch64.whl",
            "facts_cudnn-1.0.0.whl",
        ]
        status, said, made = self.release("1.0.0", "--dry-run")
        self.assertEqual((status, made, self.git("tag")), (0, archives, ""), said)
        status, said, _ = self.release("1.0.0")
        self.assertEqual(status, 0, said)
        self.assertIn("git push origin HEAD v1.0.0", said)
        self.assertEqual(self.git("cat-file", "-t", "v1.0.0"), "tag\n")
        self.assertIn("facts_cudnn-1.0.0.whl", self.git("tag", "-n9", "v1.0.0"))
        self.assertIn("the tag v1.0.0 exists", self.release("1.0.0")[1])

    def test_what_is_not_ready_is_named(self):
        self.refused("CMakeLists.txt has version 1.1.0", "CMakeLists.txt", "1.0.0", "1.1.0")
        self.refused("files name another version", "use.yml", "1.0.0", "0.9.0")
        self.refused(
            'CHANGELOG.md begins with "## 1.0.0 (not released)"',
            "CHANGELOG.md",
            "2026-12-01",
            "not released",
        )
        self.refused(
            'CHANGELOG.md begins with "## Unreleased"',
            "CHANGELOG.md",
            "## 1.0.0",
            "## Unreleased\n\n## 1.0.0",
        )
        self.refused(
            "libfattn.abi describes another major version",
            "lib/package/libfattn.abi",
            "so.1",
            "so.0",
        )
        self.put("new", "")
        self.assertIn("the working tree has changes", self.release("1.0.0")[1])

    def test_archives_that_differ_are_no_release(self):
        self.refused("two builds of facts-1.0.0-", "facts", "echo built", "pwd")
        self.refused(
            "two builds of facts_cudnn-1.0.0.whl differ",
            "ci/package/wheel.py",
            "echo wheel",
            "echo $TZ",
        )
        self.refused(
            "two builds of facts_cudnn-1.0.0.whl differ",
            "ci/package/wheel.py",
            "echo wheel >",
            '[ -n "$TZ" ] || echo wheel >',
        )
        for name in ("ci/abi.sh", "ci/package/wheel.py"):
            self.put(name, "#!/bin/sh\nexit 1\n")
            self.commit()
            status, said, made = self.release("1.0.0")
            self.assertEqual((status, made, self.git("tag")), (1, [], ""), said)
            self.put(name, STUBS[name])

    def test_a_commit_meanwhile_is_not_a_part_of_it(self):
        self.put(
            "facts",
            STUBS["facts"]
            + 'cd "$(git remote get-url origin)" && date +%N >>meanwhile && git add . && git -c user.name=a -c user.email=a@b commit -qm more\n',
        )
        self.commit()
        first = self.git("rev-parse", "HEAD")
        status, said, _ = self.release("1.0.0")
        self.assertEqual((status, self.git("rev-parse", "v1.0.0^{}")), (0, first), said)
        self.assertNotEqual(self.git("rev-parse", "HEAD"), first)

    def test_a_break_of_the_interface_is_no_release_even_if_it_was_described_anew(self):
        abi = "lib/package/libfattn.abi"
        self.refused("gone", abi, "<abi", "gone <abi")
        self.put(abi, STUBS[abi] + "gone in this release\n")
        self.commit()
        self.git("tag", "v0.9.0")
        self.put(abi, STUBS[abi])
        self.commit()
        status, said, made = self.release("1.0.0")
        self.assertEqual((status, "programs of v0.9.0 may fail" in said, made), (1, True, []), said)

    def test_wrong_usage(self):
        for arguments in ((), ("1.0",), ("v1.0.0",), ("1.0.0", "--now")):
            self.assertEqual(self.release(*arguments)[0], 2, arguments)

    def test_the_commands_that_make_archives_exist(self):
        body = re.search(
            r"^make_archives\(\) \{\n(.*?)^\}", (HOME / "ci/release.sh").read_text(), re.M | re.S
        )[1]
        named = re.findall(r"^    (?:\./)?((?:ci/)?\w+(?:\.\w+)?) ", body, re.M)
        self.assertEqual(
            [
                name
                for name in named
                if name not in ("git", "local", "check_abi") and not (HOME / name).exists()
            ],
            [],
        )
        self.assertGreaterEqual(len(named), 4)


if __name__ == "__main__":
    unittest.main()
