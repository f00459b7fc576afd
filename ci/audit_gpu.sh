#!/usr/bin/env bash
# The rules of cases/claims whose refusals cuDNN does not share, with numbers: every engine offered runs what the rule refuses.
# usage: ci/audit_gpu.sh BIN VERSIONS OUT
#   BIN       a build's bin/ folder with facts and facts-worker
#   VERSIONS  as for --cudnn: 9.14.0,9.19.0,9.28.0
#   OUT       a folder: decided.json (what a described device says, and so which rules are run), audit.jsonl (the record), audit.md (the answer)
# DESCRIBED=h100-sxm (default) is the description of the GPU; DEVICE=0 the GPU; RULES='fe/H03 te/16-window' runs these instead.
# JOBS=4 (default): some cases need gigabytes. The record can be judged elsewhere: facts audit --from OUT/audit.jsonl.
# Exit: that of facts audit; 1 says that some rule is too strict or too loose.
set -uo pipefail
[[ $# -eq 3 ]] || { sed -n '3,9s/^# //p' "$0" >&2; exit 2; }
bin=$(realpath "$1") versions=$2 out=$3
export FACTS_HOME=${FACTS_HOME:-$(realpath "$(dirname "$0")/..")}
mkdir -p "$out" || exit 2
"$bin/facts" audit --json --cudnn "$versions" --device "${DESCRIBED:-h100-sxm}" -o "$out/decided.jsonl" --overwrite >"$out/decided.json" 2>"$out/decided.err"
status=$?
[[ $status -le 1 ]] || { cat "$out/decided.err" >&2; exit $status; }
read -ra rules <<<"${RULES:-$(grep '"verdict":"accepted' "$out/decided.json" | grep -o '"rule":"[^"]*"' | cut -d'"' -f4 | sort -u | tr '\n' ' ')}"
[[ ${#rules[@]} -gt 0 ]] || { echo "no rule refuses what ${DESCRIBED:-h100-sxm} accepts"; exit 0; }
echo "${#rules[@]} rules refuse what is accepted: ${rules[*]}"
"$bin/facts" audit "${rules[@]}" --markdown --cudnn "$versions" --device "${DEVICE:-0}" --jobs "${JOBS:-4}" -o "$out/audit.jsonl" --overwrite >"$out/audit.md"
status=$?
sed -n '1,5p' "$out/audit.md"
echo "the answer: $out/audit.md, the record: $out/audit.jsonl"
exit $status
