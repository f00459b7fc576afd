#!/usr/bin/env python3
"""Makes a conda package of a bundle, by conda/recipe.yaml. Needs no conda: py-rattler-build is pinned in requirements-package.txt.

usage: ci/package/conda.py -o FOLDER facts.tar.xz [--platform linux-aarch64]     prints the path of the package
Exit: 0 made; 3 the recipe or the bundle is not right, or py-rattler-build is missing.
"""

import argparse
import os
import pathlib
import sys

try:
    import rattler_build
except ImportError:
    print(
        "conda: py-rattler-build is missing; run this once: python3 -m pip install -r ci/package/requirements-package.txt",
        file=sys.stderr,
    )
    sys.exit(3)

RECIPE = pathlib.Path(__file__).resolve().parent / "conda/recipe.yaml"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="out", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--platform", default="linux-64", metavar="NAME")
    parser.add_argument("bundle", type=pathlib.Path)
    given = parser.parse_args()
    os.environ["FACTS_BUNDLE"] = str(given.bundle.resolve(strict=True))
    platform = rattler_build.PlatformConfig(target_platform=given.platform)
    recipe = rattler_build.Stage0Recipe.from_file(RECIPE)
    made = recipe.run_build(
        tool_config=rattler_build.ToolConfiguration(test_strategy="skip"),
        output_dir=given.out.resolve(),
        channels=[],
        render_config=rattler_build.RenderConfig(platform=platform),
        no_build_id=True,
    )
    print(made[0].packages[0])


if __name__ == "__main__":
    try:
        main()
    except (OSError, rattler_build.RattlerBuildError) as failure:
        print(f"conda: {failure}", file=sys.stderr)
        sys.exit(3)
