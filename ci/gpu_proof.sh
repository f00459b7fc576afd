#!/usr/bin/env bash
# Makes records that need a GPU, for reports/examples/. It runs smoke, regress and evidence on every configuration that is offered. It compares decisions of the
# card with its description, and runs plans that were compiled without a GPU.
# usage: ci/gpu_proof.sh FACTS BUILDS DESCRIPTION OUT [PLAN_DIR]
#   FACTS        the front door or a bundle's facts
#   BUILDS       as for --cudnn: 9.14.0,9.19.0,/folder/with/libcudnn.so.9
#   DESCRIPTION  a name of lib/devices/ that describes GPU 0: h100-sxm
#   PLAN_DIR     plans made elsewhere by: facts compile plans --plan-dir PLAN_DIR --device DESCRIPTION --cudnn BUILDS --with engine=all
# Exit: the worst of its steps.
set -uo pipefail
facts=$1 builds=$2 description=$3 out=$4 plans=${5:-}
worst=0
mkdir -p "$out"

step() {
    local name=$1 start=$SECONDS status=0; shift
    "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    echo "== $name: exit $status in $((SECONDS - start)) s"
    [[ $status -le $worst ]] || worst=$status
}

run() { step "$1" "$facts" run "$1" --with engine=all --cudnn "$builds" --device 0 -o "$out/$1.jsonl" "${@:2}"; }

step doctor "$facts" doctor
run smoke
run regress
run evidence
step described "$facts" decide described --cudnn "$builds" --device "0,$description" -o "$out/described.jsonl"
run plans
if [[ -n $plans ]]; then
    step loaded "$facts" run plans --with engine=all --cudnn "$builds" --device 0 --trust-plans "$plans" -o "$out/loaded.jsonl"
    step bits "$facts" report --bits "$out/plans.jsonl" "$out/loaded.jsonl"
fi
card=$(grep -o '"device":"[^"]*","planned":"gpu0"' "$out/smoke.jsonl" | head -n 1 | cut -d'"' -f4)
step decisions "$facts" report --decisions "${card:-gpu0}" "$description" "$out/described.jsonl"
exit $worst
