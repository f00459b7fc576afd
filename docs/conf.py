"""The site: `./facts docs`. ci/docs/site_tree.py makes the folder that Sphinx reads: every Markdown page of the project, and the printed pages. docs/index.md is the table
of contents."""

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
        pages = dict.fromkeys(re.findall(r"\]\((?:\.\./docs/)?([\w/-]+)\.md\)", body))
        entries = "\n".join(pages)
        source[0] += f"\n```{{toctree}}\n:caption: {title}\n:hidden:\n\n{entries}\n```\n"


LINKS = re.compile(
    r"(?ms)^```.*?^```|^    [^\n]*|`printed/(?P<page>[\w/-]+)\.md`|`[^`]*`"
    r"|(?P<text>\[[^\]]*\])\((?:[./]*cases/known/(?P<known>[\w-]+)\.known|[^)]*)\)"
    r"|\b(?P<report>[\w-]+/[\w.-]+)#(?P<number>\d+)\b"
)  # other code, and links, stay as they are


def add_links(_, name, source):
    """Makes links of the names of printed pages, of files in cases/known (each is a page of the site), and of public reports, owner/repository#number."""
    printed = "../" * name.count("/") + "docs/printed"

    def link(m):
        if m["page"]:
            return f"[{m['page']}]({printed}/{m['page']}.md)"
        if m["known"]:
            return f"{m['text']}({printed}/known/{m['known']}.md)"
        if m["report"]:
            return f"[{m[0]}](https://github.com/{m['report']}/issues/{m['number']})"
        return m[0]

    source[0] = LINKS.sub(link, source[0])


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", add_links)
    app.connect("source-read", add_contents)
