#!/usr/bin/env bash
# Links programs of a build once more, for an older glibc than this machine's. Nothing is compiled again: the objects do not say which glibc they
# want, the linker does. zig (PyPI: ziglang, pinned in ci/package/requirements-relink.txt) has the symbol lists of every glibc.
# usage: ci/package/relink.sh BUILD OUT GLIBC FILE...     ci/package/relink.sh build/release /tmp/out 2.28 bin/facts package/libfattn.so.1.0.0
#   ZIG   the zig to use (environment; else it is installed into BUILD/../zig)
# Exit: 0; 1 a file cannot be linked for that glibc (the linker names what is missing); 2 bad input; 3 zig cannot be had.
set -euo pipefail
[[ $# -ge 4 ]] || { sed -n '4,5s/^# //p' "$0" >&2; exit 2; }
build=$(realpath -- "$1") out=$2 glibc=$3
shift 3
here=$(dirname -- "$(realpath -- "$0")")
mkdir -p "$out"
out=$(realpath -- "$out")
[[ $glibc =~ ^2\.[0-9]+$ ]] || { echo "relink.sh: $glibc is no version of glibc: 2.28" >&2; exit 2; }

find_zig() {
    local folder=$build/../zig list=$here/requirements-relink.txt
    if ! cmp -s "$list" "$folder/requirements"; then
        rm -rf "$folder"
        "${FACTS_PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes --only-binary=:all: \
            --target "$folder" -r "$list" >&2 || return
        cp "$list" "$folder/requirements"
    fi
    realpath -- "$folder/ziglang/zig"
}

zig=${ZIG:-$(find_zig)} || { echo "relink.sh: zig cannot be installed (ci/package/requirements-relink.txt)" >&2; exit 3; }
export ZIG_GLOBAL_CACHE_DIR=$build/../zig-cache
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
machine=$("$compiler" -dumpmachine) # x86_64-linux-gnu

for file; do
    # ": && cc FLAGS OBJECTS -o FILE LIBRARIES && :"
    command=$(ninja -C "$build" -t commands "$file" 2>/dev/null | tail -n 1) || true
    command=${command#": && "}
    [[ $command == *" -o $file "* ]] || { echo "relink.sh: $file: $build does not link it" >&2; exit 2; }
    words=${command#* } # without the compiler
    words=${words%%" && "*}
    words=${words/ -o $file / -o $out/$(basename -- "$file") }
    words=${words//-static-libgcc/}
    words=${words// -fopenmp / $("$compiler" -print-file-name=libgomp.so) -Wl,--allow-shlib-undefined } # zig would take LLVM's
    words+=" $("$compiler" -print-libgcc-file-name)" # has what gcc calls for atomics on aarch64
    [[ $words == *" -shared "* ]] || words+=" -pie $here/environ.c"
    (cd "$build" && bash -c "'$zig' cc -target ${machine%%-*}-linux-gnu.$glibc $words") || exit 1
    # A variable of libc that has several names must not be copied under one of them.
    if copied=$(readelf -rW "$out/$(basename -- "$file")" | sed -n 's/.*_COPY .* \([A-Za-z0-9_]*\)@.*/\1/p' | grep -vxE 'std(in|out|err)|in6addr_any'); then
        echo "relink.sh: $file: the variable ${copied//$'\n'/, } of libc was copied into the program" >&2
        exit 1
    fi
done
