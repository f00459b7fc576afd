#!/usr/bin/env bash
# What a GPU says of the numbers: suite core with the four standard fills on every configuration offered, the cases that calibrate the constants, probes and
# laws, and huge problems. Plans are compiled once and shared by the fills.
# usage: ci/gpu_numbers.sh FACTS BUILDS OUT [STEP...]
#   FACTS   the front door or a bundle's facts
#   BUILDS  as for --cudnn: 9.14.0,9.19.0,/folder/with/libcudnn.so.9
#   STEP    gauss needle neglse stair_up calibrate numbers big; all of them unless given
#   JOBS    workers of a GPU (environment; the tool's own choice unless set); of `big` never more than 2: each takes gigabytes of the card
#   GPUS    GPUs 0 to N-1 share suite core (environment; 1 unless set)
# Exit: the worst of its steps.
set -uo pipefail
facts=$1 builds=$2 out=$3
shift 3
[[ $# -gt 0 ]] || set -- calibrate numbers big gauss needle neglse stair_up
worst=0
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
mkdir -p "$out"
common=(--cudnn "$builds" --device 0)

step() {
    local name=$1 start=$SECONDS status=0 jobs=${JOBS:-}; shift
    [[ $name != big ]] || jobs=2
    "$facts" "$@" "${common[@]}" ${jobs:+-j "$jobs"} >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    echo "== $name: exit $status in $((SECONDS - start)) s"
    [[ $status -le $worst ]] || worst=$status
}

# A fill of suite core; each GPU takes the cases whose names' hashes fall to it, and all keep their plans in one folder.
core() {
    local fill=$1 gpus=${GPUS:-1} n status=0
    for ((n = 1; n <= gpus; n++)); do
        (worst=0; common=(--cudnn "$builds" --device $((n - 1)))
         step "core-$fill-$n" run core --where fill=gauss --with "engine=all fill=$fill" --plan-dir "$plans" --shard "$n/$gpus" -o "$out/core-$fill-$n.jsonl"
         exit $worst) &
    done
    for n in $(jobs -p); do
        wait "$n" || status=$?
        [[ $status -le $worst ]] || worst=$status
    done
}

for name; do
    case $name in
        calibrate) step calibrate run calibrate -o "$out/calibrate.jsonl" ;;
        numbers) step numbers run numbers --with engine=all -o "$out/numbers.jsonl" ;;
        big) step big run big -o "$out/big.jsonl" ;;
        *) core "$name" ;;
    esac
done
exit $worst
