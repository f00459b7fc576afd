#!/usr/bin/env bash
# Runs checks that take too long for a pull request. They are 100,000 evaluations of a right kernel, every liar, the suites (core with four fills) and the
# fuzzer. If ./facts test has built them here, the libFuzzer targets and clang-tidy with all paths of its analyzer follow. Each step may be interrupted: the same
# command then goes on, and asks no case again that has its row.
# usage: ci/nightly.sh FACTS BUILDS DEVICE OUT [STEP...]
#   FACTS   the front door or a bundle's facts
#   BUILDS  as for --cudnn: 9.19.0,9.27.0-jit-cu13
#   DEVICE  as for --device; on one of lib/devices (h100-sxm) the suites and the fuzzer decide and do not run
#   STEP    clean liars suites fuzz targets builds programs torture threads mutants tidy packages pins fresh; all of them unless given
#   SUITES  which suites, SUITE or SUITE+KEY=VALUE (environment; default: all that a GPU does in about a quarter of an hour)
#   MINUTES of fuzzing (environment, 60), TARGET_SECONDS of each libFuzzer target (300), CLEAN evaluations (100000),
#   JOBS workers (the tool's own choice unless set)
# Exit: the worst of its steps.
set -uo pipefail
[[ $# -ge 4 ]] || { sed -n '5,12s/^# //p' "$0" >&2; exit 2; }
facts=$1 builds=$2 device=$3 out=$4
shift 4
home=$(dirname -- "$(dirname -- "$(realpath -- "$0")")")
[[ ! -e $home/ci/test.sh ]] || . "$home/ci/test.sh" # test_builds; a bundle has neither it nor the step
targets=${TARGETS:-$home/build/fuzz} # a bundle has none
suites=${SUITES:-smoke core core+fill=spiky core+fill=needle core+fill=neglse surface models numbers+engine=all peers-te peers-fe nightly}
if [[ $# -eq 0 ]]; then
    set -- clean liars suites fuzz
    [[ ! -e $targets/CTestTestfile.cmake ]] || set -- "$@" targets builds programs torture threads mutants tidy packages pins fresh
fi
worst=0
verb=decide
[[ $device != cpu && ! $device =~ ^[0-9,]+$ ]] || verb=run
mkdir -p "$out" || exit 2
target=(--cudnn "$builds" --device "$device" ${JOBS:+-j "$JOBS"})

step() { # NAME WORDS...
    local name=$1 start=$SECONDS status=0
    shift
    "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    echo "== $name: exit $status in $((SECONDS - start)) s"
    [[ $status -le $worst ]] || worst=$status
}

# Where a record is, go on with it.
record() { # FILE
    [[ -e $1 ]] && printf '%s\n' -o "$1" --resume || printf '%s\n' -o "$1"
}

for name; do
    case $name in
        clean) step clean "$facts" self --clean "${CLEAN:-100000}" ;;
        liars) for seed in 1 2 77003; do step "liars-$seed" "$facts" self --seed "$seed"; done ;;
        suites)
            for suite in $suites; do
                IFS=+ read -r suite with <<<"$suite"
                of=$suite${with:+-${with#*=}}
                mapfile -t words < <(record "$out/$of.jsonl")
                step "$of" "$facts" "$verb" "$suite" ${with:+--with "$with"} "${target[@]}" --plan-dir "$out/plans" "${words[@]}"
            done
            ;;
        fuzz)
            mapfile -t words < <(record "$out/fuzz.jsonl")
            step fuzz "$facts" fuzz --minutes "${MINUTES:-60}" "${target[@]}" "${words[@]}"
            ;;
        targets) step targets env FACTS_FUZZ_SECONDS="${TARGET_SECONDS:-300}" ctest --test-dir "$targets" -L fuzz --no-tests=error -j "${JOBS:-$(nproc)}" ;;
        builds) step builds "$facts" cudnn install "$(test_builds night)" ;;
        programs) # the tests of ./facts test with their night's inputs, over the builds of the night
            step programs env FACTS_ALL=1 ctest --test-dir "${targets%/*}/release" -E '^ci_test_(relink|packages)$' --timeout 7200 --no-tests=error
            step newest env FACTS_ALL=1 FACTS_TEST_BUILD=9.28.0-full-cu13 ctest --test-dir "${targets%/*}/release" -R '^lib_(cudnn|plan)$' --no-tests=error
            ;;
        torture) step torture "${TORTURE:-$home/ci/torture.sh}" --points "${TORTURE_POINTS:-0}" --table "$out/torture.md" ;;
        packages) step packages env FACTS_ALL=1 ctest --test-dir "${targets%/*}/release" -R '^ci_test_(relink|packages)$' --no-tests=error ;;
        pins) step pins "${PINS:-$home/ci/pins.sh}" --check ;; # every pinned package can be had for every supported Python and machine
        fresh) # the oldest and the newest Python, and the other machine
            for suite in bullseye:amd64 forky:amd64 bookworm:arm64; do
                step "fresh-${suite/:/-}" env FACTS_FRESH_SUITE="${suite%:*}" FACTS_FRESH_MACHINE="${suite#*:}" \
                    "${FRESH:-$home/ci/fresh.sh}" './facts cudnn install 9.27.0' './facts doctor'
            done
            ;;
        threads) step threads "${THREADS:-$home/ci/threads.sh}" ;;
        mutants) step mutants "${MUTANTS:-$home/ci/mutants.sh}" ;;
        tidy) step tidy env FACTS_TIDY_NODES=225000 bash "$home/ci/tidy.sh" "${targets%/*}/release" ;;
        *)
            echo "nightly.sh: there is no step $name" >&2
            exit 2
            ;;
    esac
done
exit "$worst"
