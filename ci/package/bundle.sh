# Part of ./facts: `./facts bundle`. A tree that runs on any x86-64 or aarch64 Linux with a glibc that is new enough, without packages and network.
# cuDNN may be put in for one's own machines; its licence does not allow handing it on, so by default it is left out.

# What the build folder says: CMAKE_STRIP
cached() { sed -n "s/^$1:[A-Z]*=//p" "$release/CMakeCache.txt"; }

# Where the libraries lie that were linked in: a build for another machine has them beside it.
sysroot() { [[ ! -d $release/sysroot ]] || echo "$release/sysroot"; }

# The machine that the build is for: x86_64
machine() { "$(cached CMAKE_C_COMPILER)" -dumpmachine | cut -d- -f1; }

# The newest glibc symbol that these files ask for, "2.34".
newest_glibc() {
    readelf -VW "$@" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1
}

# Nothing may be needed that is not part of glibc.
foreign_libraries() {
    readelf -dW "$@" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u | grep -vE '^(lib(c|m|dl|pthread|rt)|ld-linux-(x86-64|aarch64))\.so\.[0-9]+$' || true
}

# link_again GLIBC FOLDER FILE...: files of the build for an older glibc, into FOLDER.
link_again() {
    FACTS_PYTHON="${FACTS_PYTHON:-$venv/bin/python}" bash "$home/ci/package/relink.sh" "$release" "$2" "$1" "${@:3}"
}

# Without debug information, and without the build ID, which is a hash of it: so of the folder that a compiler or its cache names there.
strip_again() { "$(cached CMAKE_STRIP)" --strip-debug --remove-section=.note.gnu.build-id "$@"; }

# bundle_programs TREE GLIBC: what `cmake --install` gives, for an older glibc unless GLIBC is empty.
bundle_programs() {
    local tree=$1 glibc=$2
    cmake --install "$release" --component facts --prefix "$tree.installed" >/dev/null
    mkdir -p "$tree"
    mv "$tree.installed"/lib/facts/* "$tree/"
    rm -r "$tree.installed"
    [[ -z $glibc ]] || link_again "$glibc" "$tree/bin" bin/facts{,-worker,-self} # the driver without a device asks for nothing but glibc 2.2.5
    strip_again "$tree"/bin/facts{,-worker,-self} "$tree"/bin/nulldriver/libcuda.so.1
    ln -s bin/facts "$tree/facts"
}

# The packages that the reports need, beside ours: one PYTHONPATH finds both. The pure Python form runs with every Python 3.
bundle_reports() {
    local tree=$1 site
    site=$("$venv/bin/python" -c 'import jinja2, pathlib; print(pathlib.Path(jinja2.__file__).parent.parent)')
    cp -r "$site/jinja2" "$site/markupsafe" "$tree/reports/"
    find "$tree/reports" -name __pycache__ -prune -exec rm -rf {} +
    find "$tree/reports" -name '*.so' -delete
}

# bundle_module FOLDER GLIBC: the Python module fattn with libfattn and its OpenMP, which lie beside it. With GLIBC both are for an older glibc.
bundle_module() {
    local to=$1/fattn glibc=${2-} machine library openmp
    machine=$(machine)
    cp -r "$home/lib/python/fattn" "$1/"
    find "$to" -name __pycache__ -prune -exec rm -rf {} +
    library=$(realpath -- "$release/package/libfattn.so.1")
    if [[ -n $glibc ]]; then
        link_again "$glibc" "$to" "package/${library##*/}"
        mv "$to/${library##*/}" "$to/libfattn.so.1"
        openmp=$(dirname -- "$release")/openmp-$machine # GCC 10's asks for glibc 2.17, this machine's for its own
        bash "$home/ci/package/unpack.sh" bullseye "$machine" "$openmp" libgomp1 >&2
        cp -L "$openmp/usr/lib/$machine-linux-gnu/libgomp.so.1" "$to/"
    else
        cp "$library" "$to/libfattn.so.1"
        cp -L "$("$(cached CMAKE_C_COMPILER)" -print-file-name=libgomp.so.1)" "$to/"
    fi
    strip_again "$to/libfattn.so.1"
}

