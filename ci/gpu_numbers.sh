#!/usr/bin/env bash
# What a GPU says of the numbers: suite core with the four standard fills on every configuration offered, the cases that calibrate the constants, probes and
# laws, and huge problems. Plans are compiled once and shared by the fills.
# usage: ci/gpu_numbers.sh FACTS BUILDS OUT [STEP...]
#   FACTS   the front door or a bundle's facts
#   BUILDS  as for --cudnn: 9.14.0,9.19.0,/folder/with/libcudnn.so.9
#   STEP    gauss needle neglse stair_up calibrate numbers big; all of them unless given
#   JOBS    workers (environment; the tool's own choice unless set); of `big` never more than 2: each takes gigabytes of the card
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

for name; do
    case $name in
        calibrate) step calibrate run calibrate -o "$out/calibrate.jsonl" ;;
        numbers) step numbers run numbers --with engine=all -o "$out/numbers.jsonl" ;;
        big) step big run big -o "$out/big.jsonl" ;;
        *) step "core-$name" run core --where fill=gauss --with "engine=all fill=$name" --plan-dir "$plans" -o "$out/core-$name.jsonl" ;;
    esac
done
exit $worst
