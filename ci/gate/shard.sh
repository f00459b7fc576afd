#!/bin/sh
# One gate over many machines: what every machine runs, and what joins their parts. Slurm (slurm.sh) and Kubernetes (kubernetes.yml) start it.
#
#   shard.sh part N   asks part N of SHARDS. Started again, it goes on where it stopped.
#   shard.sh join     joins the parts, names the missing ones, and ends with the gate's exit code
#
# Environment: BASELINE, CANDIDATE, SUITE, DEVICE, SHARDS, OUT (a folder that the machines share, one for each gate), FACTS (the program), WAIT (seconds
# that join waits for missing parts).
set -u
facts=${FACTS:-facts}

ask_part() {
    case $DEVICE in
    all) what=run ;;
    *[!0-9,]*) what=decide ;;
    *) what=run ;;
    esac
    "$facts" cudnn install "$BASELINE,$CANDIDATE" >&2 || return
    "$facts" "$what" --cudnn "$BASELINE,$CANDIDATE" --device "$DEVICE" --guards off --with policy=cudnn \
        --shard "$1/$SHARDS" -o "$OUT/part-$1.jsonl" --resume -- "$SUITE"
    status=$?
    case $status in
    1 | 5) status=0 ;; # a finding is an answer, which the gate judges; a part may hold no case
    esac
    return "$status"
}

join_parts() {
    end=$(($(date +%s) + ${WAIT:-0}))
    while "$facts" merge -o "$OUT/gate.jsonl" --overwrite "$OUT"/part-*.jsonl; merged=$?; [ "$merged" -ne 0 ] && [ "$(date +%s)" -lt "$end" ]; do
        sleep 5
    done
    [ "$merged" -eq 0 ] || [ "$merged" -eq 4 ] || return "$merged"
    "$facts" gate "$OUT/gate.jsonl" --baseline "$BASELINE" --candidate "$CANDIDATE" --junit "$OUT/gate.xml" >"$OUT/gate.txt"
    status=$?
    cat "$OUT/gate.txt"
    return "$status"
}

[ -n "${OUT:-}" ] && [ -n "${BASELINE:-}" ] && [ -n "${CANDIDATE:-}" ] || set --
case ${1-}$# in
part2) mkdir -p "$OUT" && ask_part "$2" ;;
join1)
    mkdir -p "$OUT"
    join_parts
    status=$?
    echo "$status" >"$OUT/status"
    exit "$status"
    ;;
*) echo "usage: BASELINE=V CANDIDATE=V SUITE=S DEVICE=D SHARDS=N OUT=DIR shard.sh part N | join" >&2; exit 2 ;;
esac
