#!/usr/bin/env bash
# Makes a release of this commit: checks it, builds every archive twice and compares the bytes, and makes an annotated tag. docs/release.md has the
# steps before and after. It pushes nothing and publishes nothing.
#
# usage: ci/release.sh VERSION [--dry-run] [-o FOLDER]     --dry-run makes no tag; archives and SHA256SUMS go to FOLDER (build/dist)
#
# Exit: 0 done, 1 something is not ready (every reason is printed), 2 wrong usage; another one: that of the build that failed.
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf 'release: %s\n' "$*" >&2; }
usage() { say "usage: ci/release.sh VERSION [--dry-run] [-o FOLDER]"; exit 2; }

version='' dry='' out=$home/build/dist
while [[ $# -gt 0 ]]; do
    case $1 in
    --dry-run) dry=1; shift ;;
    -o) [[ $# -gt 1 ]] || usage; out=$(realpath -m "$2"); shift 2 ;;
    [0-9]*.[0-9]*.[0-9]*) version=$1; shift ;;
    *) usage ;;
    esac
done
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || usage
cd "$home"

not_ready=
missing() { say "not ready: $*"; not_ready=1; }

check_commit() {
    [[ -z $(git status --porcelain) ]] || missing "the working tree has changes: git status"
    ! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || missing "the tag v$version exists"
    local defined
    defined=$(sed -n 's/^project(facts VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    [[ $defined == "$version" ]] || missing "CMakeLists.txt has version $defined"
    ci/check_mentions.py >&2 || missing "files name another version or repository: ci/check_mentions.py --write"
    grep -q "soname='libfattn.so.${version%%.*}'" lib/package/libfattn.abi ||
        missing "lib/package/libfattn.abi describes another major version: ci/abi.sh --write build/release/package/libfattn.so"
    local heading form="^## ${version//./[.]} [(][0-9]{4}-[0-9]{2}-[0-9]{2}[)]\$"
    heading=$(grep -m1 '^## ' CHANGELOG.md)
    [[ $heading =~ $form ]] || missing "CHANGELOG.md begins with \"$heading\"; want \"## $version ($(date -u +%F))\""
}

# Against the description of this commit, and against that of the last release: nobody can rewrite a tag's.
check_abi() {
    local last
    ci/abi.sh "$1"
    last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null) || return 0
    git show "$last:lib/package/libfattn.abi" >last.abi
    ci/abi.sh "$1" last.abi || { say "programs of $last may fail; a new major version may break them"; return 1; }
}

# Of a clone in the current folder. Packages that are added to the project are added here.
make_archives() {
    local to=$1
    git archive --prefix="facts-$version/" -o "$to/facts-$version.tar.gz" HEAD
    ./facts bundle -o "$to/facts-$version-aarch64.tar.xz" --machine aarch64
    ci/package/wheel.py -o "$to" --build build/aarch64
    ./facts bundle -o "$to/facts-$version-x86_64.tar.xz"
    ci/package/wheel.py -o "$to"
    check_abi build/release/package/libfattn.so
}

# Twice from the start, where the second differs in all that must not show: folder, umask, time zone, language.
build_twice() {
    local work
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    mkdir -p "$work/one" "$work/another-place" "$work/1" "$work/2"
    say "building the archives (build 1 of 2)"
    git clone -q "$home" "$work/one/facts"
    git -C "$work/one/facts" checkout -q --detach "$commit" # whatever is committed meanwhile
    (cd "$work/one/facts" && make_archives "$work/1") >&2
    say "building the archives (build 2 of 2)"
    (umask 077 && git clone -q "$work/one/facts" "$work/another-place/source" && cd "$work/another-place/source" && TZ=Asia/Tokyo LC_ALL=C make_archives "$work/2") >&2
    local name
    for name in $(cd "$work/1" && ls) $(cd "$work/2" && ls); do
        cmp -s "$work/1/$name" "$work/2/$name" || missing "two builds of $name differ"
    done
    [[ -z $not_ready ]] || exit 1
    mkdir -p "$out"
    (cd "$work/1" && sha256sum -- *) >"$work/SHA256SUMS"
    cp "$work"/1/* "$work/SHA256SUMS" "$out/"
}

commit=$(git rev-parse HEAD)
check_commit
[[ -z $not_ready ]] || exit 1
build_twice
cat "$out/SHA256SUMS"
if [[ -n $dry ]]; then
    say "ready; no tag was made"
    exit 0
fi
git tag -a "v$version" "$commit" -m "FACTS $version" -m "$(cat "$out/SHA256SUMS")"
say "the tag v$version was made. Now:"
printf '  git push origin HEAD v%s\n  publish %s\n' "$version" "$out/"
