#!/usr/bin/env bash
# Renews the lists of pinned Python packages (ci/requirements*.txt, ci/package/requirements*.txt). Each list asks for packages in its lines
# that begin with "#:". This script writes everything below these lines. It writes the hashes of all wheels of a release, so that pip refuses none of them,
# whatever the Python and the machine.
# usage: ci/pins.sh [--upgrade] [LIST...]     versions stay unless --upgrade is given, or a line asks for another one
#        ci/pins.sh --check [LIST...]         changes nothing: is each list complete, and can the Pythons and machines below install it?
# uv resolves (PyPI: uv): the one on PATH, or one in build/uv.
# Exit: 0; 1 a list is not complete or cannot be installed; 2 bad input; 3 there is no uv.
set -euo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
pythons=(3.9 3.10 3.11 3.12 3.13 3.14)
machines=(x86_64 aarch64)
check= upgrade=()
case ${1-} in
--check) check=1; shift ;;
--upgrade) upgrade=(--upgrade); shift ;;
-*) sed -n '5,8s/^# //p' "$0" >&2; exit 2 ;;
esac
[[ $# -gt 0 ]] || set -- "$home"/ci/requirements*.txt "$home"/ci/package/requirements*.txt

if ! uv=$(type -P uv); then
    uv=$home/build/uv/bin/uv
    [[ -x $uv ]] || { python3 -m venv "$home/build/uv" && "$home/build/uv/bin/python" -m pip install --quiet --only-binary=:all: uv==0.13.9; } >&2 ||
        { echo "pins.sh: uv cannot be installed" >&2; exit 3; }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=(--quiet --no-python-downloads --only-binary :all:)

# pins LIST: what it pins. uv would keep the hashes of a list and add none.
pins() { sed -nE 's/^([A-Za-z0-9][^\\]*[^\\ ]).*/\1/p' "$1"; }

resolve() { # LIST OUT
    sed -n 's/^#: //p' "$1" >"$work/wanted.in"
    pins "$1" >"$2"
    pins "$home/ci/requirements.txt" >"$work/first.txt" # build/venv has these before it gets another list
    "$uv" pip compile "${options[@]}" --universal --generate-hashes --no-header --no-annotate --python-version "${pythons[0]}" \
        --constraint "$work/first.txt" "${upgrade[@]}" -o "$2" "$work/wanted.in" >/dev/null
}

installs() { # LIST
    local python machine
    for python in "${pythons[@]}"; do
        for machine in "${machines[@]}"; do
            "$uv" pip install "${options[@]}" --dry-run --no-deps --require-hashes --target "$work/none" \
                --python-version "$python" --python-platform "$machine-manylinux_2_28" -r "$1" || { echo "with Python $python on $machine" >&2; return 1; }
        done
    done
}

status=0
for list; do
    grep -q '^#: ' "$list" || { echo "pins.sh: $list: no line \"#: NAME\" asks for a package" >&2; exit 2; }
    if ! resolve "$list" "$work/pins.txt"; then
        echo "pins.sh: $list: cannot be resolved" >&2
        status=1
        continue
    fi
    { grep '^#' "$list"; cat "$work/pins.txt"; } >"$work/list.txt"
    if [[ -z $check ]]; then
        cat "$work/list.txt" >"$list"
    elif ! cmp -s "$work/list.txt" "$list"; then
        echo "pins.sh: $list: the index has other hashes for these versions; renew it: ci/pins.sh" >&2
        status=1
    fi
    installs "$work/list.txt" || { echo "pins.sh: $list: cannot be installed" >&2; status=1; }
done
exit $status
