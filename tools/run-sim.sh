#!/bin/sh
# usage: tools/run-sim.sh [--marked] PROGRAM...
#
# Runs workloads under seeds, JOBS at a time: first those that tests/sim/cases has for it, then 1 to SEEDS. Prints a
# line for each workload, and the output of those that fail. The environment: MODE decides how many seeds are usual;
# SEEDS overrides it; with STACKS=shared all strands live on shared stacks. --marked: programs of a build with STEPS=1,
# and only the seeds that have failed in such a one.
set -u
export LC_ALL=C

# cases_of WORKLOAD: the options for its seeds. A mark says where it was found: it is played elsewhere too
cases_of()
{
    awk -v name="$1" -v marked="$MARKED" '$1 == name && (!marked || $2 ~ /^s/) { sub(/^s/, "", $2); print "--seed", $2 }' \
        tests/sim/cases
}

# run_one PROGRAM: one line to standard output, and one to $SCRATCH/failed if it has failed
run_one()
{
    name=$(basename "$1") log=$SCRATCH/$(basename "$1")
    # shellcheck disable=SC2046
    "$1" $SHARED $(cases_of "$name") $([ "$MARKED" ] || echo --seeds "1-$SEEDS") >"$log" 2>&1 </dev/null
    status=$?
    verdict=ok
    [ $status -eq 0 ] || verdict=FAILED
    {
        flock 9
        if [ $verdict = ok ]; then
            awk -v name="$name" '
                { for (i = 2; i <= NF; i++) { if ($i ~ /^seeds,/) n = $(i - 1); if ($i ~ /^s,/) s = $(i - 1); if ($i ~ /^seeds\/s/) r = $(i - 1) } }
                END { printf "%-6s %-12s %8d seeds %9.2f s %8d seeds/s\n", "ok", name, n, s, r }' "$log"
        else
            echo "$name" >>"$SCRATCH/failed"
            printf '%-6s %-12s exit status %d; what it wrote:\n' FAILED "$name" $status
            cat "$log"
            echo "----"
        fi
    } 9>"$SCRATCH/lock"
}

if [ "${1-}" = --one ]; then
    run_one "$2"
    exit 0
fi
MARKED=
[ "${1-}" != --marked ] || { MARKED=yes && shift; }

case ${MODE:-release} in
release) usual=10000 ;;
debug) usual=2000 ;;
asan) usual=200 ;;
tsan) usual=50 ;;
*) echo "run-sim: there is no mode '$MODE'" >&2 && exit 2 ;;
esac
SEEDS=${SEEDS:-$usual}
case $SEEDS in '' | *[!0-9]* | 0) echo "run-sim: SEEDS is '$SEEDS', no number of seeds" >&2 && exit 2 ;; esac
[ $# -gt 0 ] || { echo "run-sim: there is no such workload" >&2 && exit 2; }
for case in $(awk '/^[^#]/ { print $1 }' tests/sim/cases); do
    [ -e "tests/sim/$case.c" ] || { echo "run-sim: tests/sim/cases names $case, which is no workload" >&2 && exit 2; }
done
export ASAN_OPTIONS="detect_leaks=1:intercept_tls_get_addr=0:${ASAN_OPTIONS-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
TSAN_OPTIONS="halt_on_error=1:atexit_sleep_ms=0:report_signal_unsafe=0:external_symbolizer_path=$(command -v addr2line):${TSAN_OPTIONS-}"
SCRATCH=$(mktemp -d) || exit 1
SHARED=
[ "${STACKS-}" != shared ] || SHARED=--shared
export SHARED SEEDS MARKED TSAN_OPTIONS SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT TERM

start=$(date +%s)
printf '%s\n' "$@" | xargs -d '\n' -P "${JOBS:-2}" -n 1 "$0" --one
failed=$(cat "$SCRATCH/failed" 2>/dev/null | wc -l)
of="$SEEDS seeds each${SHARED:+ on shared stacks}"
[ -z "$MARKED" ] || of="seeds that have failed at atomic steps"
printf 'sim (%s): %d workloads, %s, %d failed, %d s\n' "${MODE:-release}" $# "$of" "$failed" $(($(date +%s) - start))
[ "$failed" -eq 0 ]
