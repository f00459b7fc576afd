#!/usr/bin/env bash
# A gate over many nodes: an array job asks a part of the suite on each, and a last job joins the parts and compares (shard.sh).
#
# usage: ci/gate/slurm.sh BASELINE CANDIDATE [CASES]     CASES: a suite, a file or a case; smoke unless given
#   DEVICE    as for --device; described GPUs unless set (environment)
#   SHARDS    number of parts (4)
#   OUT       a folder that the nodes share (./facts-gate)
#   FACTS     the program (the front door of this checkout)
#   SBATCH_*  sbatch's own variables: where the jobs may run
#
# Waits for the answer, prints it, and ends with the gate's exit code. The same command asks what is missing again.
set -euo pipefail
[[ $# -eq 2 || $# -eq 3 ]] || { sed -n '4s/^# //p' "$0" >&2; exit 2; }
here=$(dirname "$(realpath "$0")")
shards=${SHARDS:-4} out=$(realpath -m "${OUT:-./facts-gate}")
facts=${FACTS:-$here/../../facts}
given=("BASELINE=$1" "CANDIDATE=$2" "SUITE=${3:-smoke}" "DEVICE=${DEVICE:-h100-sxm,sm100-spec}" "SHARDS=$shards" "OUT=$out" "FACTS=$facts")

mkdir -p "$out"
"$facts" cudnn install "$1,$2"
rm -f "$out/status" "$out/gate.txt"
# A part that found something, or could not ask something, has still answered: the last job runs whatever the parts came to.
# shellcheck disable=SC2016 # for the shell of the node
array=$(sbatch --parsable --job-name facts-part --array "1-$shards" --output "$out/part-%a.log" \
    <(printf '#!/bin/sh\nexec env "$@" "$SLURM_ARRAY_TASK_ID"\n') "${given[@]}" sh "$here/shard.sh" part)
sbatch --parsable --wait --job-name facts-gate --dependency "afterany:$array" --output "$out/gate.log" \
    <(printf '#!/bin/sh\nexec env "$@"\n') "${given[@]}" sh "$here/shard.sh" join >/dev/null || true
grep '^facts merge: ' "$out/gate.log" >&2 || true # what is missing
[[ ! -f $out/gate.txt ]] || cat "$out/gate.txt"
exit "$(cat "$out/status")"
