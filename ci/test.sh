# shellcheck shell=bash
# Part of ./facts: `./facts test`. Fetches everything, builds three ways, then asks one ctest for everything: clang-tidy, the tests, the tests again under
# sanitizers, each fuzz target for FACTS_FUZZ_SECONDS (3). A build that fails is the first test to fail. Tests have no network.

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
    local preset part
    {
        for part in 1 2 3; do
            printf 'add_test(clang-tidy-%s bash "%s" "%s" %s/3)\n' "$part" "$home/ci/tidy.sh" "$release" "$part"
            printf 'set_tests_properties(clang-tidy-%s PROPERTIES LABELS tidy COST 60 TIMEOUT 600)\n' "$part"
        done
        for preset in "${broken[@]}"; do
            printf 'add_test(build-%s cat "%s")\nset_tests_properties(build-%s PROPERTIES LABELS build WILL_FAIL ON)\n' "$preset" "$build/test-$preset.log" "$preset"
        done
        printf 'subdirs(release asan fuzz)\n'
    } >"$build/CTestTestfile.cmake"
}

# Builds of cuDNN that tests ask (ci/builds-test.txt): day or night.
test_builds() { sed -n "s/^$1 *\([^ ]*\).*/\1/p" "$home/ci/builds-test.txt" | paste -sd ,; }

# Everything that tests need from elsewhere is here before the first of them starts. The installer says what it fetches: a bar on a terminal.
fetch_builds() {
    local start=$SECONDS mark=ok
    "$release/bin/facts" cudnn install "$(test_builds day)" >"$build/test-downloads.log" || { mark=FAILED; broken+=(downloads); }
    printf '%-6s  %-10s %4d s\n' "$mark" downloads $((SECONDS - start))
}

# offline COMMAND...: in a network of its own, which has the loopback device alone. Without the right to make one, pip at least asks nobody.
offline() {
    export PIP_NO_INDEX=1
    if unshare --net true 2>/dev/null; then
        unshare --net "$venv/bin/python" -c 'import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
    else
        "$@"
    fi
}

# The tests, the 20 dearest, the skipped ones, and ctest's summary once more as the last line.
run_ctest() { # FOLDER OPTION...
    local folder=$1 status=0 skips=0 start=$SECONDS; shift
    offline ctest --test-dir "$folder" --output-on-failure "$@" 2>&1 | tee "$build/ctest.log" || status=$?
    "$venv/bin/python" -B "$home/ci/test_report.py" "$folder/Testing/Temporary/LastTest.log" || skips=$?
    printf '\n%d s for the tests, %d s with the preparation\n' $((SECONDS - start)) "$SECONDS"
    sed -n '/^The following tests FAILED/,$p' "$build/ctest.log"
    grep -E '^[0-9]+% tests passed' "$build/ctest.log" || true
    [[ $status -ne 0 ]] || status=$skips
    return "$status"
}

test_help() {
    cat <<'END'
All tests of FACTS. They need no GPU. The first time, packages (Debian, PyPI) and two builds of cuDNN are downloaded.

  ./facts test                     everything: clang-tidy, unit tests, end-to-end tests, reports, sanitizers, fuzz targets
  ./facts test --quick             tests that take seconds; after `./facts setup` it needs no network, and 90 seconds at most
  ./facts test --list              names and labels of the tests
  ./facts test CTEST OPTION...     only the tests that ctest then selects:
       -R PATTERN                    by name: -R harness_case, -R e2e
       -L LABEL                      by label: unit, e2e, reports, ci, quick

One program has the tests of a folder: build/release/bin/harness_case --filter 'pattern/*' runs one suite of it.
On two idle cores all tests take about 6 minutes from a built tree, and 10 from a clean clone. The last lines say how long it took.
END
}

# What can be had with what is there: nothing is installed or downloaded, and no other build than the release one is made.
run_quick() {
    [[ -f $release/CTestTestfile.cmake && $(tests_configured) == ON ]] || die 3 "the tests need Criterion; run this once, with a network: ./facts setup"
    FACTS_WITH_TESTS=ON
    timed release cmake --build "$release" --target quick -- -k 0
    [[ ${#broken[@]} -eq 0 ]] || die 1 "the tests do not compile"
    run_ctest "$release" -j2 -L quick
}

run_tests() {
    local options=("$@") list=$build/test-packages.txt
    case ${1-} in
    -h | --help) test_help; return ;;
    --quick) run_environment; run_quick; return ;;
    --list) options=(-N) ;;
    esac
    FACTS_WITH_TESTS=ON
    mkdir -p "$build"
    : >"$log"
    { cat "$home/ci/packages-test.txt"; browser_packages; } >"$list"
    install_packages "$packages" "$home/ci/packages-quick.txt" "$list"
    FACTS_CHROMIUM=$(find_browser)
    export FACTS_CHROMIUM # empty: no browser, and no package of one; the page's tests are then skipped
    requirements+=("$home/ci/requirements-test.txt" "$home/ci/requirements-recipes.txt")
    set_up
    run_environment
    [[ ${options[*]} == -N ]] || fetch_builds
    if [[ ${#options[@]} -gt 0 ]]; then
        timed release build_preset release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
        [[ ${#broken[@]} -eq 0 ]] || die 1 "the tests do not compile"
        [[ ${options[*]} != -N ]] || exec ctest --test-dir "$release" -N
        run_ctest "$release" -j2 "${options[@]}"
        return
    fi
    timed release build_preset release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
    timed asan build_preset asan -DFACTS_TESTS=ON
    timed fuzz build_preset fuzz -DFACTS_TESTS=OFF
    write_ctest
    run_ctest "$build" "-j$(($(nproc) + 1))" --repeat after-timeout:2 # one more than cores: some tests wait
}
