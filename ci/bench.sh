#!/usr/bin/env bash
# bench.sh [BUILD [DEVICE]]: how fast are decisions, and what do they cost? Rates depend on the machine; the ratios, taken within one run, do
# not. Says what the README says of speed. Needs no GPU; the default is cuDNN 9.20.0 as h100-sxm.
#   bare     cuDNN's heuristics alone, one process: descriptor, finalize, fetch; graphs built outside the clock
#   decide   fattn_decide() over the same problems, same process
#   facts    `facts decide core` with two workers, from its start to the last row: start of the workers, JSON, record, classes of refusals
#
# Then the library's own benchmarks (lib/bench): on the host the cost of a call before its launch, and the cpu backend. With a GPU they also time the launch
# and the math backend. FACTS_BENCH_TORCH names a Python that has PyTorch: the cpu backend is then timed beside it.
set -euo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
name=${1:-9.20.0-jit-cu13} device=${2:-h100-sxm}
bin=$home/build/release/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$home/facts" setup
cmake --build "$home/build/release" --target benches >/dev/null
IFS=$'\t' read -r _ dir nvrtc < <("$home/facts" cudnn install "$name")

seconds() { date +%s.%N; }
# rate COUNT FROM TO, ratio A B
rate() { awk -v n="$1" -v a="$2" -v b="$3" 'BEGIN { printf "%.0f", n / (b - a) }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }
field() { grep -o "\"$1\":[0-9.]*" "$work/bare.json" | cut -d: -f2; }

"$home/facts" list core >"$work/cases"
"$bin/bench_decide" "$dir" "${nvrtc:--}" "$bin/nulldriver/libcuda.so.1" "$home/lib/devices/$device.json" <"$work/cases" >"$work/bare.json"

# The peak of a worker while it serves, read from outside: what it maps at its end is not what it needs.
watch_workers() {
    local of=$1 child peak=0 kib
    while kill -0 "$of" 2>/dev/null; do
        for child in $(cat "/proc/$of/task/$of/children" 2>/dev/null); do
            kib=$(awk '/^Name:/ { worker = $2 ~ /^facts-worker/ } /^VmHWM:/ && worker { print $2 }' "/proc/$child/status" 2>/dev/null) || continue
            [[ -z $kib || $kib -le $peak ]] || peak=$kib
        done
        sleep 0.05
    done
    echo "$peak" >"$work/peak"
}

export FACTS_HOME=$home
started=$(seconds)
"$bin/facts" decide core --cudnn "$name" --device "$device" -j 2 -o "$work/core.jsonl" --overwrite >/dev/null 2>"$work/decide.err" &
facts=$!
watch_workers "$facts" &
watcher=$!
status=0
wait "$facts" || status=$?
ended=$(seconds)
wait "$watcher"
[[ $status -le 1 ]] || { cat "$work/decide.err" >&2; exit 3; } # 1: findings are no matter here
cases=$(grep -c '' "$work/cases")
answered=$(grep -o '^{"case":"[^"]*"' "$work/core.jsonl" | sort -u | grep -c '')
[[ $answered == "$cases" ]] || { echo "bench.sh: $answered of $cases cases were answered" >&2; exit 3; }

"$home/facts" matrix -o "$work/matrix" >/dev/null 2>&1 || true # the first: installs what is missing
matrix=$(seconds)
"$home/facts" matrix -o "$work/matrix" >/dev/null 2>&1 || true
matrix=$(awk -v a="$matrix" -v b="$(seconds)" 'BEGIN { printf "%.1f", b - a }')

bare=$(field bare_per_s) decide=$(field decide_per_s) whole=$(rate "$cases" "$started" "$ended")
cat <<END
$name as $device: $(field cases) of $cases cases of suite core, $(nproc) cores
  cuDNN's heuristics, bare            $bare decisions/s
  fattn_decide                        $decide decisions/s, $(ratio "$decide" "$bare") of bare
  facts decide core, 2 workers        $whole decisions/s ($cases cases in $(awk -v a="$started" -v b="$ended" 'BEGIN { printf "%.1f", b - a }') s), $(ratio "$whole" "$bare") of bare in one process
  a worker's peak, decisions only     $(($(cat "$work/peak") / 1024)) MiB resident
  facts matrix, second run            $matrix s
END

# bench TITLE PROGRAM ARGUMENT...: what it prints, or why not; one that fails does not keep the others from being shown.
bench() {
    printf '\n%s\n' "$1"; shift
    "$bin/$1" "${@:2}" | sed 's/^/  /' || echo "  $1 ended with ${PIPESTATUS[0]}"
}
export CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY
with_nvrtc=()
[[ -z $nvrtc || $nvrtc == - ]] || with_nvrtc=("$nvrtc") # from 9.21 cuDNN has its own
if [[ -e /dev/nvidiactl ]]; then
    bench "a call before its launch, addresses of the GPU (bench_calls, ns)" bench_calls "$dir" "${with_nvrtc[@]}"
    bench "a call beside a bare cudnnBackendExecute (bench_launch, us)" bench_launch "$dir" "${with_nvrtc[@]}"
    bench "the math backend (bench_math)" bench_math "$dir" "${with_nvrtc[@]}"
else
    bench "a call before its launch, addresses of the host (bench_calls, ns)" bench_calls
fi
bench "the cpu backend (bench_cpu)" bench_cpu "$(nproc)" ${FACTS_BENCH_TORCH:+"$FACTS_BENCH_TORCH"}
