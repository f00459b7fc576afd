#!/usr/bin/env bash
# fuzz_one.sh TARGET SEEDS: runs one libFuzzer target. The target replays the seeds (a folder, when there is one) and the inputs that earlier runs kept.
# Then it looks for new inputs until FACTS_FUZZ_SECONDS (3) are over. Corpus and findings are kept beside the build.
set -euo pipefail
target=$1 seeds=$2
name=$(basename "$target")
kept=$(dirname "$(dirname "$target")")/fuzzing
corpus=("$kept/$name")
mkdir -p "${corpus[0]}" "$kept/findings"
[[ ! -d $seeds ]] || corpus+=("$seeds")
archive=$(dirname "$seeds")/kept.tar.xz # what earlier fuzzing reached (ci/fuzz_corpus.sh)
mkdir -p "$kept/kept"
if tar -tJf "$archive" | grep "^\./$name/" >/dev/null; then # a target that is new has none
    tar -xJf "$archive" -C "$kept/kept" "./$name"
    corpus+=("$kept/kept/$name")
fi
exec "$target" -max_total_time="${FACTS_FUZZ_SECONDS:-3}" -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$kept/findings/$name-" "${corpus[@]}"
