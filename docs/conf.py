"""The site: `./facts docs`. Every Markdown page of the project is read in place; docs/index.md is the table of contents."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "FACTS"
author = "FACTS"
version = re.search(
    r"project\(facts VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
)[1]
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "**/*.md"]
exclude_patterns = ["build", ".*"]
myst_heading_anchors = 4
suppress_warnings = ["toc.not_included"]  # the pages of folders are reached by links
html_theme = "furo"
html_title = f"FACTS {version}"
html_copy_source = False
html_show_sphinx = False


def add_contents(_, name, source):
    """Makes the table of contents from the links of the index: a section is a part, its links are the part's pages."""
    if name != root_doc:
        return
    for title, body in re.findall(r"(?m)^## (.*)\n((?:(?!^## ).*\n?)*)", source[0]):
        pages = dict.fromkeys(page for page in re.findall(r"\]\(([\w/-]+)\.md\)", body))
        entries = "\n".join(pages)
        source[0] += f"\n```{{toctree}}\n:caption: {title}\n:hidden:\n\n{entries}\n```\n"


REPORT = re.compile(
    r"(?ms)^```.*?^```|^    [^\n]*|`[^`]*`|\[[^\]]*\]\([^)]*\)|\b([\w-]+/[\w.-]+)#(\d+)\b"
)  # code and links stay as they are


def link_reports(_, __, source):
    """Makes a link of each public report: owner/repository#number."""
    source[0] = REPORT.sub(
        lambda m: f"[{m[0]}](https://github.com/{m[1]}/issues/{m[2]})" if m[1] else m[0], source[0]
    )


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", link_reports)
    app.connect("source-read", add_contents)
