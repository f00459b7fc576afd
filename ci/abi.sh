#!/usr/bin/env bash
# Compares the library's binary interface with the one of the last release, which lib/package/libfattn.abi describes (libabigail; Debian: abigail-tools).
#
# usage: ci/abi.sh LIBRARY [DESCRIPTION]     what may change: new functions in a new version, new values of enumerations, new fields at the end of a
#                                            struct with struct_size; anything, if the major version in the soname is newer: programs of the last
#                                            release then load the library of that release
#        ci/abi.sh --write LIBRARY           describes LIBRARY in lib/package/libfattn.abi; part of a release, or of a new soname
#
# Exit: 0 a program of the last release runs with LIBRARY or does not load it, 1 it may fail, 2 wrong usage, 3 a tool is missing, or LIBRARY has no debug information.
set -euo pipefail
package=$(cd "$(dirname "${BASH_SOURCE[0]}")/../lib/package" && pwd)
headers=$package/../include/fattn
write=
[[ ${1-} != --write ]] || { write=1; shift; }
[[ $# -ge 1 ]] || { echo "usage: ci/abi.sh [--write] LIBRARY [DESCRIPTION]" >&2; exit 2; }
library=$1 description=${2:-$package/libfattn.abi}
command -v abidiff >/dev/null || { echo "abi.sh: abidiff is missing (Debian: abigail-tools)" >&2; exit 3; }
[[ $(objdump -h "$library") == *.debug_info* ]] || { echo "abi.sh: $library: no debug information" >&2; exit 3; }

# Without places in the sources and without the processor: the description changes with the interface alone.
describe() {
    abidw --no-corpus-path --no-comp-dir-path --no-elf-needed --no-architecture --no-parameter-names --no-write-default-sizes --short-locs --type-id-style hash \
        --exported-interfaces-only --drop-undefined-syms --drop-private-types --headers-dir "$headers" "$library" |
        sed -E "s/ (filepath|line|column|comp-dir-path)='[^']*'//g; s/ (visibility|binding|access)='(default|global|public|default-visibility|global-binding)'//g"
}

if [[ -n $write ]]; then
    describe >"$description"
    exit 0
fi
now=$(mktemp --suffix .abi)
trap 'rm -f "$now"' EXIT
describe >"$now"
major() { sed -nE "s/.*<abi-corpus .*soname='libfattn\.so\.([0-9]+)'.*/\1/p" "$1"; }
if (($(major "$now") > $(major "$description"))); then
    echo "abi.sh: new major version: libfattn.so.$(major "$now") after libfattn.so.$(major "$description"); programs of the last release do not load it"
    exit 0
fi
status=0
symbols() { sed -nE "s/.*<elf-symbol name='([^']*)' version='([^']*)'.*/\\2 \\1/p" "$1" | sort; }
late=$(comm -13 <(symbols "$description") <(symbols "$now") | grep -wFf <(symbols "$description" | cut -d' ' -f1 | sort -u)) || true
if [[ -n $late ]]; then
    printf 'abi.sh: %s: a released version gets no new function; add a node to lib/package/exports.map, or run ci/abi.sh --write before release 1.0\n' "$late"
    status=1
fi
abidiff --suppressions "$package/libfattn.suppr" --no-added-syms "$description" "$now" || status=1
exit "$status"
