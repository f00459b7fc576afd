#!/usr/bin/env bash
# Builds FACTS for aarch64 (Grace: sbsa) on another machine: Debian's cross compiler, and Debian's libraries for aarch64 in a folder of the build.
# usage: ci/package/cross.sh BUILD [--no-kernels] [CMAKE OPTION...]     ci/package/cross.sh build/aarch64 && ci/package/wheel.py --build build/aarch64 -o wheels
#   BUILD   the build folder; the libraries are in BUILD/sysroot
# A program runs under an emulator: qemu-aarch64-static -L BUILD/sysroot BUILD/bin/facts list. Criterion's programs do not.
# Exit: 0; 2 bad input; 3 a package is missing, or the build failed.
set -euo pipefail
[[ $# -ge 1 && $1 != -* ]] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
home=$(dirname -- "$(dirname -- "$(dirname -- "$(realpath -- "$0")")")")
mkdir -p "$1"
build=$(realpath -- "$1")
shift
. "$home/ci/package/kernels.sh"
mapfile -t kernels < <(kernel_options "$package_archs")
[[ ${1-} != --no-kernels ]] || { shift; kernels=(-DFACTS_NVCC=); }
targets=(facts facts-worker facts-self nullcuda fattn_shared)
libraries=(libjansson-dev libssl-dev libuv1-dev libxxhash-dev libgomp1 libstdc++6 zlib1g) # the last two for cuDNN under qemu
command -v aarch64-linux-gnu-gcc >/dev/null || { echo "cross.sh: the cross compiler is missing; run this once: apt-get install gcc-aarch64-linux-gnu" >&2; exit 3; }
sysroot=$build/sysroot
bash "$home/ci/package/unpack.sh" bookworm aarch64 "$sysroot" "${libraries[@]}"
export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
cmake -S "$home" -B "$build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_FIND_ROOT_PATH="$sysroot" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64-static;-L;$sysroot" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFACTS_TESTS=OFF -DFACTS_WERROR=OFF "${kernels[@]}" "$@" >&2 || exit 3
cmake --build "$build" --target "${targets[@]}" >&2 || exit 3
[[ ${kernels[0]} == -DFACTS_NVCC= ]] || all_kernels "$build"
