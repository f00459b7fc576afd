# Part of ./facts: `./facts test`. Builds three ways, then asks one ctest for everything: clang-tidy, the tests, the tests again under
# sanitizers, each fuzz target for FACTS_FUZZ_SECONDS (3). A build that fails is the first test to fail.

TEST_CUDNN=9.20.0-jit-cu13,9.27.0-jit-cu13 # one that needs NVRTC, one that has it built in

broken=()

# timed NAME COMMAND...: one step of the preparation. Its output is shown only when it fails, and the run goes on without it.
timed() {
    local name=$1 start=$SECONDS out=$build/test-$1.log mark=ok; shift
    if ! ("$@") >"$out" 2>&1; then
        mark=FAILED
        tail -n 60 "$out"
        broken+=("$name")
    fi
    printf '%-6s  %-10s %4d s\n' "$mark" "$name" $((SECONDS - start))
}

build_preset() {
    local preset=$1 target=all; shift
    [[ $preset != fuzz ]] || target=fuzzers
    configure "$preset" "$@" && cmake --build "$build/$preset" --target "$target" -- -k 0
}

# The reports' page is tested in a real browser: the one that is there, or Debian's (100 MB with what it needs; the driver is 50 MB more).
# Ubuntu has none as a package.
browser_packages() {
    if [[ -n $(find_browser) ]]; then
        return
    elif [[ -n $(apt-cache search --names-only '^chromium-headless-shell$' 2>/dev/null) ]]; then
        echo chromium-headless-shell
    elif command -v apt-cache >/dev/null && grep -qs '^ID=debian' /etc/os-release; then
        echo chromium
    fi
}

find_browser() {
    local name
    for name in ${FACTS_CHROMIUM:-} chromium-headless-shell chromium google-chrome; do
        command -v "$name" && return
    done
    return 0
}

# The release build's folder has its tests, the others' are named after them, and what is neither stands here.
write_ctest() {
    local preset
    {
        printf 'add_test(clang-tidy bash "%s" "%s")\n' "$home/ci/tidy.sh" "$release"
        printf 'set_tests_properties(clang-tidy PROPERTIES LABELS tidy PROCESSORS 2 TIMEOUT 600)\n'
        for preset in "${broken[@]}"; do
            printf 'add_test(build-%s cat "%s")\nset_tests_properties(build-%s PROPERTIES LABELS build WILL_FAIL ON)\n' "$preset" "$build/test-$preset.log" "$preset"
        done
        printf 'subdirs(release asan fuzz)\n'
    } >"$build/CTestTestfile.cmake"
}

test_help() {
    cat <<'END'
All tests of FACTS. They need no GPU. The first time, packages (Debian, PyPI) and two builds of cuDNN are downloaded.

  ./facts test                     everything: clang-tidy, unit tests, end-to-end tests, reports, sanitizers, fuzz targets
  ./facts test --quick             tests that take seconds, of what is built and installed; no network, under 90 seconds
  ./facts test --list              names and labels of the tests
  ./facts test CTEST OPTION...     only the tests that ctest then selects:
       -R PATTERN                    by name: -R harness_case, -R e2e
       -L LABEL                      by label: unit, e2e, reports, ci, quick

One program has the tests of a folder: build/release/bin/harness_case --filter 'pattern/*' runs one suite of it.
On two idle cores everything takes about 16 minutes from a warm build, and 20 from a clean clone.
END
}

# What can be had with what is there: nothing is installed or downloaded, and no other build than the release one is made.
run_quick() {
    [[ -f $release/CTestTestfile.cmake && $(tests_configured) == ON ]] ||
        die 3 "the tests were never built; run this once, with a network: ./facts test -R harness_case"
    FACTS_WITH_TESTS=ON
    timed release cmake --build "$release" -- -k 0
    [[ ${#broken[@]} -eq 0 ]] || die 1 "the tests do not compile"
    exec ctest --test-dir "$release" --output-on-failure -j2 -L quick
}

run_tests() {
    local options=("$@") list=$build/test-packages.txt
    case ${1-} in
    -h | --help) test_help; return ;;
    --quick) run_environment; run_quick ;;
    --list) options=(-N) ;;
    esac
    FACTS_WITH_TESTS=ON
    export FACTS_CI=1 # what the tests need is installed below: a test that would be skipped for the lack of it fails
    mkdir -p "$build"
    : >"$log"
    { cat "$home/ci/packages-test.txt"; browser_packages; } >"$list"
    install_packages "$packages" "$list"
    FACTS_CHROMIUM=$(find_browser)
    export FACTS_CHROMIUM # empty: no browser, and no package of one; the page's tests are then skipped, but not in CI
    [[ -n $FACTS_CHROMIUM || -n ${CI:-} ]] || unset FACTS_CI
    requirements+=("$home/ci/requirements-test.txt" "$home/ci/requirements-recipes.txt")
    set_up
    run_environment
    if [[ ${#options[@]} -gt 0 ]]; then
        timed release build_preset release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
        [[ ${#broken[@]} -eq 0 ]] || die 1 "the tests do not compile"
        exec ctest --test-dir "$release" --output-on-failure -j2 "${options[@]}"
    fi
    timed cudnn "$release/bin/facts" cudnn install "$TEST_CUDNN"
    timed release build_preset release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
    timed asan build_preset asan -DFACTS_TESTS=ON
    timed fuzz build_preset fuzz -DFACTS_TESTS=OFF
    write_ctest
    ctest --test-dir "$build" --output-on-failure "-j$(($(nproc) + 1))" --repeat after-timeout:2 # one more than cores: some tests wait
}
