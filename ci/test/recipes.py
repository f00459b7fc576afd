"""What the tests of the recipes share: their YAML, and skipping where the packages of ci/requirements-recipes.txt are not installed."""

import importlib
import os
import re
import subprocess
import unittest
from pathlib import Path

HOME = Path(os.environ.get("FACTS_SOURCE") or Path(__file__).resolve().parents[2])
FACTS = Path(os.environ.get("FACTS_BIN") or HOME / "build/release/bin") / "facts"


def package(name):
    """A package of ci/requirements-recipes.txt."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"{error}; ci/requirements-recipes.txt") from None


def documents(path):
    """The YAML 1.2 documents of a file or of a text."""
    ruamel = package("ruamel.yaml")
    return list(
        ruamel.YAML(typ="safe", pure=True).load_all(
            path.read_text(encoding="utf-8") if isinstance(path, Path) else path
        )
    )


def known_options(*command):
    said = subprocess.run(
        [FACTS, *command, "--help"], capture_output=True, text=True, check=False
    ).stdout
    return set(re.findall(r"--([a-z-]+)", said)) | {"help"}


def main():
    unittest.main(module="__main__")
