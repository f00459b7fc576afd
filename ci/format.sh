#!/usr/bin/env bash
# format.sh [--check]: lays out every C, C++ and CUDA source (clang-format) and every Python file (ruff) at 100 columns. With --check nothing is changed; each
# file that would change is named, and the exit is 1. The two programs are those of build/venv, which `./facts test` installs.
set -euo pipefail
cd -- "$(dirname -- "$0")/.."
bin=$PWD/build/venv/bin
status=0
sources() { comm -z -23 <(git ls-files -z -- '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.hpp' | sort -z) <(git ls-files -z --deleted | sort -z); }
if [[ ${1-} == --check ]]; then
    sources | xargs -0 -P2 -n 100 "$bin/clang-format" --dry-run 2>&1 | sed -n 's/^\([^:]*\):.*\[-Wclang-format-violations\]$/\1: run ci\/format.sh/p' | sort -u | { ! grep .; } || status=1
    "$bin/ruff" format --check --quiet . || status=1
else
    sources | xargs -0 -P2 -n 100 "$bin/clang-format" -i
    "$bin/ruff" format --quiet .
fi
exit "$status"
