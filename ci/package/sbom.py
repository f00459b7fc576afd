#!/usr/bin/env python3
"""Writes the list of what a package holds, as SPDX 2.3: the program, and every library that was linked or copied in, with version and licence.

usage: ci/package/sbom.py BUILD TREE FILE [--relinked] [--openmp FOLDER]     TREE is that of `cmake --install`, with what was added to it
       --relinked   zig linked the programs (ci/package/relink.sh)
       --openmp     the folder of Debian packages (ci/package/unpack.sh) from which OpenMP was copied
The same commit gives the same bytes. Exit: 0; 3 a library is linked in that this script does not know.
"""

import argparse
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

HOME = pathlib.Path(__file__).resolve().parents[2]
GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
# archive: the Debian package that has it, its licence
LINKED = {
    "libjansson.a": ("libjansson-dev", "MIT"),
    "libcrypto.a": ("libssl-dev", "Apache-2.0"),
    "libuv_a.a": ("libuv1-dev", "MIT"),
    "libuv.a": ("libuv1-dev", "MIT"),
    "libxxhash.a": ("libxxhash-dev", "BSD-2-Clause"),
    "libgomp.a": ("libgomp1", GCC),
}
PYTHON = {"jinja2": ("Jinja2", "BSD-3-Clause"), "markupsafe": ("MarkupSafe", "BSD-3-Clause")}


def read(path):
    return (HOME / path).read_text(encoding="utf-8")


def pinned(name, path):
    """The version of a Python package that a list of ours pins."""
    return re.search(rf"(?im)^{name}==(\S+)", read(path))[1]


def debian_version(folder, package):
    """Of packages that were unpacked into a folder, else of this machine's; None where there is no Debian package."""
    changes = folder / "usr/share/doc" / package / "changelog.Debian.gz"
    if changes.exists():
        return re.search(r"\((.*?)\)", gzip.decompress(changes.read_bytes()).decode())[1]
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return asked.stdout.strip() or None


def linked(build):
    """Archives of others that the programs are linked with."""
    steps = (build / "build.ninja").read_text()
    paths = re.findall(r"(?<=\s)(/?[\w./+-]*(?:/lib|sysroot)[\w./+-]*\.a)\b", steps)
    found = {pathlib.Path(path).name for path in paths if "/" in path}
    # What the build makes, made or not: tests may be configured and not built.
    made = re.findall(r"^build ([^:|]*\.a)\b", steps, re.M)
    ours = {pathlib.Path(path).name for paths in made for path in paths.split()}
    if unknown := found - ours - set(LINKED):
        names = ", ".join(sorted(unknown))
        raise SystemExit(f"sbom: {names}: linked in, and sbom.py does not know the licence")
    return sorted(found & set(LINKED))


def package(name, version, licence, reference=None):
    out = {
        "SPDXID": f"SPDXRef-{name}",
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }
    if version:
        out["versionInfo"] = version
    if reference and version:
        about = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl"}
        out["externalRefs"] = [{**about, "referenceLocator": f"pkg:{reference}@{version}"}]
    return out


def contents(build, tree, relinked, openmp):
    """What there is, and how the program has it."""
    names = [LINKED[archive] for archive in linked(build)]
    if compiler := re.search(r"/(\d+)/libgomp\.a", (build / "build.ninja").read_text()):
        names.append((f"libgcc-{compiler[1]}-dev", GCC))
    for name, licence in names:
        version = debian_version(build / "sysroot", name)
        yield package(name, version, licence, f"deb/debian/{name}"), "STATIC_LINK"
    if openmp:
        version = debian_version(openmp, "libgomp1")
        part = package("libgomp1", version, GCC, "deb/debian/libgomp1")
        yield {**part, "SPDXID": "SPDXRef-libgomp1-shared"}, "DYNAMIC_LINK"
    for folder, (name, licence) in PYTHON.items():
        if (tree / "reports" / folder).is_dir():
            version = pinned(name, "ci/requirements.txt")
            yield package(name, version, licence, f"pypi/{name.lower()}"), "CONTAINS"
    if relinked:  # its compiler-rt
        version = pinned("ziglang", "ci/package/requirements-relink.txt")
        yield package("ziglang", version, "MIT", "pypi/ziglang"), "STATIC_LINK"


def relation(one, how, other):
    return {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}


def document(build, tree, relinked=False, openmp=None):
    """The text of the file. `openmp`: the folder of packages from which OpenMP was copied."""
    version = re.search(r"^project\(facts VERSION ([0-9.]+)", read("CMakeLists.txt"), re.M)[1]
    git = ["git", "-C", HOME, "log", "-1", "--format=%ct"]
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        seconds = subprocess.run(git, capture_output=True, text=True, check=False).stdout
    made = datetime.datetime.fromtimestamp(int(seconds or 0), datetime.timezone.utc)
    home = re.search(r"HOMEPAGE_URL (\S+)", (HOME / "CMakeLists.txt").read_text())[1]
    parts = list(contents(build, tree, relinked, openmp))
    program = package("facts", version, "Apache-2.0")
    hashed = json.dumps([version, parts, int(seconds or 0)]).encode()
    digest = hashlib.sha256(hashed).hexdigest()[:16]
    said = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"facts-{version}",
        "documentNamespace": f"{home}/spdx/facts-{version}-{digest}",
        "creationInfo": {
            "created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: sbom.py-{version}"],
        },
        "packages": [program, *(part for part, _ in parts)],
        "relationships": [
            relation("SPDXRef-DOCUMENT", "DESCRIBES", program["SPDXID"]),
            *(relation(program["SPDXID"], how, part["SPDXID"]) for part, how in parts),
        ],
    }
    return json.dumps(said, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--relinked", action="store_true")
    parser.add_argument("--openmp", type=pathlib.Path, metavar="FOLDER")
    for name in ("build", "tree", "out"):
        parser.add_argument(name, type=pathlib.Path)
    given = parser.parse_args()
    said = document(given.build, given.tree, given.relinked, given.openmp)
    given.out.write_text(said, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except SystemExit as failure:
        if isinstance(failure.code, str):
            print(failure.code, file=sys.stderr)
            sys.exit(3)
        raise
