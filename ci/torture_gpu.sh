#!/usr/bin/env bash
# What becomes of a run on GPU 0 when a kernel faults or never ends, or a call of the driver fails: a table as in docs/torture.md.
# usage: ci/torture_gpu.sh BIN BUILD [OPTION...]
#   BIN     a build's bin/ folder with facts, facts-worker and torture_gpu (FACTS_TESTS=ON)
#   BUILD   as for --cudnn: one build
#   OPTION  of ci/torture.sh; --points 7 --jobs 8 unless given: some 90 seconds. --points 0: all points
# Needs Python 3 and nothing else. Exit: 0 nothing was lost, believed or blamed; 1 something was; 2 wrong usage.
set -uo pipefail
[[ $# -ge 2 ]] || { sed -n '3,6s/^# //p' "$0" >&2; exit 2; }
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
bin=$(realpath "$1") build=$2
shift 2
export FACTS_SOURCE=$home FACTS_HOME=$home
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
"${FACTS_PYTHON:-python3}" -B "$home/ci/torture/torture.py" --part gpu --gpu "$build" --programs "$bin" --state "$state" --points 7 --jobs 8 "$@"
