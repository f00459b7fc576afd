#!/usr/bin/env bash
# fresh.sh COMMAND...: a minimal Debian in a folder, a clone of the last commit in it, and there the commands, one after the other, until one fails.
# So CI is a machine on which nobody installed anything by hand. Of this machine it sees /proc, /dev, the kernel, and a cache of downloaded Debian
# packages; it gets how this machine reaches its package indexes (apt's sources, pip's configuration, certificates, proxies). The folder goes at the end.
# Where no such folder can be made (no root, no debootstrap), the commands run in place, without this machine's CUDA toolkits and with empty caches.
#   FACTS_FRESH         folder to make the machine in (default: a new one below TMPDIR)
#   FACTS_FRESH_KEEP=1  keep it
#   FACTS_FRESH_SUITE   which Debian (default: bookworm); bullseye has Python 3.9, forky has Python 3.14
#   FACTS_FRESH_MACHINE arm64: emulated by qemu-user-static
# Exit: of the last command that ran; 3 the machine could not be made.
set -euo pipefail
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
release=${FACTS_FRESH_SUITE:-bookworm}
machine=${FACTS_FRESH_MACHINE:-amd64}
newcomer=/home/new # the home folder in the machine
include=ca-certificates,git,python3 # what README's first line needs: git clone, and Python

say() { printf 'fresh.sh: %s\n' "$*" >&2; }

# Variables that say how packages are reached. A folder of wheels of this machine is none of them.
reaching() { env -0 | grep -zE '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|CERT|DEFAULT_TIMEOUT|RETRIES)|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|[a-zA-Z]+_(proxy|PROXY))=' || true; }

# The commands, in the clone; each with its seconds.
run_commands() {
    local command status start
    cd "$home"
    for command; do
        start=$SECONDS status=0
        printf '== %s\n' "$command"
        bash -c "$command" || status=$?
        printf '== %s: exit %d in %d s\n' "$command" "$status" $((SECONDS - start)) >&2
        [[ $status -eq 0 ]] || return "$status"
    done
}

# Debian's mirror and keys as this machine has them, if it is of this release.
sources() { grep -lsE "(^Suites:.*|^deb .*)\b$release\b" /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} || true; }

