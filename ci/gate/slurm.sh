#!/usr/bin/env bash
# A gate over many nodes: an array job asks a part of the suite on each, and a last job joins the parts and compares.
#
#   ci/gate/slurm.sh BASELINE CANDIDATE [CASES]       say with  DEVICE=0  what runs (default: described GPUs), with  SHARDS=16  in how many
#                                                     parts, with  OUT=DIR  where (on a file system that the nodes share), with
#                                                     SBATCH_*  (sbatch's own variables) where the jobs may run
#
# Waits for the answer, prints it, and ends with the gate's exit code.
set -euo pipefail
baseline=${1:?BASELINE} candidate=${2:?CANDIDATE} cases=${3:-smoke}
shards=${SHARDS:-4} device=${DEVICE:-h100-sxm,sm100-spec} out=$(realpath -m "${OUT:-./facts-gate}")
facts=${FACTS:-$(dirname "$(realpath "$0")")/../../facts}
what=decide
[[ ! $device =~ ^[0-9,]+$ ]] || what=run

mkdir -p "$out"
"$facts" cudnn install "$baseline,$candidate"
part='"$1" "$2" "$3" --cudnn "$4" --device "$5" --with "guards=off policy=cudnn" --shard "$SLURM_ARRAY_TASK_ID/$6" -o "$7/part-$SLURM_ARRAY_TASK_ID.jsonl" --resume'
last='"$1" merge -o "$5/gate.jsonl" --overwrite "$5"/part-*.jsonl; merged=$?
[ "$merged" -eq 0 ] || [ "$merged" -eq 4 ] || exit "$merged"
"$1" gate "$5/gate.jsonl" --baseline "$2" --candidate "$3" --junit "$5/gate.xml" >"$5/gate.txt"; status=$?
echo "$status" >"$5/status"; exit "$status"'

# A part that found something, or could not ask something, has still answered: the last job runs whatever the parts came to.
array=$(sbatch --parsable --job-name facts-part --array "1-$shards" --output "$out/part-%a.log" \
    <(printf '#!/bin/sh\n%s\n' "$part") "$facts" "$what" "$cases" "$baseline,$candidate" "$device" "$shards" "$out")
rm -f "$out/status"
sbatch --parsable --wait --job-name facts-gate --dependency "afterany:$array" --output "$out/gate.log" \
    <(printf '#!/bin/sh\n%s\n' "$last") "$facts" "$baseline" "$candidate" - "$out" >/dev/null || true
cat "$out/gate.txt"
exit "$(cat "$out/status")"
