# Part of ./facts: `./facts docs`. Builds the site into build/docs; a warning is an error. Needs no GPU and no cuDNN.

docs_help() {
    cat <<'EOF'
The documentation as a site: build/docs/index.html, which a browser opens without a server.

  ./facts docs         builds it; the first time pinned packages of Sphinx are downloaded (22 MB)
  ./facts docs --help  prints this text
EOF
}

make_docs() {
    case ${1-} in
    -h | --help) docs_help; return ;;
    ?*) die 2 "docs: no option \"$1\" (./facts docs --help)" ;;
    esac
    mkdir -p "$build"
    : >"$log"
    requirements+=("$home/ci/requirements-docs.txt")
    install_packages /dev/null
    make_venv
    step "building the site" "$venv/bin/python" -m sphinx --fail-on-warning --nitpicky --keep-going --quiet \
        --conf-dir "$home/docs" -d "$build/docs-cache" "$home" "$build/docs"
    printf '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">FACTS</a>\n' >"$build/docs/index.html"
    echo "$build/docs/index.html"
}
