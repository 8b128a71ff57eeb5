#!/bin/sh
# usage: tools/run-fuzz.sh FOLDER
#
# Runs FOLDER/tree, the fuzzer: first the inputs that have failed before (tests/fuzz/cases), then for FUZZ_S seconds
# (600) new ones, in JOBS processes (1) that share what they find worth keeping in FOLDER/corpus. An input that fails is
# kept in FOLDER/found, and ends it. SHORT=1: 2000 programs, in one process, others after each commit.
set -u
export LC_ALL=C

folder=$1 jobs=${JOBS:-1} seconds=${FUZZ_S:-600}
how="-max_total_time=$seconds -reload=1 $folder/corpus" words="$seconds seconds"
if [ -n "${SHORT-}" ]; then
    rm -rf "$folder/short"
    mkdir -p "$folder/short"
    turn=$(git rev-list --count HEAD 2>/dev/null || echo 1)
    how="-seed=$turn -runs=2000 -reload=0 $folder/short" words="2000 programs, those of seed $turn" jobs=1
fi
mkdir -p "$folder/corpus" "$folder/found"
rm -f "$folder"/log.*

# failed LOG: what the fuzzer said of it, without its chatter
failed()
{
    grep -a -v '^#[0-9]\|NEW_FUNC\|^INFO:\|^MS: \|^0x\|^\\\|^Base64: \|^artifact_prefix\|^ *[^ ]*: /bin' "$1" | tail -n 200
    found=$(sed -n 's/.*Test unit written to //p' "$1")
    [ -z "$found" ] || echo "fuzz: replay it by $folder/tree $found"
    exit 1
}

set -- tests/fuzz/cases/*
[ -e "$1" ] || set --
if [ $# -gt 0 ]; then
    echo "fuzz: $# inputs that failed before"
    "$folder/tree" -timeout=60 -artifact_prefix="$folder/found/" "$@" >"$folder/log.cases" 2>&1 || failed "$folder/log.cases"
fi

echo "fuzz: $words, $jobs processes"
pids='' left=''
trap 'kill $pids 2>/dev/null' EXIT
trap 'exit 1' INT TERM
for job in $(seq "$jobs"); do
    # shellcheck disable=SC2086
    "$folder/tree" -max_len=400 -len_control=10 -timeout=60 -print_funcs=0 \
        -print_final_stats=1 -artifact_prefix="$folder/found/" $how tests/fuzz/corpus \
        >"$folder/log.$job" 2>&1 &
    pids="$pids $!" left="$left $job:$!"
done

while [ -n "$left" ]; do
    sleep 1
    still=''
    for one in $left; do
        if kill -0 "${one#*:}" 2>/dev/null; then
            still="$still $one"
        else
            wait "${one#*:}" || failed "$folder/log.${one%:*}"
        fi
    done
    left=$still
done
pids=''
cat "$folder"/log.[0-9]* | awk '
    /number_of_executed_units/ { runs += $2 }
    /DONE/ { if ($4 > covered) covered = $4 }
    END { print "fuzz: " runs " programs, " covered " branches of the library and the test taken; nothing found" }'
