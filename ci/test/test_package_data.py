"""What packages say of themselves: the list of contents (SPDX), and what a machine needs."""

import json
import re
import sys
import unittest

from scripts import BUILD, HOME, VERSION, Folder, run, start

SBOM = HOME / "ci/package/sbom.py"


class Sbom(Folder):
    def listed(self, name, **add):
        run(sys.executable, SBOM, BUILD, self.at, self.at / name, "--relinked", add=add)
        return (self.at / name).read_text()

    def test_it_names_what_is_linked_in_with_the_version_of_the_package(self):
        (self.at / "reports/jinja2").mkdir(parents=True)
        said = json.loads(self.listed("one"))
        parts = {part["name"]: part for part in said["packages"]}
        linked = {"libjansson-dev", "libssl-dev", "libuv1-dev", "libxxhash-dev"}
        self.assertEqual(set(parts) & linked, linked)
        self.assertEqual(
            (said["spdxVersion"], parts["facts"]["versionInfo"]), ("SPDX-2.3", VERSION)
        )
        in_tree = {name for name in ("Jinja2", "ziglang", "MarkupSafe") if name in parts}
        self.assertEqual(in_tree, {"Jinja2", "ziglang"})
        if installed := start("dpkg-query -W -f ${Version} libuv1-dev").stdout:
            self.assertEqual(parts["libuv1-dev"]["versionInfo"], installed)
        related = {
            line["relatedSpdxElement"]: line["relationshipType"] for line in said["relationships"]
        }
        self.assertEqual(set(related), {part["SPDXID"] for part in said["packages"]})
        self.assertEqual(related["SPDXRef-libuv1-dev"], "STATIC_LINK")

    def test_the_same_bytes_again(self):
        one = self.listed("one", SOURCE_DATE_EPOCH="1700000000")
        two = self.listed("two", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo")
        self.assertEqual(one, two)

    def test_a_library_of_unknown_licence_is_refused(self):
        self.put("build.ninja", "  LINK_LIBRARIES = lib/libfattn.a  /usr/lib/libsecret.a  -lm\n")
        done = start(sys.executable, SBOM, self.at, self.at, self.at / "out")
        self.assertEqual((done.returncode, "libsecret.a" in done.stderr), (3, True), done.stderr)


class Kernels(Folder):
    def test_a_package_without_kernels_for_every_gpu_is_refused(self):
        script = f'home={HOME}; . "$home/ci/package/kernels.sh"; all_kernels "{self.at}"'
        for archs, status in (("80", 3), ("80 sm_86 sm_89 sm_90 sm_100 sm_120", 0)):
            text = (
                f'const gpu_image image = {{ data, 9, "nvcc 13.0.88: sm_{archs} compute_80" }};\n'
            )
            self.put("lib/math_image.c", text)
            done = start("bash", "-c", script)
            self.assertEqual(
                (done.returncode, "give --no-kernels" in done.stderr), (status, status > 0)
            )


class Needs(unittest.TestCase):
    def test_doctor_prints_the_glibc_that_the_programs_ask_for(self):
        asked = run("readelf -VW", BUILD / "bin/facts", BUILD / "bin/facts-worker")
        newest = max(int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", asked))
        add = {"FACTS_HOME": str(HOME)}
        said = run(BUILD / "bin/facts", "doctor", "--bundle", "--json", add=add)
        lines = {line["what"]: line for line in map(json.loads, said.splitlines())}
        self.assertTrue(lines["glibc"]["text"].startswith(f"2.{newest} or newer"), said)
        self.assertEqual({"machine", "cudnn", "python", "reports", "driver"} - set(lines), set())


class Libraries(Folder):
    def test_one_message_names_all_that_is_missing(self):
        words = ("-S", HOME, "-B", self.at, "-DFACTS_SHARED=ON")
        said = start("cmake -G Ninja", *words, add={"PKG_CONFIG_LIBDIR": str(self.at)}).stderr
        missing = "missing: jansson .*, libuv .*, libxxhash .*, libcrypto .*, Criterion"
        self.assertRegex(said.replace("\n ", ""), missing)
        self.assertEqual(said.count("CMake Error"), 1)


class Pins(unittest.TestCase):
    def test_lists_pin_what_they_ask_for_and_readme_names_the_pythons(self):
        pythons = re.search(r"^pythons=\((.*)\)", (HOME / "ci/pins.sh").read_text(), re.M)[
            1
        ].split()
        said = f"Python {pythons[0]} to {pythons[-1]}"
        for page in ("README.md", "docs/install.md"):
            self.assertIn(said, (HOME / page).read_text())
        for path in (HOME / "ci").glob("**/requirements*.txt"):
            text = path.read_text()
            pinned = re.findall(
                r"^(\S+)==.*\\((?:\n    --hash=sha256:\w{64}(?: \\)?)+)", text, re.M
            )
            self.assertEqual(len(pinned), len(re.findall(r"(?m)^\S+==", text)), path)
            asked = set(re.findall(r"^#: ([\w-]+)", text, re.M))
            self.assertTrue(asked and asked <= {name for name, _ in pinned}, path)


if __name__ == "__main__":
    unittest.main()
