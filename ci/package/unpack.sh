#!/usr/bin/env bash
# Unpacks Debian packages, with those that they need, into a folder. Nothing is installed. A folder that has them already is kept.
# usage: ci/package/unpack.sh SUITE MACHINE FOLDER PACKAGE...     ci/package/unpack.sh bookworm aarch64 build/sysroot libuv1-dev
# Exit: 0; 2 bad input; 3 there is no mmdebstrap, or it failed.
set -euo pipefail
[[ $# -ge 4 ]] || { sed -n '3s/^# //p' "$0" >&2; exit 2; }
suite=$1 machine=$2 folder=$3
shift 3
case $machine in
x86_64) machine=amd64 ;;
aarch64) machine=arm64 ;;
*) echo "unpack.sh: $machine: x86_64 or aarch64" >&2; exit 2 ;;
esac
wanted="$suite $machine $*"
[[ $(cat "$folder/.unpacked" 2>/dev/null) != "$wanted" ]] || exit 0
command -v mmdebstrap >/dev/null || { echo "unpack.sh: mmdebstrap is missing; run this once: apt-get install mmdebstrap" >&2; exit 3; }
rm -rf "$folder"
# The mirror of this machine, and the suite as it was released: older packages of the other archives go away.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)
packages=$*
mmdebstrap --quiet --variant=extract --architectures="$machine" --include="${packages// /,}" "$suite" "$folder" "deb $mirror $suite main" >&2 || exit 3
echo "$wanted" >"$folder/.unpacked"
