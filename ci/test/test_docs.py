"""Pages of the project: a link to a file or to a heading leads there, and the newest entry of the changelog is this version, or a later one."""

import os
import re
import runpy
import subprocess
import sys
import unittest
from pathlib import Path

HOME = Path(os.environ.get("FACTS_SOURCE", Path(__file__).parents[2]))
sys.path.insert(0, str(HOME / "ci"))
sys.path.insert(0, str(HOME / "ci/docs"))
import check_prose  # noqa: E402
import site_tree  # noqa: E402

PAGES = sorted(path for path in check_prose.pages() if path.suffix == ".md")
TIME = re.search(
    r"(?m)^On two idle cores all tests take .*\.$",
    (HOME / "ci/test.sh").read_text(encoding="utf-8"),
)[0]


def prose(page):
    """Its text without code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


def anchors(page):
    """What GitHub makes of its headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


class Docs(unittest.TestCase):
    def test_every_printed_page_is_in_the_index_and_no_other(self):
        names = lambda page: set(
            re.findall(r"`printed/([\w-]+)\.md`", page.read_text(encoding="utf-8"))
        )
        made = {name.removesuffix(".md") for name in (*site_tree.PRINTED, "findings.md")}
        self.assertEqual(names(HOME / "docs/index.md"), made)
        for page in PAGES:
            self.assertEqual(names(page) - made, set(), page)

    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                with self.subTest(page=str(page.relative_to(HOME)), link=link):
                    self.assertTrue(target.exists())
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors(target))

    def test_a_file_that_a_page_names_exists(self):
        names = {
            path.name for path in HOME.rglob("*") if "build" not in path.relative_to(HOME).parts
        }
        stems = {name.partition(".")[0] for name in names}
        for page in PAGES:
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
            for word in re.findall(
                r"`(?:[\w.-]+/)*([a-zA-Z][\w-]*\.(?:c|h|cu|cuh|cpp|hpp|py|sh|js|j2))`", text
            ):
                if not re.match(
                    r"repro\.|reference\.|cmd_NAME", word
                ):  # what `facts repro` writes; a new command
                    with self.subTest(page=str(page.relative_to(HOME)), file=word):
                        self.assertTrue(word in names)
            heads = (
                re.findall(r"(?m)^(?:\| *|- )((?:`[^`]+`[, ]*)+)", text)
                if page.name == "README.md"
                else []
            )
            for word in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", " ".join(heads)):
                if not any(
                    path.name.startswith(word.partition("_")[0] + "_")
                    for path in page.parent.iterdir()
                ):
                    continue  # no file of this folder
                with self.subTest(page=str(page.relative_to(HOME)), file=word):
                    self.assertTrue(
                        stems & {word, "test_" + word.partition("_")[2]}
                        or ".".join(word.rsplit("_", 1)) in names
                    )  # a test is its folder's name and the file's

    def test_the_time_of_the_tests_is_said_once(self):
        """`./facts test --help` says it and README repeats it; other pages name the command."""
        first = TIME.partition(". ")[0] + "."
        for page in ("README.md", "CONTRIBUTING.md", "ci/README.md", "docs/install.md"):
            text = " ".join((HOME / page).read_text(encoding="utf-8").split())
            said = [
                sentence
                for sentence in re.split(r"(?<=[.]) ", text)
                if "all tests take" in sentence
            ]
            self.assertEqual(said, [first] if page == "README.md" else [], page)

    def test_a_script_can_be_started_as_the_pages_say(self):
        command = ["git", "-C", HOME, "ls-files", "-z", "--", "*.py", "*.sh", "facts"]
        listed = subprocess.check_output(command, text=True)
        scripts = [
            path
            for path in (HOME / name for name in listed.split("\0") if name)
            if path.is_file() and path.read_bytes()[:2] == b"#!"
        ]
        self.assertGreater(len(scripts), 20)
        self.assertEqual(
            [str(path.relative_to(HOME)) for path in scripts if not os.access(path, os.X_OK)],
            [],
            "chmod +x",
        )

    def test_the_site_links_public_reports(self):
        site = runpy.run_path(str(HOME / "docs/conf.py"))
        kept = "`a/b#1` [a/b#1](x.md)\n\n    a/b#1\n\n```text\na/b#1\n```\n"
        page = [f"See NVIDIA/cudnn-frontend#1071, a/b.c#2. {kept}"]
        site["add_links"](None, "page", page)
        one, other = (
            "https://github.com/NVIDIA/cudnn-frontend/issues/1071",
            "https://github.com/a/b.c/issues/2",
        )
        self.assertEqual(
            page, [f"See [NVIDIA/cudnn-frontend#1071]({one}), [a/b.c#2]({other}). {kept}"]
        )

    def test_the_changelog_begins_with_this_version(self):
        version = re.search(
            r"project\(facts VERSION (\S+)", (HOME / "CMakeLists.txt").read_text(encoding="utf-8")
        )[1]
        headings = re.findall(r"(?m)^## (.*)$", (HOME / "CHANGELOG.md").read_text(encoding="utf-8"))
        self.assertIn(version, headings[headings[0].startswith("Unreleased")])


if __name__ == "__main__":
    unittest.main()
