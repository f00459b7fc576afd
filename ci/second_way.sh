#!/usr/bin/env bash
# Shows known failures without FACTS: as a C program on cuDNN's backend API with its own reference, and as a Python script on cudnn-frontend
# with PyTorch in float64. Beside each runs a control that must pass. The table: shows, does not show, refused, control fails.
# usage: ci/second_way.sh FACTS VERSION OUT [OPTION...] [ID...]
#        ci/second_way.sh --package DIR OUT...    a folder for each of the ten findings of docs/upstream.md, to send to NVIDIA
#        ci/second_way.sh --checked RECORD...     write the records into `checked:` of cases/known and into docs/upstream.md
#   FACTS      the front door, or a bundle's facts
#   VERSION    a cuDNN that `facts cudnn list` shows: 9.28.1
#   OUT        a folder for the programs, their logs and the record OUT/VERSION.jsonl
#   ID         only these files of cases/known; default: every documented failure, 20 more, and the table of fp8-values-with-a-mean
#   --device D   default 0; a described device (h200-sxm): everything is made and the C programs are compiled, nothing runs
#   --jobs N     cases at once (8)
# Failures that never end are left out: one of them can block the GPU for every program.
# Needs gcc, make, a CUDA toolkit (CUDA=/usr/local/cuda) and, for the scripts, torch, numpy and nvidia-cudnn-frontend of PYTHON (python3).
# Each program may take PROGRAM_SECONDS (60). Exit: 0 every claim for this version is shown, 1 one is not, 2 bad input, 3 the environment.
set -uo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
export PYTHON=${PYTHON:-python3} CUDA=${CUDA:-/usr/local/cuda} PROGRAM_SECONDS=${PROGRAM_SECONDS:-60}
# 20 more: calls outside of the documentation that cuDNN accepts and computes wrongly, faults, and plans that do not build.
export MORE="bool-mask-wrong bwd-dbias-with-score-mod bwd-deterministic-wide-heads-overrun bwd-nan-negative-lse-d160-128
    bwd-output-of-the-other-type decode-ignores-query-length decode-paged-sink dropout-8-bit expanded-max-sum-exp-unwritten
    f32-general-forward fp8-backward-packed fp8-bias fp8-offered-not-built fp8-score-modification gradients-of-the-other-type
    large-grids-not-launched max-sum-exp-padding swa-noncausal-skv-gt-1024-9140 unified-f32-illegal-access wide-output"
python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$home/reports${PYTHONPATH:+:$PYTHONPATH} "$PYTHON" "$home/ci/second_way.py" "$@"; }

# Runs one program in its folder. Prints NAME<tab>WORD<tab>its line. WORD: PASS, FAIL, refused, stopped (its time is over), error.
run_program() {
    local name=$1 log=$1.log status=0 word line
    shift
    # the outer shell alone would report a program that was killed
    (LD_LIBRARY_PATH=$LIBRARIES:${LD_LIBRARY_PATH-} timeout -s KILL "$PROGRAM_SECONDS" "$@" >"$log" 2>&1; exit $?) 2>/dev/null || status=$?
    line=$(grep -m 1 FAIL "$log" || grep -m 1 refuses "$log" || tail -n 1 "$log")
    [[ $line != *"cuDNN offers no engine"* ]] || status=3
    case $status in
    0) word=PASS ;;
    1) grep -q FAIL "$log" && word=FAIL || word=error ;;
    3) word=refused ;;
    137) word=stopped ;;
    *) word=error; ((status < 128)) || { word=FAIL line="signal $(kill -l "$status")"; } ;;
    esac
    if [[ $name == python && $word != refused && $word != error ]] && ! grep -q "^cuDNN $NUMBER on " "$log"; then
        word=error line="another cuDNN than $NUMBER was loaded, or none: $line"
    fi
    printf '%s\t%s\t%s\n' "$name" "$word" "${line//$'\t'/ }"
}

