#!/usr/bin/env bash
# mutants.sh [PATTERN]: plants each mistake of ci/mutants.list (those whose line contains PATTERN), one at a time, in a copy of the sources; builds the
# named test program there and runs it. A mistake that no test shows is a gap in the tests. Needs a build of the tests: ./facts test -R harness_case.
# Exit: 0 each mistake was shown; 1 one was missed, does not compile, or its text is no longer in the file; 3 nothing could be built.
set -uo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
copy=$home/build/mutants
worst=0

trim() { local text=$1; text=${text#"${text%%[![:space:]]*}"}; printf '%s' "${text%"${text##*[![:space:]]}"}"; }

plant() { # FILE FROM TO: the first place of FROM, however its lines are broken
    FROM=$2 TO=$3 python3 - "$1" <<'END'
import os, pathlib, re, sys
path = pathlib.Path(sys.argv[1])
text = path.read_text()
found = re.search(r"\s+".join(map(re.escape, os.environ["FROM"].split())), text)
if not found:
    sys.exit(1)
path.write_text(text[: found.start()] + os.environ["TO"] + text[found.end() :])
END
}

tortured() { # BIN PART:COMMAND OPTION...
    PYTHONDONTWRITEBYTECODE=1 python3 "$home/ci/torture/torture.py" --programs "$1" --injector "$home/build/release/bin/torture-inject.so" \
        --state "$copy/torture" --part "${2%%:*}" --scene "${2#*:}" "${@:3}"
}

# asks PROGRAM FILTER: does the test pass with the mistake in it?
asks() {
    local bin=$copy/build/release/bin
    export FACTS_SOURCE=$home FACTS_HOME=$home FACTS_BIN=$home/build/release/bin
    case $1 in
    torture) tortured "$bin" "$2" --fresh --points 150 && tortured "$bin" "$2" ;; # every point only where a few show nothing
    torture_library) OMP_NUM_THREADS=1 timeout 600 "$bin/$1" "$2" ;;
    harness_supervisor | harness_worker) FACTS_BIN=$bin timeout 600 "$bin/$1" --filter "$2" -j2 ;; # they start facts
    *) timeout 600 "$bin/$1" --filter "$2" -j2 ;;
    esac >"$copy/test.log" 2>&1
}

mkdir -p "$copy"
git -C "$home" ls-files -z | (cd "$home" && tar --null -T - -cf - 2>/dev/null) | tar -C "$copy" -xf - || exit 3
# A file that has gone since an earlier run must not be built.
comm -z23 <(cd "$copy" && find . -path ./build -prune -o -type f -printf '%P\0' | sort -z) <(git -C "$home" ls-files -z | sort -z) |
    (cd "$copy" && xargs -r0 rm -f)
# tar gave each file its time back. A file that an earlier run changed is newer than what was built of it then.
[[ ! -f $copy/build/planted ]] || (cd "$copy" && sort -u build/planted | xargs -r -d '\n' touch -c)
mkdir -p "$copy/build"
ln -sfn "$home/build/kernels" "$copy/build/kernels"
[[ -f $copy/build/release/build.ninja ]] || (cd "$copy" && cmake --preset release -DFACTS_WERROR=OFF \
    "-DFACTS_NVCC=$(sed -n 's/^FACTS_NVCC:[^=]*=//p' "$home/build/release/CMakeCache.txt")" >/dev/null) || exit 3

while IFS='~' read -r file from to test; do
    file=$(trim "$file") from=$(trim "$from") to=$(trim "$to") test=$(trim "$test")
    program=${test%% *} filter=${test#* }
    cp "$home/$file" "$copy/$file"
    echo "$file" >>"$copy/build/planted"
    if ! plant "$copy/$file" "$from" "$to"; then
        printf 'GONE    %s: %s\n' "$file" "$from"
        worst=1
        continue
    fi
    targets=$program
    [[ $program != torture ]] || targets="facts facts-worker"
    [[ $program != harness_supervisor && $program != harness_worker ]] || targets+=" facts facts-worker facts-fake-worker"
    # shellcheck disable=SC2086
    if ! cmake --build "$copy/build/release" --target $targets >"$copy/build.log" 2>&1; then
        grep -m 5 -E 'error|undefined' "$copy/build.log"
        printf 'BROKEN  %s: %s\n' "$file" "$to"
        worst=1
    elif asks "$program" "$filter"; then
        printf 'MISSED  %s: %s\n' "$file" "$to"
        worst=1
    else
        printf 'shown   %s: %s  (%s)\n' "$file" "$to" "$(grep -c '^\[FAIL\]\|CRASH!\|^  [^ ].*: [a-z]*$\|: answers ' "$copy/test.log") tests"
    fi
    cp -p "$home/$file" "$copy/$file"
    touch "$copy/$file"
done < <(grep -v '^#' "$home/ci/mutants.list" | grep -F -- "${1:-}")
exit $worst
