# Part of ./facts: `./facts docs`. Prints the pages that programs print, then builds the site into build/docs; a warning is an error.
# Needs no GPU and no cuDNN.

docs_help() {
    cat <<'EOF'
The documentation as a site: build/docs/index.html, which a browser opens without a server.

  ./facts docs         prints the pages that are not in git (commands, API, known failures, catalogue) and
                       builds the site; the first time pinned packages of Sphinx are downloaded (22 MB)
  ./facts docs --help  prints this text
EOF
}

make_docs() {
    case ${1-} in
    -h | --help) docs_help; return ;;
    ?*) die 2 "docs: no option \"$1\" (./facts docs --help)" ;;
    esac
    requirements+=("$home/ci/requirements-docs.txt")
    set_up
    run_environment
    step "printing the pages (ci/docs/site_tree.py)" "$venv/bin/python" -B "$home/ci/docs/site_tree.py" "$build/docs-source"
    step "building the site" "$venv/bin/python" -m sphinx --fail-on-warning --nitpicky --keep-going --quiet \
        --conf-dir "$home/docs" -d "$build/docs-cache" "$build/docs-source" "$build/docs"
    printf '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">FACTS</a>\n' >"$build/docs/index.html"
    echo "$build/docs/index.html"
}
