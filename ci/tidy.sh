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
if [[ $# -gt 0 ]]; then files=("$@"); else mapfile -t files < <(find lib/src lib/nulldriver reference/src harness/src -name '*.c' | sort); fi
one() {
    local key found
    key=$passed/$(cat "$1" <(echo "$headers") | sha256sum | cut -c1-64)
    [[ -e $key ]] && return 0
    # shellcheck disable=SC2086
    # The findings alone: the analyzer's path to each is long, and clang-tidy on that one file shows it.
    if found=$(clang-tidy --quiet $fewer -p "$build" "$1" 2>/dev/null); then touch "$key"; else grep -E 'error:|warning:' <<<"$found" | sed "s|^$PWD/||"; return 1; fi
}
# An eighth of the paths that the analyzer follows of itself through one function: most of the time is its.
fewer='--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=30000'
export -f one
export build passed headers fewer
printf '%s\n' "${files[@]}" | xargs -P2 -I{} bash -c 'one {}'