# The licences of what was linked or copied in.
bundle_licences() {
    local tree=$1 package file
    mkdir -p "$tree/licences"
    for package in libjansson-dev libssl-dev libuv1-dev libxxhash-dev libgcc-s1 libgomp1; do
        file=$(sysroot)/usr/share/doc/$package/copyright
        [[ ! -r $file ]] || cp -L "$file" "$tree/licences/$package"
    done
    find "$venv" -path '*/[Jj]inja2-*' -iname 'LICENSE*' -type f -exec cp {} "$tree/licences/jinja2" \;
    find "$venv" -path '*/[Mm]arkup[Ss]afe-*' -iname 'LICENSE*' -type f -exec cp {} "$tree/licences/markupsafe" \;
}

bundle_cudnn() {
    local tree=$1 name dir nvrtc version
    mkdir -p "$tree/cudnn"
    while IFS=$'\t' read -r name dir nvrtc; do
        cp -r "$(dirname "$dir")" "$tree/cudnn/$name"
        [[ $nvrtc != - && -n $nvrtc ]] || continue
        version=$(basename "$(ls "$(dirname "$nvrtc")"/libnvrtc-builtins.so."${nvrtc##*.}".* | tail -n 1)")
        mkdir -p "$tree/cudnn/nvrtc/${version#*.so.}/lib"
        cp -L "$nvrtc" "$(dirname "$nvrtc")/$version" "$tree/cudnn/nvrtc/${version#*.so.}/lib/"
    done <"$tree/../cudnn.tsv"
}

# The library's tests, those of the oracle and of the harness that need a GPU, and examples, with the shared libraries of Criterion, and compute-sanitizer (which, as cuDNN, is not to be handed on).
bundle_tests() {
    local tree=$1 program tests=$1/tests cache=${XDG_CACHE_HOME:-$HOME/.cache}/facts sanitizer
    local -a programs
    FACTS_WITH_TESTS=ON
    install_packages "$packages" "$home/ci/packages-quick.txt"
    configure release -DFACTS_TESTS=ON "-DFACTS_WERROR=$werror"
    mapfile -t programs < <(ninja -C "$release" -t targets all | sed -n 's/^\(bin\/\(\(lib\|example\)_[a-z0-9_]*\|reference_test_gpu\|harness_test_gpu\)\): .*/\1/p')
    step "building the tests" cmake --build "$release" --target "${programs[@]##*/}" facts-worker-liars torture_gpu fattn_shared
    cp "$release"/bin/{facts-worker-liars,torture_gpu} "$tree/bin/" # of the tests: on request wrong, or with a GPU that fails
    strip --strip-debug "$tree"/bin/{facts-worker-liars,torture_gpu}
    mkdir -p "$tests/bin" "$tests/so" "$tree/lib"
    for program in "${programs[@]}"; do
        cp "$release/$program" "$tests/bin/"
        ldd "$release/$program" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'
    done | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so\.[0-9]+$' | xargs -r cp -L -t "$tests/so"
    strip --strip-debug "$tests"/bin/*
    ln -s ../devices "$tree/lib/devices" # as in the sources
    mkdir -p "$tree/lib/python" "$tree/examples"
    bundle_module "$tree/lib/python" "$oldest"
    cp "$home/examples/torch_attention.py" "$tree/examples/"
    cp "$home"/ci/gpu_*.sh "$home"/ci/*_gpu.sh "$home"/ci/second_way.{sh,py} "$tree/ci/"
    mkdir "$tree/ci/torture"
    cp "$home"/ci/torture/*.py "$tree/ci/torture/"
    sanitizer=$("$FACTS_PYTHON" "$home/ci/cudnn_install.py" --cache "$cache" --tool sanitizer) || return 0
    cp -r "$(dirname "$sanitizer")" "$tree/sanitizer"
}

make_bundle() {
    local usage="usage: ./facts bundle -o FILE.tar.xz [--machine aarch64] [--glibc 2.28|native] [--cudnn V,V] [--tests] [--no-kernels]"
    local out= spec= tests= partial= oldest=2.28 other= level=-1 stage tree glibc foreign
    while [[ $# -gt 0 ]]; do
        case $1 in
        -o) out=${2-}; shift 2 || die 2 "-o needs a file" ;;
        --glibc) oldest=${2-}; shift 2 || die 2 "--glibc needs a version: 2.28" ;;
        --machine) other=${2-}; shift 2 || die 2 "--machine needs a name: aarch64" ;;
        --cudnn) spec=${2-}; shift 2 || die 2 "--cudnn needs versions" ;;
        --no-kernels) partial=--no-kernels; shift ;; # those that the build has
        --tests) tests=1; level=-6; shift ;; # every program holds the kernels: a window that reaches from one to the next
        *) die 2 "bundle: $1: not understood; $usage" ;;
        esac
    done
    [[ $out == *.tar.xz || $out == *.tar.gz || $out == *.tar ]] || die 2 "$usage"
    [[ $oldest != native ]] || oldest=
    [[ -z $oldest || $oldest =~ ^2\.[0-9]+$ ]] || die 2 "--glibc $oldest: not a version of glibc: 2.28"
    [[ -d $(dirname -- "$out") && -w $(dirname -- "$out") ]] || die 3 "$(dirname -- "$out"): no such folder, or not writable"
    if [[ -n $other && $other != "$(machine)" ]]; then
        [[ $other == aarch64 ]] || die 2 "--machine $other: aarch64 is the other one"
        [[ -z $tests$spec ]] || die 2 "--tests and --cudnn are for this machine; on the other one: facts cudnn install"
        release=$build/aarch64
        step "building for aarch64" bash "$home/ci/package/cross.sh" "$release" $partial
    fi
    [[ -n $partial ]] || all_kernels "$release" || die 3 "not packed"
    [[ -z $tests ]] || oldest= # the tests themselves run with this machine's glibc and newer alone
    stage=$(mktemp -d "$build/bundle.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$stage' '$out.part'" EXIT
    tree=$stage/facts
    [[ -z $oldest ]] || say "linking for glibc $oldest"
    bundle_programs "$tree" "$oldest"
    foreign=$(foreign_libraries "$tree"/bin/facts{,-worker,-self} "$tree"/bin/nulldriver/libcuda.so.1 | tr '\n' ' ')
    [[ -z $foreign ]] || die 3 "not relocatable: the programs need $foreign"
    glibc=$(newest_glibc "$tree"/bin/facts{,-worker,-self} "$tree"/bin/nulldriver/libcuda.so.1)
    bundle_reports "$tree"
    bundle_licences "$tree"
    python3 "$home/ci/package/sbom.py" "$release" "$tree" "$tree/facts.spdx.json" ${oldest:+--relinked}
    [[ -z $tests ]] || bundle_tests "$tree"
    if [[ -n $spec ]]; then
        "$release/bin/facts" cudnn install "$spec" >"$stage/cudnn.tsv" || exit $?
        bundle_cudnn "$tree"
    fi
    say "packing ($(du -sh "$tree" | cut -f1))"
    # The same bytes from the same commit: names in order, one time, nobody's, whatever the umask.
    local -a pack=(tar -C "$stage" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-$(git -C "$home" log -1 --format=%ct 2>/dev/null || echo 0)}"
        --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=gnu -cf - facts)
    case $out in
    *.xz) "${pack[@]}" | xz -T0 $level >"$out.part" ;;
    *.gz) "${pack[@]}" | gzip -n >"$out.part" ;;
    *) "${pack[@]}" >"$out.part" ;;
    esac
    mv -- "$out.part" "$out"
    say "$out: $(du -h --apparent-size "$out" | cut -f1); needs $(machine) Linux with glibc $glibc or newer; unpack it and run facts/facts"
}
