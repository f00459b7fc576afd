#!/usr/bin/env bash
# fuzz_corpus.sh BUILD [SECONDS]: renews harness/fuzz/corpus/kept.tar.xz: each target of BUILD (build/fuzz) looks for new inputs for SECONDS (60), then
# the smallest inputs that reach everything that was reached are kept, at most KEPT (40,000) bytes of each target.
set -euo pipefail
[[ $# -ge 1 && -d $1/bin ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
home=$(cd -- "$(dirname -- "$0")/.." && pwd)
corpus=$home/harness/fuzz/corpus
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found" "$work/kept"
[[ ! -e $corpus/kept.tar.xz ]] || tar -xJf "$corpus/kept.tar.xz" -C "$work/found"
for target in "$1"/bin/fuzz_*; do
    name=$(basename "$target")
    mkdir -p "$work/found/$name" "$work/kept/$name"
    seeds=("$work/found/$name" "$1/fuzzing/$name" "$corpus/$name")
    for i in 1 2; do [[ -d ${seeds[i]} ]] || unset "seeds[i]"; done
    "$target" -max_total_time="${2:-60}" -timeout=10 -rss_limit_mb=1024 -max_len=4096 -verbosity=0 -artifact_prefix="$work/" "${seeds[@]}" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
    "$target" -merge=1 -timeout=10 -rss_limit_mb=1024 -max_len=4096 "$work/kept/$name" "${seeds[@]}" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
    # The smallest first: what is beyond the bound is found again by whoever fuzzes on.
    find "$work/kept/$name" -type f -printf '%s %p\n' | sort -n | awk -v most="${KEPT:-40000}" '(all += $1) > most { print $2 }' | xargs -r rm
    echo "$name: $(find "$work/kept/$name" -type f | wc -l) inputs, $(du -sb "$work/kept/$name" | cut -f1) bytes"
done
tar -C "$work/kept" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | xz -9e >"$corpus/kept.tar.xz"
ls -l "$corpus/kept.tar.xz"
