#!/usr/bin/env bash
# torture.sh [OPTION...]: faults at every step of FACTS, and a table of what became of each (docs/torture.md). Seeded; what was done is not done again
# when the same command is given once more. With --help the options; ci/torture/README.md says what the parts do.
# Needs a build of the tests (./facts test -R harness_case). Exit: 0 nothing was lost, believed or blamed; 1 something was; 3 there is no build.
set -euo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
preset=${TORTURE_PRESET:-release}
bin=$home/build/$preset/bin
[[ -f $bin/torture-inject.so ]] || { echo "torture.sh: build/$preset has no tests: ./facts test -R harness_case" >&2; exit 3; }
export FACTS_SOURCE=$home FACTS_HOME=$home
[[ -n ${FACTS_PYTHON:-} || ! -x $home/build/venv/bin/python ]] || export FACTS_PYTHON=$home/build/venv/bin/python
exec "${FACTS_PYTHON:-python3}" -B "$home/ci/torture/torture.py" --programs "$bin" --injector "$bin/torture-inject.so" "$@"
