#!/usr/bin/env bash
# Makes the Debian packages facts, libfattn1 and libfattn-dev for this machine. The same commit and build give the same bytes.
# usage: ci/package/deb.sh OUT [BUILD]     OUT: the folder for the packages; BUILD: the build folder, build/deb unless given
# Exit: 0, the packages are printed; 2 bad input; 3 the build or debhelper failed, or a package is missing (apt-get install debhelper).
set -euo pipefail
[[ $# -ge 1 && $1 != -* ]] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
home=$(dirname -- "$(dirname -- "$(dirname -- "$(realpath -- "$0")")")")
mkdir -p "$1" "${2:-$home/build/deb}"
out=$(realpath -- "$1")
BUILD=$(realpath -- "${2:-$home/build/deb}")
export BUILD SOURCE=$home DEB_BUILD_OPTIONS=noautodbgsym
command -v dh >/dev/null || { echo "deb.sh: debhelper is missing; run this once: apt-get install debhelper" >&2; exit 3; }

# As Debian builds it: its flags, no run path, and libraries in the folder of their architecture.
eval "$(dpkg-buildflags --export=sh)"
cmake -S "$home" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_SKIP_RPATH=ON -DFACTS_TESTS=OFF -DFACTS_WERROR=OFF \
    -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" -DFACTS_CUDA_ARCHS="80;86;89;90;100;120" >&2 || exit 3
cmake --build "$BUILD" --target facts facts-worker facts-self nullcuda fattn_shared >&2 || exit 3

version=$(sed -n 's/^project(facts VERSION \([0-9.]*\).*/\1/p' "$home/CMakeLists.txt")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$home" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/facts"
cp -r "$home/ci/package/debian" "$stage/facts/"
printf 'facts (%s-1) unstable; urgency=medium\n\n  * Version %s: see CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$version" \
    "$(sed -n 's/^Maintainer: //p' "$home/ci/package/debian/control")" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >"$stage/facts/debian/changelog"
(cd "$stage/facts" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >&2) || exit 3
mv "$stage"/*.deb "$out/"
printf '%s\n' "$out"/*_"$version"-1_*.deb