mirror() {
    local files
    mapfile -t files < <(sources)
    if [[ ${#files[@]} -eq 0 ]]; then # another release: from where this one comes
        apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1
        return
    fi
    sed -nE "s/^URIs: *([^ ]+).*/\1/p; s/^deb( \[[^]]*\])? ([^ ]+) $release .*/\2/p" "${files[@]}" | grep -v security | head -n 1
}

make_root() { # FOLDER
    local root=$1 cache=$2 url script=/usr/share/debootstrap/scripts/$release
    url=$(mirror)
    mkdir -p "$root" "$cache"
    [[ -e $script ]] || script=${script%/*}/sid # newer than this debootstrap
    if ! debootstrap --arch="$machine" --variant=minbase --include="$include" --cache-dir="$cache" "$release" "$root" ${url:+"$url" "$script"} >"$root.log" 2>&1; then
        tail -n 5 "$root.log" >&2
        say "the machine could not be made"
        exit 3
    fi
    mapfile -t files < <(sources)
    cp -rL /usr/share/keyrings/. "$root/usr/share/keyrings/"
    if [[ ${#files[@]} -gt 0 ]]; then
        rm -f "$root/etc/apt/sources.list"
        for file in "${files[@]}"; do install -D -m 644 "$file" "$root$file"; done
    fi
    apt-config dump | grep -E '^Acquire::(https?|Check|Retries|Languages)\b' >"$root/etc/apt/apt.conf.d/90reaching" || true
    cp -r /etc/apt/auth.conf.d/. "$root/etc/apt/auth.conf.d/" 2>/dev/null || true
    for file in /etc/pip.conf /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        [[ ! -f $file ]] || cat "$file" >"$root$file"
    done
}

# In namespaces of its own: what is mounted and started there ends with it.
enter_root() { # ROOT CACHE COMMAND...
    local root=$1 cache=$2; shift 2
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --bind "$cache" "$root/var/cache/apt/archives"
    mkdir -p "$root$newcomer" "$root/old"
    cd "$root"
    pivot_root . old
    umount -l /old
    cd "$newcomer"
    local variables
    mapfile -td "" variables < <(reaching)
    exec env -i HOME="$newcomer" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb DEBIAN_FRONTEND=noninteractive "${variables[@]}" ${CI:+CI=$CI} \
        bash -c "$(declare -f run_commands); home=$newcomer/facts; run_commands \"\$@\"" fresh.sh "$@"
}

# Programs of another machine start by themselves while this script runs.
emulate() {
    local names=/proc/sys/fs/binfmt_misc name=facts-$$ kind
    kind=$(cat /usr/lib/binfmt.d/qemu-aarch64.conf) || { say "qemu-user-static is missing; run this once: apt-get install qemu-user-static"; exit 3; }
    [[ -e $names/register ]] || mount -t binfmt_misc binfmt_misc "$names" || exit 3
    echo "${kind/:qemu-aarch64:/:$name:}" >"$names/register" || exit 3
    emulated=$names/$name
}

# Why no machine can be made here; nothing: it can.
obstacle() {
    [[ -z ${FACTS_IN_PLACE:-} ]] || { echo "FACTS_IN_PLACE is set"; return; }
    if [[ $(id -u) != 0 ]]; then echo "not root"
    elif ! command -v debootstrap >/dev/null && ! { apt-get install -y --no-install-recommends debootstrap || { apt-get update && apt-get install -y --no-install-recommends debootstrap; }; } >/dev/null 2>&1; then
        echo "no debootstrap"
    elif ! unshare --mount --pid --fork true 2>/dev/null; then echo "no namespaces"
    fi
}

# In namespaces of its own: empty folders over the toolkits, and a cache of the loader without them.
hide_toolkits() { # UID GID COMMAND...
    local folder cache user=$1 group=$2; shift 2
    for folder in /usr/local/cuda /usr/local/cuda-*; do
        [[ -L $folder || ! -d $folder ]] || mount -t tmpfs none "$folder"
    done
    cache=$(mktemp)
    /sbin/ldconfig -X -C "$cache" 2>/dev/null && mount --bind "$cache" /etc/ld.so.cache
    rm -f "$cache" # bound: it stays until the namespace ends
    [[ $user == 0 ]] || exec unshare --user --map-user="$user" --map-group="$group" bash "$0" --in-place "$@"
    run_commands "$@"
}

in_place() {
    local kept=() folder hidden=()
    caches=$(mktemp -d)
    trap 'rm -rf "$caches"' EXIT
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do [[ -x $folder/nvcc ]] || kept+=("$folder"); done
    PATH=$(IFS=:; echo "${kept[*]}")
    export PATH XDG_CACHE_HOME=$caches CUDA_HOME=/nonexistent
    unset CUDA_PATH LD_LIBRARY_PATH
    for folder in --mount "--user --map-root-user --mount"; do
        # shellcheck disable=SC2086
        [[ ${#hidden[@]} -gt 0 ]] || ! unshare $folder true 2>/dev/null || read -ra hidden <<<"$folder"
    done
    if [[ ${#hidden[@]} -gt 0 ]]; then
        unshare "${hidden[@]}" bash "$0" --hide "$(id -u)" "$(id -g)" "$@"
    else
        say "/usr/local/cuda cannot be hidden here; only PATH and CUDA_HOME are without it"
        run_commands "$@"
    fi
}

main() { # as a function: bash has read the whole script before it starts
    case ${1-} in # this script again, within its namespaces
    --enter) shift; enter_root "$@" ;;
    --hide) shift; hide_toolkits "$@"; exit ;;
    --in-place) shift; run_commands "$@"; exit ;;
    esac
    [[ $# -gt 0 ]] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
    why=$(obstacle)
    if [[ -n $why ]]; then
        say "$why: these commands run in place, without this machine's CUDA toolkits and with empty caches: packages that somebody installed here by hand are not noticed"
        in_place "$@"
        exit
    fi
    root=${FACTS_FRESH:-$(mktemp -d --tmpdir facts-fresh.XXXXXX)/root}
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/facts-fresh/apt
    leave() { [[ -z ${emulated-} ]] || echo -1 >"$emulated"; [[ -n ${FACTS_FRESH_KEEP:-} ]] || rm -rf --one-file-system "$root" "$root.log"; [[ -n ${FACTS_FRESH:-} || -n ${FACTS_FRESH_KEEP:-} ]] || rmdir "$(dirname "$root")"; }
    trap leave EXIT
    start=$SECONDS
    [[ $machine == "$(dpkg --print-architecture)" ]] || emulate
    [[ -x $root/bin/bash ]] || make_root "$root" "$cache"
    mkdir -p "$cache/partial" "$root$newcomer"
    rm -rf "$root$newcomer/facts"
    git -c safe.directory='*' clone --quiet --no-hardlinks "$home" "$root$newcomer/facts"
    [[ -z $(git -C "$home" status --porcelain 2>/dev/null) ]] || say "what is not committed is not in it"
    say "a minimal Debian in $root, made in $((SECONDS - start)) s"
    status=0
    unshare --mount --pid --fork --kill-child --propagation private bash "$0" --enter "$root" "$cache" "$@" </dev/null || status=$?
    exit "$status"
}

main "$@"
