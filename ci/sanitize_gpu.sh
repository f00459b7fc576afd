#!/usr/bin/env bash
# sanitize_gpu.sh PROGRAM [ARGUMENT...]: runs a program under compute-sanitizer, once for each of memcheck, racecheck, initcheck and synccheck. It passes when
# no tool finds anything and every tool saw the program use a GPU. Logs are kept beside the program, PROGRAM.TOOL.log.
# For the kernels of the math backend: ci/sanitize_gpu.sh build/release/bin/lib_math_gpu -j1
#   FACTS_SANITIZER    the compute-sanitizer; otherwise the one beside this script's bundle, in PATH, in a toolkit, in the cache, or its package
#   FACTS_TOOLS        other tools than these four
# Exit: 0 clean; 1 findings, or a program that failed; 3 nothing could be checked.
set -uo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
[[ $# -gt 0 && -x $1 ]] || { echo "usage: ci/sanitize_gpu.sh PROGRAM [ARGUMENT...]" >&2; exit 2; }

find_sanitizer() {
    local cache=${XDG_CACHE_HOME:-${HOME:-/nowhere}/.cache}/facts candidate python
    for candidate in "${FACTS_SANITIZER:-}" "$home/sanitizer/compute-sanitizer" "$(type -P compute-sanitizer)" \
        /usr/local/cuda/bin/compute-sanitizer "$cache"/sanitizer/*/compute-sanitizer/compute-sanitizer; do
        [[ ! -x $candidate ]] || { echo "$candidate"; return; }
    done
    for python in "${FACTS_PYTHON:-}" "$home/build/venv/bin/python" python3; do
        [[ -z $(type -P "$python") ]] || { "$python" "$home/ci/cudnn_install.py" --cache "$cache" --tool sanitizer; return; }
    done
}

# The verdict is in the log: the exit status of a program that forks is not that of its children.
check() {
    local tool=$1 log=$2.$1.log start=$SECONDS summaries dirty status=0; shift
    "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 "$@" >"$log" 2>&1 || status=$?
    summaries=$(grep -c -E '^=+ (ERROR|RACECHECK) SUMMARY: ' "$log")
    dirty=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY: ' "$log" | grep -cvE 'SUMMARY: 0 (errors|hazards)')
    if [[ $dirty -gt 0 || $status == 9 ]]; then
        grep -E -m 20 -A 6 '^=+ (Invalid|Uninit|Error: Race|Warning: Race|Barrier|Program hit|.*[Hh]azard)' "$log"
        echo "FAILED  $tool: findings; all of them in $log"
        return 1
    elif [[ $status -gt 0 && $summaries -gt 0 ]]; then
        tail -n 20 "$log"
        echo "FAILED  $tool: nothing found, but the program ended with $status; see $log"
        return 1
    elif [[ $summaries == 0 ]]; then
        tail -n 5 "$log"
        echo "NOTHING $tool: the program used no GPU, so nothing was checked; see $log"
        return 3
    fi
    echo "ok      $tool: no finding in $summaries processes, $((SECONDS - start)) s"
}

sanitizer=$(find_sanitizer)
[[ -n $sanitizer ]] || { echo "sanitize_gpu.sh: no compute-sanitizer, and its package could not be fetched" >&2; exit 3; }
worst=0
for tool in ${FACTS_TOOLS:-memcheck racecheck initcheck synccheck}; do
    check "$tool" "$@" || { status=$?; [[ $worst == 1 ]] || worst=$status; }
done
exit $worst
