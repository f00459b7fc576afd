#!/usr/bin/env bash
# fuzz_one.sh TARGET HOME SECONDS: one libFuzzer target over its corpus (harness/fuzz/corpus/NAME, when there is one), findings go to build/fuzz/findings.
set -euo pipefail
target=$1 home=$2 seconds=$3
name=$(basename "$target")
work=$home/build/fuzz/corpus/$name
mkdir -p "$work" "$home/build/fuzz/findings"
seeds=$home/harness/fuzz/corpus/$name
[[ -d $seeds ]] || seeds=
if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 -artifact_prefix="$home/build/fuzz/findings/$name-" \
    "$work" $seeds >"$home/build/fuzz/$name.log" 2>&1; then
    tail -n 40 "$home/build/fuzz/$name.log"
    exit 1
fi
grep -E 'number_of_executed_units' "$home/build/fuzz/$name.log" | sed "s/^/$name: /"
