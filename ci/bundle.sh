# Part of ./facts: `./facts bundle`. A tree that runs on any x86-64 Linux with a glibc that is new enough, without packages and network.
# cuDNN may be put in for one's own machines; its licence does not allow handing it on, so by default it is left out.

# The newest glibc symbol that these files ask for, "2.34".
newest_glibc() {
    objdump -T "$@" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1
}

# Nothing may be needed that is not part of glibc.
foreign_libraries() {
    objdump -p "$@" | sed -n 's/^ *NEEDED *//p' | sort -u | grep -vE '^(libc|libm|libdl|libpthread|librt)\.so\.[0-9]+$|^ld-linux-x86-64\.so\.2$' || true
}

bundle_programs() {
    local tree=$1
    mkdir -p "$tree/bin/nulldriver"
    cp "$release/bin/facts" "$release/bin/facts-worker" "$tree/bin/"
    cp -L "$release/bin/nulldriver/libcuda.so.1" "$tree/bin/nulldriver/"
    strip --strip-debug "$tree"/bin/facts "$tree"/bin/facts-worker "$tree"/bin/nulldriver/libcuda.so.1
    ln -s bin/facts "$tree/facts"
}

bundle_data() {
    local tree=$1 site
    cp -r "$home/cases" "$tree/cases"
    cp -r "$home/lib/devices" "$tree/devices"
    mkdir -p "$tree/ci" "$tree/reports"
    cp "$home/ci/cudnn.lock" "$home/ci/cudnn_install.py" "$tree/ci/"
    cp -r "$home/reports/facts_reports" "$tree/reports/"
    site=$("$venv/bin/python" -c 'import jinja2, pathlib; print(pathlib.Path(jinja2.__file__).parent.parent)')
    cp -r "$site/jinja2" "$site/markupsafe" "$tree/reports/" # beside our package: one PYTHONPATH finds both
    find "$tree" -name __pycache__ -prune -exec rm -rf {} +
    find "$tree/reports" -name '*.so' -delete # the pure Python form runs with every Python 3
    cp "$home/LICENSE" "$tree/"
}

# The licences of what was linked or copied in.
bundle_licences() {
    local tree=$1 package file
    mkdir -p "$tree/licences"
    for package in libjansson-dev libuv1-dev libxxhash-dev libsqlite3-dev libgcc-s1; do
        file=/usr/share/doc/$package/copyright
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

make_bundle() {
    local out= spec= stage tree glibc foreign
    while [[ $# -gt 0 ]]; do
        case $1 in
        -o) out=${2-}; shift 2 || die 2 "-o needs a file" ;;
        --cudnn) spec=${2-}; shift 2 || die 2 "--cudnn needs versions" ;;
        *) die 2 "bundle: $1: not understood; usage: ./facts bundle -o FILE.tar.xz [--cudnn V,V]" ;;
        esac
    done
    [[ $out == *.tar.xz || $out == *.tar.gz || $out == *.tar ]] || die 2 "usage: ./facts bundle -o FILE.tar.xz [--cudnn V,V]"
    [[ -d $(dirname -- "$out") && -w $(dirname -- "$out") ]] || die 3 "$(dirname -- "$out"): no such folder, or not writable"
    stage=$(mktemp -d "$build/bundle.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$stage' '$out.part'" EXIT
    tree=$stage/facts
    mkdir "$tree"
    bundle_programs "$tree"
    foreign=$(foreign_libraries "$tree"/bin/facts "$tree"/bin/facts-worker "$tree"/bin/nulldriver/libcuda.so.1 | tr '\n' ' ')
    [[ -z $foreign ]] || die 3 "not relocatable: the programs need $foreign"
    glibc=$(newest_glibc "$tree"/bin/facts "$tree"/bin/facts-worker "$tree"/bin/nulldriver/libcuda.so.1)
    bundle_data "$tree"
    bundle_licences "$tree"
    if [[ -n $spec ]]; then
        "$release/bin/facts" cudnn install "$spec" >"$stage/cudnn.tsv" || exit $?
        bundle_cudnn "$tree"
    fi
    say "packing ($(du -sh "$tree" | cut -f1))"
    case $out in
    *.xz) tar -C "$stage" --owner=0 --group=0 -cf - facts | xz -T0 -1 >"$out.part" ;;
    *.gz) tar -C "$stage" --owner=0 --group=0 -czf "$out.part" facts ;;
    *) tar -C "$stage" --owner=0 --group=0 -cf "$out.part" facts ;;
    esac
    mv -- "$out.part" "$out"
    say "$out: $(du -h --apparent-size "$out" | cut -f1); needs x86-64 Linux with glibc $glibc or newer; unpack it and run facts/facts"
}
