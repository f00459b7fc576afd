"""What packages say of themselves: the list of contents (SPDX), versions, and what a machine needs."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")).parent
SBOM = HOME / "ci/package/sbom.py"
VERSION = re.search(
    r"^project\(facts VERSION ([0-9.]+)", (HOME / "CMakeLists.txt").read_text(), re.M
)[1]


def run(*command, **more):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **more
    )


class Sbom(unittest.TestCase):
    def setUp(self):
        self.at = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def listed(self, name, **environment):
        done = run(
            sys.executable,
            "-B",
            SBOM,
            BUILD,
            self.at,
            self.at / name,
            "--relinked",
            env={**os.environ, **environment},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.at / name).read_text()

    def test_it_names_what_is_linked_in_with_the_version_of_the_package(self):
        (self.at / "reports/jinja2").mkdir(parents=True)
        said = json.loads(self.listed("one"))
        parts = {part["name"]: part for part in said["packages"]}
        self.assertEqual(
            (said["spdxVersion"], parts["facts"]["versionInfo"]), ("SPDX-2.3", VERSION)
        )
        self.assertLessEqual(
            {"libjansson-dev", "libssl-dev", "libuv1-dev", "libxxhash-dev", "Jinja2", "ziglang"},
            set(parts),
        )
        self.assertNotIn("MarkupSafe", parts)  # it is not in this tree
        if installed := run("dpkg-query", "-W", "-f", "${Version}", "libuv1-dev").stdout:
            self.assertEqual(parts["libuv1-dev"]["versionInfo"], installed)
        related = {
            (line["relationshipType"], line["relatedSpdxElement"]) for line in said["relationships"]
        }
        self.assertEqual(
            {name for _, name in related}, {part["SPDXID"] for part in said["packages"]}
        )
        self.assertIn(("STATIC_LINK", "SPDXRef-libuv1-dev"), related)

    def test_the_same_bytes_again(self):
        self.assertEqual(
            self.listed("one", SOURCE_DATE_EPOCH="1700000000"),
            self.listed("two", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo"),
        )

    def test_a_library_of_unknown_licence_is_refused(self):
        (self.at / "build.ninja").write_text(
            "  LINK_LIBRARIES = lib/libfattn.a  /usr/lib/x86_64-linux-gnu/libsecret.a  -lm\n"
        )
        done = run(sys.executable, "-B", SBOM, self.at, self.at, self.at / "out")
        self.assertEqual((done.returncode, "libsecret.a" in done.stderr), (3, True), done.stderr)


class Versions(unittest.TestCase):
    def test_the_conda_recipe_has_the_version(self):
        self.assertIn(
            f'  version: "{VERSION}"\n', (HOME / "ci/package/conda/recipe.yaml").read_text()
        )

    def test_the_debian_package_is_named_for_the_interface(self):
        self.assertIn(
            "set(FATTN_SOVERSION ${PROJECT_VERSION_MAJOR})",
            (HOME / "lib/package/install.cmake").read_text(),
        )
        number = VERSION.split(".")[0]
        self.assertIn(
            f"Package: libfattn{number}\n", (HOME / "ci/package/debian/control").read_text()
        )
        self.assertTrue((HOME / f"ci/package/debian/libfattn{number}.install").exists())


class Needs(unittest.TestCase):
    def test_doctor_prints_the_glibc_that_the_programs_ask_for(self):
        asked = run("readelf", "-VW", BUILD / "bin/facts", BUILD / "bin/facts-worker").stdout
        newest = max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", asked))
        said = run(
            BUILD / "bin/facts",
            "doctor",
            "--bundle",
            "--json",
            env={**os.environ, "FACTS_HOME": str(HOME)},
        ).stdout
        lines = {line["what"]: line for line in map(json.loads, said.splitlines())}
        self.assertTrue(lines["glibc"]["text"].startswith(f"2.{newest} or newer"), said)
        self.assertEqual({"machine", "cudnn", "python", "reports", "driver"} - set(lines), set())


if __name__ == "__main__":
    unittest.main()
