#!/usr/bin/env bash
# tidy.sh BUILD_FOLDER [I/N | FILE...]: clang-tidy with .clang-tidy over our sources, two at a time; I/N: every Nth file, one at a time. A file that passed is
# not asked again until it, a header or the settings change.
set -euo pipefail
build=$1 part=1/1 jobs=2; shift
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
cd "$home"
passed=$build/tidy
mkdir -p "$passed"
# Most of the time is the analyzer's: it follows paths through one function until it has made this many nodes. clang's own limit is 225000; ci/nightly.sh
# has it.
nodes=${FACTS_TIDY_NODES:-4000}
fewer="--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=$nodes"
settings=$(find lib reference harness -name '*.h' -print0 | sort -z | xargs -0 cat .clang-tidy ci/tidy.sh | sha256sum | cut -c1-32)-$nodes
[[ ${1:-} != [0-9]*/[0-9]* ]] || { part=$1 jobs=1; shift; }
if [[ $# -gt 0 ]]; then files=("$@"); else mapfile -t files < <(find lib/src lib/gpu lib/nulldriver reference/src harness/core harness/attention harness/test/liars -not -path harness/attention/cuda/test/\* -not -path lib/gpu/test/\* -name '*.c' | sort | awk -v i="${part%/*}" -v n="${part#*/}" 'NR % n == i % n'); fi
one() { # KEY FILE
    local found
    # shellcheck disable=SC2086
    # The findings alone: the analyzer's path to each is long, and clang-tidy on that one file shows it.
    if found=$(clang-tidy --quiet $fewer -p "$build" "$2" 2>/dev/null); then touch "$passed/$1"; else grep -E 'error:|warning:' <<<"$found" | sed "s|^$PWD/||"; return 1; fi
}
export -f one
export build passed fewer
sha256sum "${files[@]}" | while read -r sum file; do
    key=${sum:0:32}-$settings
    [[ -e $passed/$key ]] || printf '%s\n%s\n' "$key" "$file"
done | xargs -r -P$jobs -n2 bash -c 'one "$@"' one
