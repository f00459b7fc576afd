"""ci/release.sh in a repository of its own, whose archives are made in no time: what it refuses, and what it leaves behind."""

import re
import shutil
import unittest

from scripts import HOME, Folder, run, start

STUBS = {
    "CMakeLists.txt": "project(facts VERSION 1.0.0 HOMEPAGE_URL https://example.org/some/body LANGUAGES C)\n",
    "use.yml": "uses: some/body@v1.0.0\n",
    "CHANGELOG.md": "# Changes\n\n## 1.0.0 (2026-12-01)\n\n- all\n\n## 0.4.0 (not released)\n",
    "facts": '#!/bin/sh\necho built >"$3"\n',
    "ci/package/wheel.py": '#!/bin/sh\necho wheel >"$2/facts_cudnn-1.0.0${4+-aarch64}.whl"\n',
    "ci/abi.sh": '#!/bin/sh\n! grep gone "${2-lib/package/libfattn.abi}"\n',
    "lib/package/libfattn.abi": "<abi-corpus version='2.1' soname='libfattn.so.1'>\n",
}
ARCHIVES = """SHA256SUMS facts-1.0.0-aarch64.tar.xz facts-1.0.0-x86_64.tar.xz facts-1.0.0.tar.gz
facts_cudnn-1.0.0-aarch64.whl facts_cudnn-1.0.0.whl""".split()
ME = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
ABI, WHEEL = "lib/package/libfattn.abi", "ci/package/wheel.py"


class Release(Folder):
    def setUp(self):
        super().setUp()
        self.out, self.at = self.at / "dist", self.at / "here"
        for name, text in STUBS.items():
            self.put(name, text)
        for name in ("release.sh", "check_mentions.py"):
            shutil.copy(HOME / "ci" / name, self.at / "ci")
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        return run("git -C", self.at, "-c", "user.name=a", "-c", "user.email=a@b", *words)

    def commit(self, **files):
        for name, text in files.items():
            self.put(name, text)
        self.git("add", ".")
        self.git("commit", "-qm", "all")

    def release(self, *words):
        done = start(self.at / "ci/release.sh", *words, "-o", self.out, add=ME)
        made = sorted(path.name for path in self.out.glob("*"))
        return done.returncode, done.stdout + done.stderr, made

    def test_a_dry_run_makes_the_archives_and_no_tag_and_a_release_a_tag(self):
        status, said, made = self.release("1.0.0", "--dry-run")
        self.assertEqual((status, made, self.git("tag")), (0, ARCHIVES, ""), said)
        status, said, _ = self.release("1.0.0")
        self.assertEqual(status, 0, said)
        self.assertIn("git push origin HEAD v1.0.0", said)
        self.assertEqual(self.git("cat-file", "-t", "v1.0.0"), "tag\n")
        self.assertIn("facts_cudnn-1.0.0.whl", self.git("tag", "-n9", "v1.0.0"))
        self.assertIn("the tag v1.0.0 exists", self.release("1.0.0")[1])

    def refused(self, *because, **files):
        self.commit(**files)
        status, said, made = self.release("1.0.0")
        self.assertEqual((status, made, self.git("tag")), (1, [], ""), said)
        for words in because:
            self.assertIn(words, said)
        self.commit(**{name: STUBS[name] for name in files})

    def changed(self, name, was, now):
        return {name: STUBS[name].replace(was, now)}

    def test_all_that_is_not_ready_is_named(self):
        self.commit(
            **self.changed("CMakeLists.txt", "1.0.0", "1.1.0"),
            **self.changed("CHANGELOG.md", "2026-12-01", "not released"),
            **self.changed(ABI, "so.1", "so.0"),
        )
        self.put("new", "")
        status, said, made = self.release("1.0.0")
        self.assertEqual((status, made, self.git("tag")), (1, [], ""), said)
        for because in (
            "the working tree has changes",
            "CMakeLists.txt has version 1.1.0",
            "files name another version",
            'CHANGELOG.md begins with "## 1.0.0 (not released)"',
            "libfattn.abi describes another major version",
        ):
            self.assertIn(because, said)

    def test_archives_that_differ_or_cannot_be_made_are_no_release(self):
        differ = "two builds of facts_cudnn-1.0.0.whl differ"
        place, zone = self.changed("facts", "echo built", "pwd"), ("echo wheel", "echo $TZ")
        self.refused("two builds of facts-1.0.0-", differ, **place, **self.changed(WHEEL, *zone))
        once = self.changed(WHEEL, "echo wheel >", '[ -n "$TZ" ] || echo wheel >')
        self.refused(differ, **once)
        self.refused(**self.changed("ci/abi.sh", "! grep", "exit 1; grep"))
        self.refused(**self.changed(WHEEL, "echo wheel", "exit 1; echo"))
        self.refused("gone", **self.changed(ABI, "<abi", "gone <abi"))

    def test_a_commit_meanwhile_is_not_a_part_of_it(self):
        more = (
            'cd "$(git remote get-url origin)" && date +%N >>meanwhile && git add . '
            "&& git -c user.name=a -c user.email=a@b commit -qm more\n"
        )
        self.commit(facts=STUBS["facts"] + more)
        first = self.git("rev-parse", "HEAD")
        status, said, _ = self.release("1.0.0")
        self.assertEqual((status, self.git("rev-parse", "v1.0.0^{}")), (0, first), said)
        self.assertNotEqual(self.git("rev-parse", "HEAD"), first)

    def test_a_break_of_the_interface_is_no_release_even_if_it_was_described_anew(self):
        self.commit(**{ABI: STUBS[ABI] + "gone in this release\n"})
        self.git("tag", "v0.9.0")
        self.commit(**{ABI: STUBS[ABI]})
        status, said, made = self.release("1.0.0")
        self.assertEqual((status, "programs of v0.9.0 may fail" in said, made), (1, True, []), said)

    def test_wrong_usage(self):
        for words in ((), ("1.0",), ("v1.0.0",), ("1.0.0", "--now")):
            self.assertEqual(self.release(*words)[0], 2, words)

    def test_the_commands_that_make_archives_exist(self):
        text = (HOME / "ci/release.sh").read_text()
        body = re.search(r"^make_archives\(\) \{\n(.*?)^\}", text, re.M | re.S)[1]
        named = set(re.findall(r"^    (?:\./)?((?:\w+/)*\w+(?:\.\w+)?) ", body, re.M))
        self.assertGreaterEqual(named, {"facts", WHEEL})
        for name in named - {"git", "local", "check_abi"}:
            self.assertTrue((HOME / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
