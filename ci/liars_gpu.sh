#!/usr/bin/env bash
# The liars that need a GPU: each has to turn its cases red there, and the honest worker has to be green on the same cases.
# usage: ci/liars_gpu.sh BIN BUILD OUT
#   BIN    a build's bin/ folder with facts, facts-worker and facts-worker-liars (FACTS_TESTS=ON)
#   BUILD  as for --cudnn: one build. DEVICE=cpu in the environment tries the script itself, where the cpu can; JOBS: liars at a time (8)
# Exit: 0 when every liar was caught and the honest worker was not; 1 otherwise; 2 wrong usage.
set -uo pipefail
[[ $# -eq 3 ]] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
bin=$(realpath "$1") build=$2 out=$3
export FACTS_HOME=${FACTS_HOME:-$(realpath "$(dirname "$0")/..")}
small='dtype=bf16 b=2 h=4 s=256 d=64'
mkdir -p "$out" || exit 2
out=$(realpath "$out")
jobs=${JOBS:-8}
rm -f "$out"/*.line
trap 'kill $(jobs -p) 2>/dev/null' INT TERM

# What one liar did: a line, printed when all are done, and whether it is bad.
line() { # LIAR STATE TEXT
    printf '%-30s %-14s %s\n' "$1" "$2" "$3" >"$out/$1.line"
    [[ $2 == caught ]]
}

started=()
start() { # COMMAND LIAR ...
    started+=("$2")
    while [[ $(jobs -pr | wc -l) -ge $jobs ]]; do wait -n; done
    "$@" &
}

# A worker takes its lie as an argument, and facts starts it with none.
wrapper() {
    printf '#!/bin/sh\nexec "%s/facts-worker-liars" --liar %s\n' "$bin" "$1" >"$out/worker-$1"
    chmod 700 "$out/worker-$1"
    printf '%s' "$out/worker-$1"
}

where=(--device 0 --cudnn "$build")
[[ -z ${DEVICE:-} ]] || where[1]=$DEVICE
[[ ${DEVICE:-} != cpu ]] || where=(--device cpu) # has no cuDNN

run() { # RECORD WORKER CASE...
    local record=$1 worker=$2; shift 2
    FACTS_WORKER=$worker "$bin/facts" run "$@" "${where[@]}" -j 1 --overwrite -o "$record" >"$record.txt" 2>"$record.err"
}

verdicts() { grep -o '"verdict":"[a-z_]*"' "$1" | cut -d'"' -f4 | sort | uniq -c | tr -s ' \n' ' '; }

try() { # LIAR CASE...
    local liar=$1 state=caught; shift
    run "$out/honest-$liar.jsonl" "$bin/facts-worker" "$@" || state='HONEST IS RED'
    if run "$out/$liar.jsonl" "$(wrapper "$liar")" "$@"; then state='NOT CAUGHT'; fi
    line "$liar" "$state" "honest:$(verdicts "$out/honest-$liar.jsonl") lying:$(verdicts "$out/$liar.jsonl")"
}

start try capture-stale "pass=fwd,bwd $small exec=graph_update deterministic=1"
start try probe-batch 'pass=fwd dtype=bf16 b=32 h=2 s=1/1024 d=128'
start try probe-o-format 'pass=fwd dtype=bf16 b=2 h=4 s=512 d=128 stride=gap:o.s.4'
start try policy-leak "pass=fwd $small policy=math,cudnn"
start try layout-zero-as-one "pass=fwd $small stride=broadcast:q.s"

# A wrong answer between a right engine and the comparison: each must end in its own verdict.
shape='dtype=bf16 b=2 h=4/2 s=192/256 d=64' small='dtype=bf16 b=3 h=4/2 s=64/96 d=64'
interpose() { # WORD VERDICT CASE...
    local word=$1 due=$2 state=caught found; shift 2
    run "$out/$word.jsonl" "$(wrapper "$word")" "$@" || true
    found=$(verdicts "$out/$word.jsonl")
    [[ $found == " $# $due " ]] || state='NOT CAUGHT'
    line "$word" "$state" "due:$due found:$found"
}
while IFS=$'\t' read -r word verdict _; do
    cases=("pass=fwd $shape want=stats" "pass=bwd $shape")
    case $word in
        answer-stats-head) cases=("pass=fwd $shape want=stats") ;;
        answer-gap-byte) cases=("pass=fwd $shape stride=gap:o.s.8" "pass=bwd $shape stride=gap:dq.s.8") ;;
        input-sink-dropped) cases=("pass=fwd $small softmax=sink want=stats" "pass=bwd $small softmax=sink dsink=1") ;;
        input-page-next) cases=("pass=fwd $small padding=random paged=16" "pass=fwd $small padding=random paged=v:32") ;;
        input-offsets-late) cases=("pass=fwd $small layout=thd padding=random slots=+3" "pass=bwd $small layout=thd padding=random slots=+3 offsets=i64") ;;
        input-seed-other) cases=("pass=fwd $small dropout=0.2" "pass=bwd $small dropout=0.2") ;;
        replay-seed-captured) cases=("pass=fwd $small dropout=0.2 exec=graph" "pass=bwd $small dropout=0.2 exec=graph") ;;
        replay-lengths-captured) cases=("pass=fwd $small padding=random exec=graph" "pass=bwd $small layout=thd padding=random exec=graph_update") ;;
        replay-table-captured) cases=("pass=fwd $small padding=random paged=16 exec=graph" "pass=fwd $small padding=random paged=16 exec=graph_update") ;;
        replay-scales-captured) cases=('pass=fwd dtype=e4m3 b=2 h=4 s=256 d=128 scales=odd exec=graph' "pass=fwd $small scale=tensor exec=graph") ;;
        input-factor-next) # block-scaled types are sm_10x's
            [[ ${DEVICE:-0} == cpu ]] || continue
            cases=('pass=fwd dtype=mxe4m3 b=2 h=2 s=128 d=64 want=stats')
            ;;
        answer-amax-late) cases=('pass=fwd dtype=e4m3 b=2 h=2 s=128 d=64 scales=odd') ;;
    esac
    start interpose "$word" "$verdict" "${cases[@]}"
done < <("$bin/facts-worker-liars" --interposed)
wait
for liar in "${started[@]}"; do cat "$out/$liar.line" 2>/dev/null || echo "$liar DID NOT RUN"; done
[[ $(cat "$out"/*.line | grep -c ' caught ') == "${#started[@]}" ]]
