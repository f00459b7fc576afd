"""What the tests of the recipes share: their YAML, and skipping where the packages of ci/requirements-recipes.txt are not installed."""

import importlib
import re
import unittest
from pathlib import Path

from scripts import FACTS, start


def package(name):
    """A package of ci/requirements-recipes.txt."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"{error}; ci/requirements-recipes.txt") from None


def documents(source):
    """The YAML 1.2 documents of a file or of a text."""
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    return list(package("ruamel.yaml").YAML(typ="safe", pure=True).load_all(text))


def known_options(*command):
    return set(re.findall(r"--([a-z-]+)", start(FACTS, *command, "--help").stdout)) | {"help"}
