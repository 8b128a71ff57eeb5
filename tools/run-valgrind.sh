#!/bin/sh
# usage: UNDER="valgrind OPTION..." tools/run-valgrind.sh PROGRAM...
#
# Runs each test of the programs, which are built with the plain runner, in a process of its own under valgrind, JOBS at a
# time. What valgrind counts as an error fails a test.
set -u
export LC_ALL=C

# run_one "PROGRAM TEST"
run_one()
{
    program=${1% *} test=${1##* }
    log=$SCRATCH/$(basename "$program").$test
    # shellcheck disable=SC2086
    if timeout -k 5 1800 $UNDER "$program" "$test" >"$log" 2>&1 </dev/null; then
        echo ok >>"$SCRATCH/counts"
        return
    fi
    echo failed >>"$SCRATCH/counts"
    {
        flock 9
        echo "FAILED $(basename "$program") $test"
        cat "$log"
    } 9>"$SCRATCH/lock"
}

if [ "${1-}" = --one ]; then
    run_one "$2"
    exit 0
fi

export STRAND_TEST_SCALE="${SCALE:-5}" STRAND_TEST_THREADS="${THREADS:-2}" STRAND_TEST_SCHED="${SCHED:-stealing}"
SCRATCH=$(mktemp -d) || exit 1
export SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT TERM

for program; do
    "$program" --list | sed "s|^|$program |"
done | xargs -d '\n' -r -P "${JOBS:-2}" -n 1 "$0" --one
touch "$SCRATCH/counts"
failed=$(grep -c failed "$SCRATCH/counts")
echo "valgrind: $(grep -c ok "$SCRATCH/counts") passed, $failed failed"
[ "$failed" -eq 0 ] && [ -s "$SCRATCH/counts" ]
