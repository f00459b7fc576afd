#!/usr/bin/env bash
# threads.sh [BUILD]: ThreadSanitizer over eight threads that share what libfattn lets them share: on the cpu and, where the build of cuDNN is installed
# (9.27.0-jit-cu13), on a described H100. Builds what it needs in build/tsan. Exit: 0 no race; 66 one; 1 a wrong answer; 3 no build.
set -euo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
tree=$home/build/tsan build=${1:-9.27.0-jit-cu13}
cmake -G Ninja -S "$home" -B "$tree" -DFACTS_TESTS=ON -DFACTS_SANITIZE=thread -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g1 -O1" >"$tree.log" 2>&1 &&
    cmake --build "$tree" --target torture_threads nullcuda >>"$tree.log" 2>&1 || { tail -5 "$tree.log" >&2; exit 3; }
words=()
if folder=$("$home/facts" cudnn path "$build" 2>/dev/null); then
    words=("$folder" "$tree/bin/nulldriver/libcuda.so.1" "$home/lib/devices/h100-sxm.json")
else
    echo "threads.sh: $build is not installed: the cpu alone" >&2
fi
CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY OMP_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$home/ci/torture/tsan.supp" "$tree/bin/torture_threads" "${words[@]}"
