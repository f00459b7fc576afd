#!/usr/bin/env bash
# What a GPU says of times: a build against itself, two builds over suite bench, and PyTorch's attention with the same cuDNN beside ours.
# usage: ci/bench_gpu.sh FACTS BASELINE CANDIDATE OUT [STEP...]
#   FACTS      the front door or a bundle's facts
#   BASELINE, CANDIDATE   as for --cudnn: 9.19.0, /folder/with/libcudnn.so.9; of the atlas BASELINE,CANDIDATE,ATLAS
#   STEP       plans noise gate bench torch atlas; without any, all but atlas
#   WHERE      only these cases of the suite (environment): pass=bwd
#   PLANS      folder of plans (environment; OUT/plans unless set)
#   ATLAS      more builds for the atlas (environment): 9.12.0,9.14.0
#   BENCH_DEVICE, TORCH_PYTHON   bench_device of lib/bench, and a Python that has PyTorch (environment; of the bundle or the build, python3)
#   FACTS_CUBLAS   libcublas that measures the card's peak (environment; looked for where PyTorch and the CUDA toolkit have it)
# Exit: the worst of its steps; a step that finds something slower exits 1. Suite bench takes one engine of each case for `noise` and `gate`, all of them
# for `bench` and `atlas`.
set -uo pipefail
facts=$1 baseline=$2 candidate=$3 out=$4
shift 4
[[ $# -gt 0 ]] || set -- plans noise gate bench torch
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${TORCH_PYTHON:-python3}
worst=0
mkdir -p "$out"
plans=${PLANS:-$out/plans}
where=(${WHERE:+--where "$WHERE"})

# The first libcublas that is there: PyTorch's, the toolkit's.
find_cublas() {
    "$python" - <<'END' 2>/dev/null
import glob, importlib.util, os
roots = [os.path.dirname(os.path.dirname(p)) for p in [getattr(importlib.util.find_spec("torch"), "origin", "")] if p]
forms = [r + "/nvidia/*/lib/libcublas.so.1[23]" for r in roots] + ["/usr/local/cuda*/lib64/libcublas.so.1[23]", "/usr/local/cuda*/lib/libcublas.so.1[23]",
         "/usr/lib/x86_64-linux-gnu/libcublas.so.1[23]"]
print(next((p for f in forms for p in sorted(glob.glob(f))), ""))
END
}

# PyTorch's own cuDNN: the folder of what is mapped once it was asked for its version.
torch_cudnn() {
    "$python" - <<'END' 2>/dev/null
import os, re, torch
torch.backends.cudnn.version()
torch.nn.functional.conv2d(torch.zeros(1, 1, 8, 8, device="cuda"), torch.zeros(1, 1, 3, 3, device="cuda"))
print(next((os.path.dirname(m) for m in re.findall(r"(/\S*/libcudnn_graph\.so\S*)", open("/proc/self/maps").read())), ""))
END
}

step() {
    local name=$1 start=$SECONDS status=0; shift
    "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    echo "== $name: exit $status in $((SECONDS - start)) s"
    [[ $status -le $worst ]] || worst=$status
}

beside_torch() {
    local folder program=${BENCH_DEVICE:-$here/../tests/bin/bench_device}
    [[ -x $program ]] || program=$here/../build/release/bin/bench_device
    folder=$(torch_cudnn)
    [[ -n $folder ]] || { echo "no PyTorch with cuDNN here ($python)" >&2; return 3; }
    "$python" "$here/bench_torch.py" --same "$program" "$folder"
}

compile_plans() {
    local with
    for with in engine=all "guards=off policy=cudnn"; do # of `bench`, of `gate`
        "$facts" compile bench "${where[@]}" --cudnn "$baseline,$candidate${ATLAS:+,$ATLAS}" --device 0 --with "$with" --plan-dir "$plans" || [[ $? == 1 ]] || return
    done
}

[[ -n ${FACTS_CUBLAS:-} ]] || FACTS_CUBLAS=$(find_cublas)
[[ -z $FACTS_CUBLAS ]] || export FACTS_CUBLAS
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv >"$out/card.txt" 2>&1 || true
for name; do
    case $name in
        plans) step plans compile_plans ;;
        noise) step noise "$facts" bench "${where[@]}" --cudnn "$baseline" --device 0 --twice --with "guards=off policy=cudnn" --plan-dir "$plans" -o "$out/noise.jsonl" ;;
        gate) step gate "$facts" gate --bench "${where[@]}" --baseline "$baseline" --candidate "$candidate" --device 0 --plan-dir "$plans" -o "$out/gate.jsonl" ;;
        bench) step bench "$facts" bench "${where[@]}" --cudnn "$baseline,$candidate" --device 0 --plan-dir "$plans" -o "$out/bench.jsonl" ;;
        atlas) step atlas "$facts" bench "${where[@]}" --cudnn "$baseline,$candidate${ATLAS:+,$ATLAS}" --device 0 --plan-dir "$plans" -o "$out/atlas.jsonl" ;;
        torch) step torch beside_torch ;;
        *) echo "bench_gpu.sh: no step $name" >&2; exit 2 ;;
    esac
done
exit $worst
