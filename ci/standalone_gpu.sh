#!/usr/bin/env bash
# Makes the programs of known failures (facts repro --standalone), builds them, runs them, and prints a table: does a program without FACTS show
# what FACTS saw?
# usage: ci/standalone_gpu.sh [--frontend] FACTS VERSION OUT [LIST]
#   --frontend  Python scripts on cudnn-frontend instead of C programs; needs torch and nvidia-cudnn-frontend for python3
#   FACTS       the front door, or a bundle's facts
#   VERSION     a cuDNN that `facts cudnn list` shows: 9.20.0
#   LIST        lines "ID CASE" (default: ci/standalone.list)
# Needs gcc, make and a CUDA toolkit (CUDA=/usr/local/cuda). Each program may take PROGRAM_SECONDS (60).
# Exit: 0 every program agrees with FACTS, 1 one does not, 2 bad input, 3 the environment cannot do it.
set -uo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
form=c
[[ ${1-} != --frontend ]] || { form=frontend; shift; }
[[ $# -ge 3 ]] || { sed -n '2,10s/^# \?//p' "$0" >&2; exit 2; }
facts=$1 version=$2 out=$3 list=${4:-$home/ci/standalone.list} cuda=${CUDA:-/usr/local/cuda} seconds=${PROGRAM_SECONDS:-60}
[[ -r $list ]] || { echo "standalone_gpu: $list: cannot be read" >&2; exit 2; }
# NAME, what kind, the folder of the libraries, "(NVRTC: FILE)"
found=$("$facts" cudnn list | grep -E "^${version//./\\.}(-| )" | head -n 1)
libraries=$(grep -o ' /[^ ]*' <<<"$found" | head -n 1 | tr -d ' ')
[[ -e $libraries/libcudnn.so.9 ]] || { echo "standalone_gpu: cuDNN $version is not here: $facts cudnn list" >&2; exit 3; }
cudnn=$(dirname -- "$(realpath -- "$libraries")")
nvrtc=$(sed -n 's/.*(NVRTC: \(\/[^)]*\)).*/\1/p' <<<"$found")
[[ -z $nvrtc ]] || LD_LIBRARY_PATH=$(dirname -- "$nvrtc"):${LD_LIBRARY_PATH-}
[[ -e $libraries/libcudnn_ops.so.9 ]] || export CUDNN_LIB_CONFIG=GRAPH_JIT_ONLY

# The word for how a program ended: PASS, FAIL, "stopped after 60 s", "exit 139".
run_program() {
    local folder=$1 status=0
    if [[ $form == c ]]; then
        make -s -C "$folder" repro CUDNN="$cudnn" CUDA="$cuda" >"$folder/make.log" 2>&1 || { echo "does not compile"; return; }
        (cd "$folder" && LD_LIBRARY_PATH=$libraries:$cuda/lib64:${LD_LIBRARY_PATH-} timeout -s KILL "$seconds" ./repro) >"$folder/program.log" 2>&1 || status=$?
    else
        (cd "$folder" && LD_LIBRARY_PATH=$libraries:${LD_LIBRARY_PATH-} timeout -s KILL "$seconds" python3 repro.py) >"$folder/program.log" 2>&1 || status=$?
    fi
    case $status in
    0) echo PASS ;;
    1) grep -q '^FAIL' "$folder/program.log" && echo FAIL || echo "exit 1" ;;
    137) echo "stopped after $seconds s" ;;
    *) echo "exit $status" ;;
    esac
}

mkdir -p "$out"
number=0 agree=0 differ=0 unsaid=0
printf '%-40s %-26s %-22s %s\n' ID FACTS PROGRAM ''
while read -r id words; do
    [[ -n $id && $id != \#* ]] || continue
    number=$((number + 1))
    folder=$out/$(printf '%02d' "$number")-$id
    mkdir -p "$folder"
    options=(--cudnn "$version" --device 0 --standalone "$folder")
    [[ $form == c ]] || options+=(--frontend)
    timeout 600 "$facts" repro "$words" "${options[@]}" >"$folder/facts.log" 2>&1
    verdict=$(sed -n 's/^- verdict: //p' "$folder/README.md" 2>/dev/null | head -n 1)
    if [[ -z $verdict ]]; then
        unsaid=$((unsaid + 1))
        printf '%-40s %s\n' "$id" "$(grep -m 1 -e --standalone "$folder/facts.log" || tail -n 1 "$folder/facts.log")"
        continue
    fi
    program=$(run_program "$folder")
    verdict=${verdict%%,*}
    note=
    if [[ $verdict == pass && $program == PASS || $verdict != pass && $program != PASS ]]; then
        agree=$((agree + 1))
    else
        differ=$((differ + 1)) note="DIFFERS: $(grep -m 1 -E 'FAIL|PASS' "$folder/program.log" 2>/dev/null)"
    fi
    printf '%-40s %-26s %-22s %s\n' "$id" "$verdict" "$program" "$note"
done <"$list"
echo "$agree of $((agree + differ)) programs show what FACTS saw; $unsaid cases cannot be said as a program. Logs: $out"
[[ $differ == 0 ]]
