#!/usr/bin/env bash
# gpu_tests.sh CUDNN_DIR [NVRTC]: the library's tests, the oracle's and the harness's, and the examples on GPU 0, from a bundle made with --tests or from a build. Tests that need no GPU run too.
#   FACTS_TESTS_ONLY   a pattern of program names: 'lib_(math|plan).*'
# Exit: 0 all right, 1 something failed, 2 bad input.
set -uo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
bin=$home/tests/bin
export FACTS_BIN=$home/bin FACTS_SOURCE=$home FACTS_HOME=$home CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY
if [[ ! -d $bin ]]; then
    bin=$home/build/release/bin
    FACTS_BIN=$bin
fi
[[ $# -ge 1 && -e $1/libcudnn.so.9 ]] || { echo "usage: ci/gpu_tests.sh CUDNN_DIR [NVRTC]" >&2; exit 2; }
export FACTS_TEST_CUDNN=$1 FACTS_TEST_NVRTC=${2:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
worst=0

one() {
    local start=$SECONDS status=0 said
    timeout 300 "$@" >"$log" 2>&1 || status=$?
    said=$(grep -a -m 1 -o 'Tested: .*Crashing: [0-9]*' "$log")
    if [[ $status == 0 && $1 == *_gpu && $said == "Tested: 0 "* ]]; then
        printf 'NOTHING %-28s was skipped: no GPU, or no kernels\n' "$(basename "$1")"
        grep -a -m 2 -i skip "$log"
        worst=1
    elif [[ $status == 0 ]]; then
        printf 'ok      %-28s %4d s  %s\n' "$(basename "$1")" $((SECONDS - start)) "$said"
        grep -a -E 'Skipped|SKIP' "$log" | sort | uniq -c | head -n 5
    else
        printf 'FAILED  %-28s %4d s  exit %d  %s\n' "$(basename "$1")" $((SECONDS - start)) "$status" "$said"
        grep -a -vE '^\[(SKIP|----|====|RUN |PASS)' "$log" | tail -n 15
        worst=1
    fi
}

for program in "$bin"/lib_* "$bin"/{reference,harness}_test_gpu; do
    [[ ! ${program##*/} =~ ^${FACTS_TESTS_ONLY:-.*}$ ]] || one "$program" -j4
done
for program in "$bin"/example_*; do
    [[ ! ${program##*/} =~ ^${FACTS_TESTS_ONLY:-.*}$ ]] || one "$program" --device 0 --cudnn "$1" ${2:+--nvrtc "$2"}
done
# As an operator of PyTorch, with PyTorch's own cuDNN.
if python3 -c 'import torch' 2>/dev/null; then
    unset CUDNN_LIB_CONFIG
    [[ -e $home/lib/python/fattn/libfattn.so.1 ]] || export FATTN_LIBRARY=$home/build/release/package/libfattn.so
    export PYTHONPATH=$home/lib/python
    [[ ! torch_attention =~ ^${FACTS_TESTS_ONLY:-.*}$ ]] || one "$home/examples/torch_attention.py"
else
    echo "skipped torch_attention: no PyTorch"
fi
exit $worst