# Makes, builds and runs the programs of one case: lines for FACTS, the program in C and the script.
one_case() {
    local folder=$1 case=$2 verdict program=repro
    [[ $DEVICE =~ ^[0-9]+$ ]] || program=repro.o # what does not run is not linked
    mkdir -p "$folder" && cd "$folder" || exit 3
    timeout -s KILL 200 "$FACTS" repro "$case" --cudnn "$BUILD" --device "$DEVICE" --timeout 40 --standalone . --frontend >facts.log 2>&1
    verdict=$(sed -n 's/^- verdict: \([a-z_]*\).*/\1/p; s/^- cuDNN ended the process.*/crash/p; s/^- cuDNN did not return.*/hang/p' README.md 2>/dev/null | head -n 1)
    printf 'facts\t%s\t%s\n' "${verdict:-none}" "$(grep -m 1 -e --standalone facts.log || tail -n 1 facts.log)"
    if [[ -e repro.c ]]; then
        if ! make -s "$program" CUDNN="$CUDNN" CUDA="$CUDA" >make.log 2>&1; then
            printf 'c\terror\tdoes not compile: %s\n' "$(grep -m 1 error make.log)"
        elif [[ ! $DEVICE =~ ^[0-9]+$ ]]; then
            printf 'c\tcompiles\t\n'
        else
            OMP_NUM_THREADS=4 run_program c env "LD_LIBRARY_PATH=$LIBRARIES:$CUDA/lib64:${LD_LIBRARY_PATH-}" ./repro
        fi
    fi
    [[ -e repro.py ]] || return 0
    if [[ $DEVICE =~ ^[0-9]+$ ]]; then
        run_program python "$PYTHON" -B repro.py
    else
        printf 'python\tmade\t\n'
    fi
}

[[ ${1-} != --case ]] || { one_case "$2" "$3"; exit 0; }
[[ ${1-} != --package && ${1-} != --checked ]] || { python "$@"; exit; }
[[ $# -ge 3 && $1 != -* ]] || { sed -n '2,17s/^# \?//p' "$0" >&2; exit 2; }
FACTS=$(realpath "$1") version=$2 out=$3 DEVICE=0 JOBS=8 ids=()
shift 3
while (($#)); do
    case $1 in
    --device) DEVICE=${2-}; shift ;;
    --jobs) JOBS=${2-}; shift ;;
    -*) echo "second_way: $1: no such option" >&2; exit 2 ;;
    *) ids+=("$1") ;;
    esac
    shift || break
done
# NAME, version, which CUDA, what kind, from where, the folder of the libraries, "(NVRTC: FILE)"
found=$("$FACTS" cudnn list | grep -E "^${version//./\\.}(-| )" | head -n 1)
BUILD=${found%% *}
LIBRARIES=$(grep -o ' /[^ ]*' <<<"$found" | head -n 1 | tr -d ' ')
[[ -e $LIBRARIES/libcudnn.so.9 ]] || { echo "second_way: cuDNN $version is not here: $FACTS cudnn list" >&2; exit 3; }
CUDNN=$(dirname -- "$(realpath -- "$LIBRARIES")")
nvrtc=$(sed -n 's/.*(NVRTC: \(\/[^)]*\)).*/\1/p' <<<"$found")
[[ -z $nvrtc ]] || LD_LIBRARY_PATH=$(dirname -- "$nvrtc"):${LD_LIBRARY_PATH-}
[[ -e $LIBRARIES/libcudnn_ops.so.9 ]] || export CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY
IFS=. read -r major minor patch <<<"${version%%-*}"
NUMBER=$((major * 10000 + minor * 100 + patch))
version_of() { "$PYTHON" -c "import importlib.metadata as m; print(m.version('$1'))" 2>/dev/null; }
of_gpu() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1; }
MACHINE=$(printf '{"cudnn": "%s", "build": "%s", "date": "%s", "gpu": "%s", "driver": "%s", "frontend": "%s", "torch": "%s", "gcc": "%s"}' \
    "${version%%-*}" "$BUILD" "$(date +%F)" "$(of_gpu name)" "$(of_gpu driver_version)" "$(version_of nvidia-cudnn-frontend)" "$(version_of torch)" "$(gcc -dumpfullversion)")
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH-} FACTS DEVICE JOBS BUILD LIBRARIES CUDNN NUMBER MACHINE
mkdir -p "$out" || exit 3
python --run "${version%%-*}" "$out" "${ids[@]}"
