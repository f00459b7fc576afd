#!/usr/bin/env bash
# tidy.sh BUILD_FOLDER [FILE...]: clang-tidy with .clang-tidy over our sources, two at a time. A file that passed is not asked again until it, a header or the
# settings change.
set -euo pipefail
build=$1; shift
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
cd "$home"
passed=$build/tidy
mkdir -p "$passed"
headers=$(find lib reference harness -name '*.h' -print0 | sort -z | xargs -0 cat .clang-tidy ci/tidy.sh | sha256sum | cut -c1-64)
if [[ $# -gt 0 ]]; then files=("$@"); else mapfile -t files < <(find lib/src lib/gpu lib/nulldriver reference/src harness/core harness/attention harness/test/liars -not -path harness/attention/cuda/test/\* -not -path lib/gpu/test/\* -name '*.c' | sort); fi
one() {
    local key found
    key=$passed/$(cat "$1" <(echo "$headers $nodes") | sha256sum | cut -c1-64)
    [[ -e $key ]] && return 0
    # shellcheck disable=SC2086
    # The findings alone: the analyzer's path to each is long, and clang-tidy on that one file shows it.
    if found=$(clang-tidy --quiet $fewer -p "$build" "$1" 2>/dev/null); then touch "$key"; else grep -E 'error:|warning:' <<<"$found" | sed "s|^$PWD/||"; return 1; fi
}
# Most of the time is the analyzer's: it follows paths through one function until it has made this many nodes. clang's own limit is 225000; ci/nightly.sh
# has it.
nodes=${FACTS_TIDY_NODES:-10000}
fewer="--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=$nodes"
export -f one
export build passed headers nodes fewer
printf '%s\n' "${files[@]}" | xargs -P2 -I{} bash -c 'one {}'
