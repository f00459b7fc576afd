#!/usr/bin/env python3
"""Renews ci/cudnn.lock: the packages that `facts cudnn install` and ./facts may install, with the sha256 that the package index publishes.

usage: ci/cudnn_lock.py > ci/cudnn.lock      (network; asks the index that pip is set up for; nothing is downloaded but its page for each package)

What belongs in the list is said in WANTED below. A version is added by running this and reviewing the diff: a line that was there must never change.
"""
import html
import os
import re
import sys
import urllib.parse

from pip._internal.models.index import PyPI
from pip._internal.network.session import PipSession

PLATFORM = re.compile(r"-manylinux[^-]*_x86_64\.whl$")
WANTED = [  # package, which versions
    ("nvidia-cudnn-jit-cu13", lambda v: v >= (9, 12)),
    ("nvidia-cudnn-jit-cu12", lambda v: v >= (9, 12)),
    ("nvidia-cudnn-cu12", lambda v: (9, 8) <= v < (9, 12)),
    ("nvidia-cudnn-cu13", lambda v: v >= (9, 28)),
    ("nvidia-cuda-nvrtc", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-nvrtc-cu12", lambda v: v == (12, 9, 86)),
    # The oldest CUDA 13 compiles the kernels: every driver of CUDA 13 loads what it makes.
    ("nvidia-cuda-nvcc", lambda v: v == (13, 0, 88)),
    ("nvidia-nvvm", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-crt", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-runtime", lambda v: v == (13, 0, 96)),
    ("nvidia-cuda-sanitizer-api", lambda v: v == (13, 5, 25)),  # the first with the program that starts what it checks
]


def index_url():
    return os.environ.get("PIP_INDEX_URL") or PyPI.simple_url


def files(session, package):
    """(file name, sha256, bytes) of every file, from either form of the index's page."""
    url = f"{index_url().rstrip('/')}/{package}/"
    page = session.get(url, headers={"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"})
    page.raise_for_status()
    if "json" in page.headers.get("content-type", ""):
        for file in page.json()["files"]:
            yield file["filename"], file["hashes"].get("sha256", ""), lambda file=file: file.get("size", 0)
        return
    for href in re.findall(r'<a\s[^>]*href="([^"]+)"', page.text):
        link = urllib.parse.urlsplit(urllib.parse.urljoin(url, html.unescape(href)))
        sha256 = re.search(r"sha256=([0-9a-f]{64})", link.fragment)
        size = lambda link=link: int(session.head(link._replace(fragment="").geturl()).headers.get("content-length", 0))
        yield urllib.parse.unquote(link.path.rsplit("/", 1)[-1]), sha256.group(1) if sha256 else "", size


def main():
    session = PipSession()
    session.verify = os.environ.get("PIP_CERT") or session.verify
    print("# Packages that `facts cudnn install` and ./facts may install: package version sha256 bytes wheel. Renewed by ci/cudnn_lock.py.")
    for package, wanted in WANTED:
        lines = []
        for name, sha256, size in files(session, package):
            text = name.split("-")[1] if name.count("-") >= 4 else ""
            version = tuple(int(n) for n in re.findall(r"\d+", text))
            if PLATFORM.search(name) and re.fullmatch(r"\d+(\.\d+)+", text) and sha256 and wanted(version):
                lines.append((version, f"{package} {text} {sha256} {size()} {name}"))
        for _, line in sorted(lines):
            print(line)
        if not lines:
            sys.exit(f"{package}: nothing found")


if __name__ == "__main__":
    main()
