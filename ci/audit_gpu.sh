#!/usr/bin/env bash
# The rules of cases/claims whose refusals cuDNN does not share, with numbers: every engine offered runs what the rule refuses.
# usage: ci/audit_gpu.sh BIN VERSIONS OUT
#   BIN       a build's bin/ folder with facts and facts-worker
#   VERSIONS  as for --cudnn: 9.14.0,9.19.0,9.28.0
#   OUT       a folder: decided.json (what a described device says, and so which rules are run), audit.jsonl (the record), audit.md (the answer)
# DESCRIBED=h100-sxm (default) is the description of the GPU; DEVICE=0 the GPU; RULES='fe/H03 te/16-window' runs these instead.
# JOBS=N workers; without it all cores but two, as far as the GPU has 4 GiB of free memory for each, and 12 GiB for each case of very many heads or batch
# entries: these run first, by themselves. The record can be judged elsewhere: facts audit --from OUT/audit.jsonl; several --from make one.
# Exit: that of facts audit; 1 says that some rule is too strict or too loose.
set -uo pipefail
[[ $# -eq 3 ]] || { sed -n '3,10s/^# //p' "$0" >&2; exit 2; }
bin=$(realpath "$1") versions=$2 out=$3 device=${DEVICE:-0}
export FACTS_HOME=${FACTS_HOME:-$(realpath "$(dirname "$0")/..")}
mkdir -p "$out" || exit 2

jobs_for() { # GIB of one case
    local free jobs=$(($(nproc) - 2))
    free=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits -i "$device" 2>/dev/null) || free=
    [[ $free =~ ^[0-9]+$ ]] || free=16384
    [[ $jobs -le $((free / 1024 / $1)) ]] || jobs=$((free / 1024 / $1))
    echo "${JOBS:-$((jobs > 1 ? jobs : 1))}"
}

part() { # NAME WHERE GIB: a record of its own; nothing selected is fine
    local name=$1 where=$2 jobs status=0
    jobs=$(jobs_for "$3")
    "$bin/facts" audit "${rules[@]}" --where "$where" --cudnn "$versions" --device "$device" --jobs "$jobs" -o "$out/$name.jsonl" --overwrite \
        >"$out/$name.txt" || status=$?
    echo "$name: exit $status with $jobs workers"
    [[ $status -ne 2 ]]
}

"$bin/facts" audit --json --cudnn "$versions" --device "${DESCRIBED:-h100-sxm}" -o "$out/decided.jsonl" --overwrite >"$out/decided.json" 2>"$out/decided.err"
status=$?
[[ $status -le 1 ]] || { cat "$out/decided.err" >&2; exit $status; }
read -ra rules <<<"${RULES:-$(grep '"verdict":"accepted' "$out/decided.json" | grep -o '"rule":"[^"]*"' | cut -d'"' -f4 | sort -u | tr '\n' ' ')}"
[[ ${#rules[@]} -gt 0 ]] || { echo "no rule refuses what ${DESCRIBED:-h100-sxm} accepts"; exit 0; }
echo "${#rules[@]} rules refuse what is accepted: ${rules[*]}"
many='b>=60000 | h.q>=60000'
rm -f "$out"/many.jsonl "$out"/few.jsonl
part many "$many" 12 && part few "!($many)" 4 || exit 2
cat "$out"/{many,few}.jsonl >"$out/audit.jsonl" 2>/dev/null
rm -f "$out"/{many,few}.{jsonl,txt}
"$bin/facts" audit "${rules[@]}" --markdown --from "$out/audit.jsonl" >"$out/audit.md"
status=$?
sed -n '1,5p' "$out/audit.md"
echo "the answer: $out/audit.md, the record: $out/audit.jsonl"
exit $status
