# Part of ./facts: `./facts test`. Every step runs, whatever the one before said; ctest's own summary comes last.
# FACTS_FUZZ_SECONDS (60) is the time for each fuzz target. Whole run: at most 12 minutes on two cores.

TEST_CUDNN=9.20.0-jit-cu13,9.27.0-jit-cu13 # one that needs NVRTC, one that has it built in

failed_steps=()

# check NAME COMMAND...: a step of the tests; its output is shown only when it fails.
check() {
    local name=$1 start=$SECONDS out=$build/test-$1.log; shift
    if ("$@") >"$out" 2>&1; then
        printf '  ok      %-12s %4d s\n' "$name" $((SECONDS - start))
    else
        tail -n 60 "$out"
        printf '  FAILED  %-12s %4d s   (%s)\n' "$name" $((SECONDS - start)) "${out#"$PWD"/}"
        failed_steps+=("$name")
    fi
}

run_asan() {
    configure asan -DFACTS_TESTS=ON &&
        cmake --build "$build/asan" &&
        UBSAN_OPTIONS=print_stacktrace=1 ctest --test-dir "$build/asan" -j2 --output-on-failure --timeout 240 -LE slow
}

run_fuzz() {
    configure fuzz -DFACTS_TESTS=OFF && cmake --build "$build/fuzz" || return 1
    local targets=("$build"/fuzz/bin/fuzz_*)
    [[ -x ${targets[0]} ]] || { echo "no fuzz targets were built"; return 1; }
    printf '%s\n' "${targets[@]}" | xargs -P2 -I{} bash "$home/ci/fuzz_one.sh" {} "$home" "${FACTS_FUZZ_SECONDS:-60}"
}

run_tests() {
    local options=("$@") start=$SECONDS summary
    FACTS_WITH_TESTS=ON
    mkdir -p "$build"
    : >"$log"
    install_packages "$packages" "$home/ci/packages-test.txt"
    set_up
    run_environment
    configure release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
    "$release/bin/facts" cudnn install "$TEST_CUDNN" >/dev/null
    echo "building the tests"
    cmake --build "$release" >"$build/test-build.log" 2>&1 || { tail -n 40 "$build/test-build.log"; die 1 "the tests do not compile"; }
    if [[ ${#options[@]} -gt 0 ]]; then
        exec ctest --test-dir "$release" --output-on-failure -j2 "${options[@]}"
    fi
    check tidy bash "$home/ci/tidy.sh" "$release"
    check asan run_asan
    check fuzz run_fuzz
    echo "steps: $((SECONDS - start)) s so far; now ctest"
    local status=0
    ctest --test-dir "$release" --output-on-failure -j2 2>&1 | tee "$build/test-ctest.log" || status=1
    [[ ${#failed_steps[@]} -eq 0 ]] || die 1 "failed: ${failed_steps[*]}"
    return $status
}
