#!/bin/sh
# usage: tools/run-fuzz.sh FOLDER TARGET
#
# Runs FOLDER/TARGET, a fuzzer: first the inputs that have failed before, then for FUZZ_S seconds (600) new ones, in JOBS
# processes (1) that share what they find worth keeping. An input that fails is kept in FOLDER/found, and ends it.
# SHORT=1: a few thousand inputs, in one process, always from the same seed.
set -u
export LC_ALL=C

folder=$1 target=$2 jobs=${JOBS:-1} seconds=${FUZZ_S:-600}
case $target in
tree) inputs=tests/fuzz name=programs few=2000 with='-max_len=400 -len_control=10' ;;
requests)
    inputs=tests/fuzz/httpd name=inputs few=5000
    with='-max_len=1048576 -len_control=20 -dict=tests/fuzz/httpd/words'
    ;;
heads)
    inputs=tests/fuzz/proxy name=heads few=20000
    with='-max_len=20000 -len_control=20 -dict=tests/fuzz/proxy/words'
    ;;
*) echo "fuzz: there is no fuzzer '$target'" >&2 && exit 2 ;;
esac
corpus=$folder/corpus/$target log=$folder/log.$target
how="-max_total_time=$seconds -reload=1 $corpus" words="$seconds seconds"
if [ -n "${SHORT-}" ]; then
    rm -rf "$folder/short"
    mkdir -p "$folder/short"
    how="-seed=1 -runs=$few -reload=0 $folder/short" words="$few $name, those of seed 1" jobs=1
fi
mkdir -p "$corpus" "$folder/found"
rm -f "$log".*

# failed LOG: what the fuzzer said of it, without its chatter
failed()
{
    grep -a -v '^#[0-9]\|NEW_FUNC\|^INFO:\|^MS: \|^0x\|^\\\|^Base64: \|^artifact_prefix\|^ *[^ ]*: /bin' "$1" | tail -n 200
    found=$(sed -n 's/.*Test unit written to //p' "$1")
    [ -z "$found" ] || echo "fuzz: replay it by $folder/$target $found"
    exit 1
}

set -- $inputs/cases/*
[ -e "$1" ] || set --
if [ $# -gt 0 ]; then
    echo "fuzz: $target: $# inputs that failed before"
    "$folder/$target" -timeout=60 -artifact_prefix="$folder/found/" "$@" >"$log.cases" 2>&1 || failed "$log.cases"
fi

echo "fuzz: $target: $words, $jobs processes"
pids='' left=''
trap 'kill $pids 2>/dev/null' EXIT
trap 'exit 1' INT TERM
for job in $(seq "$jobs"); do
    # shellcheck disable=SC2086
    "$folder/$target" $with -timeout=60 -print_funcs=0 \
        -print_final_stats=1 -artifact_prefix="$folder/found/" $how $inputs/corpus \
        >"$log.$job" 2>&1 &
    pids="$pids $!" left="$left $job:$!"
done

while [ -n "$left" ]; do
    sleep 1
    still=''
    for one in $left; do
        if kill -0 "${one#*:}" 2>/dev/null; then
            still="$still $one"
        else
            wait "${one#*:}" || failed "$log.${one%:*}"
        fi
    done
    left=$still
done
pids=''
cat "$log".[0-9]* | awk -v name="$name" '
    /number_of_executed_units/ { runs += $2 }
    /DONE/ { if ($4 > covered) covered = $4 }
    END { print "fuzz: " runs " " name ", " covered " branches of the library and the test taken; nothing found" }'
