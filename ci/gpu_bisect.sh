#!/usr/bin/env bash
# Since when are numbers wrong, and until when? Every version here is run (facts bisect --all), for failures of which cases/known names a range of versions;
# each text says the edges, each record keeps the rows. A new edge is an observation for cases/known: facts known check RECORD.
# usage: ci/gpu_bisect.sh FACTS VERSIONS OUT [DEVICE]
#   FACTS     the front door or a bundle's facts
#   VERSIONS  as for --cudnn: 9.14..9.28; what is not installed is installed
#   DEVICE    the number of a GPU (0)
# Exit: the worst of its steps; 4: some version could not be asked, or did not repeat.
set -uo pipefail
facts=$1 versions=$2 out=$3 device=${4:-0}
worst=0
mkdir -p "$out"

edges() {
    local name=$1 case=$2 start=$SECONDS status=0; shift 2
    "$facts" bisect "$case" --all --cudnn "$versions" --device "$device" -o "$out/$name.jsonl" --resume "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    echo "== $name: exit $status in $((SECONDS - start)) s"
    grep -E '^(lost|gained|changed|no change)' "$out/$name.txt"
    [[ $status -le $worst ]] || worst=$status
}

# cases/known says: >= 9.19.0 & < 9.26.0
edges negative-lse 'pass=bwd b=1 h=2 s=192 d=64 layout=bhsd fill=neglse'
edges rising-scores 'pass=bwd dtype=f16 h=4/2 s=192 d=64 mod=relpos'
# >= 9.14.0 & < 9.27.0
edges empty-keys 'pass=fwd b=2 h=2 s=256 lens=256x2/0+256 want=stats'
# >= 9.14.0 & < 9.26.0
edges dsink-packed 'pass=bwd dtype=bf16 b=3 h=8/2 s=200 d=64 layout=thd padding=random softmax=sink dsink=1 guards=off'
# who serves it, with numbers
edges engine-of-decode 'pass=fwd b=4 h=8/2 s=1/300 d=128' --by engine
exit $worst
