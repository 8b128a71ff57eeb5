#!/bin/sh
# usage: tools/run-tests.sh PROGRAM...
#
# Runs test programs, JOBS at a time, and prints a line for each run, and the output of those that fail. The name of a
# program's folder says how it is run:
#
#   unit     runs once
#   stress   on schedulers and numbers of threads
#   spec     the same, and once more on each scheduler under seeds; tests that do nothing but start helper programs,
#            which know nothing of schedulers, are run beside the first one alone
#   httpd    against a server on one thread and on two
#
# The environment: MODE decides how much of that is usual; SCHED, THREADS (words), SEEDS and SCALE override it. With
# HALF=1 each program takes half of the schedulers and numbers of threads, the first or the second depending on the
# commit. With FIRST=1 none is begun after one that has failed. STACKS=shared: spec alone, with all strands but roots on
# shared stacks, each copied out where it suspends. STRAND_TEST_STEPS=1: seeds alone, as only they have steps.
#
# Exit status: 0 if all passed; 124 if runs failed, but each only because it had not ended within LIMIT seconds; else 1.
#
# S-68, contract 2.17, 2.19
set -u
export LC_ALL=C

# run_one "PROGRAM|SCHEDULER|THREADS|SEEDS|PROGRAMS": runs a program. SEEDS may name the schedulers instead; PROGRAMS may
# be "no".
run_one()
{
    IFS='|' read -r program sched threads seeds programs <<END
$1
END
    name=${program#"${program%/*/*}/"}
    log=$SCRATCH/$(echo "$1" | tr '/|' '__')
    export STRAND_TEST_SCHED="$sched" STRAND_TEST_THREADS="$threads" STRAND_TEST_SEEDS="$seeds" \
        STRAND_TEST_PROGRAMS="$programs"
    # Under seeds a test is repeated as it is: the harness chooses fewer repetitions inside.
    [ -z "$seeds" ] || unset STRAND_TEST_SCALE
    [ -z "$threads" ] && unset STRAND_TEST_THREADS
    start=$(date +%s%N)
    timeout -k 5 "$LIMIT" "$program" >"$log" 2>&1 </dev/null
    status=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    counts=$(counts_of "$log" "$name" "$status")
    how="$sched $threads" first=${seeds%% *}
    [ -z "$seeds" ] || how="${first#*:} seeds"
    report "$name" "$how" "$status" "$ms" $counts
}

# What Criterion and the plain runner say at their ends, as "passed failed skipped"; a unit test counts as one. Criterion
# does not say how many it skipped: the harness writes a line for each.
counts_of()
{
    awk -v unit="${2%%/*}" -v status="$3" '
        /^\[.*Synthesis: Tested: / {
            gsub(/\033\[[0-9;]*m/, "")
            for (i = 1; i < NF; i++) {
                if ($i == "Tested:") tested = $(i + 1)
                if ($i == "Passing:") passed = $(i + 1)
            }
            failed = tested - passed
        }
        /^skipped: / { skipped++ }
        /^plain: / {
            for (i = 2; i <= NF; i++) {
                split($i, field, "=")
                if (field[1] == "passed") passed = field[2]
                if (field[1] == "failed") failed = field[2]
                if (field[1] == "skipped") skipped = field[2]
            }
        }
        END {
            if (unit == "unit" && status == 0) passed = 1
            print passed + 0, failed + 0, skipped + 0
        }' "$1"
}

# only_late STATUS MS: the time limit ended the run, and no test had failed by then. The plain runner writes FAILED at the
# beginning of a line for a test that fails, and Criterion FAIL in brackets, with or without colours.
only_late()
{
    { [ "$1" -eq 124 ] || { [ "$1" -eq 137 ] && [ "$2" -ge $((LIMIT * 1000)) ]; }; } &&
        ! grep -q '^FAILED\|^\[[^]]*FAIL' "$log"
}

# report NAME HOW STATUS MS PASSED FAILED SKIPPED: prints a line for the run, and adds one to $SCRATCH/counts, "passed
# failed skipped late". A run of no test has failed, unless seeds leave out all that are there; so has one that says so
# by its exit status only.
report()
{
    failed=$6 verdict=ok
    if [ "$3" -ne 0 ] || [ "$6" -ne 0 ] || { [ $(($5 + $7)) -eq 0 ] && [ -z "$seeds" ]; }; then
        verdict=FAILED
        [ "$failed" -gt 0 ] || failed=1
    fi
    late=0
    ! only_late "$3" "$4" || late=$failed
    echo "$5 $failed $7 $late" >>"$SCRATCH/counts"
    {
        flock 9
        printf '%-6s %-24s %-20s %4d passed' "$verdict" "$1" "$2" "$5"
        [ "$failed" -eq 0 ] || printf ', %d failed' "$failed"
        [ "$7" -eq 0 ] || printf ', %d skipped' "$7"
        printf ' %6d.%02d s\n' $(($4 / 1000)) $(($4 % 1000 / 10))
        if [ "$verdict" = FAILED ]; then
            touch "$SCRATCH/failed"
            [ "$3" -ne 124 ] || echo "       not ended after $LIMIT s"
            echo "---- exit status $3; what it wrote, but for what each seed says of itself:"
            grep -v '^libstrand: seed [0-9]*, schedule' "$log"
            echo "----"
        fi
    } 9>"$SCRATCH/lock"
}

# usual MODE: what is run where nobody says otherwise. Release takes all; the other modes so much that each mode meets
# each scheduler and each number of threads.
usual()
{
    some="stealing:1 global:8 global:2 stealing:4"
    case $1 in
    release) stress="$(cross "stealing global" "$all_threads")" spec="$(cross "$all_scheds" "1 4")" seeds=500 scale=100 ;;
    debug) stress=$some spec=$some seeds=100 scale=50 ;;
    asan) stress=$some spec=$some seeds=20 scale=10 ;;
    tsan) stress=$some spec=$some seeds=5 scale=10 ;;
    coverage) stress=$some spec=$some seeds=20 scale=10 ;;
    *) echo "run-tests: there is no mode '$1'" >&2 && exit 2 ;;
    esac
}

# cross SCHEDULERS NUMBERS: "SCHEDULER:NUMBER" of all; some schedulers have one thread
cross()
{
    for sched in $1; do
        numbers=$2
        case $sched in dedicated | current) numbers=1 ;; esac
        for n in $numbers; do
            echo "$sched:$n"
        done
    done
}

# All runs, a line each. Long ones come first, so that the end is not a wait for a single one.
runs()
{
    kinds="seeds httpd stress spec unit" commit=''
    [ -z "${STACKS-}" ] || kinds="seeds spec"
    [ -z "${STRAND_TEST_STEPS-}" ] || kinds=seeds
    [ -z "${HALF-}" ] || commit=$(git rev-parse HEAD 2>/dev/null)
    for kind in $kinds; do
        for program; do
            case $kind:$program in
            seeds:*/spec/*) seeded "$program" ;;
            stress:*/stress/*) with "$program" "$stress" ;;
            spec:*/spec/*) with "$program" "$spec" ;;
            httpd:*/httpd/*) with "$program" "$httpd" ;;
            unit:*/unit/*) echo "$program||||" ;;
            esac
        done
    done
}

# with PROGRAM "SCHEDULER:NUMBER..."
with()
{
    count=0 of=$(echo "$2" | wc -w) half='' programs=''
    if [ -n "${HALF-}" ] && [ "$of" -gt 1 ]; then
        half=$(echo "$commit $1" | cksum | cut -d ' ' -f 1)
        half=$((half % 2))
    fi
    for pair in $2; do
        if [ "${half:-$((2 * count / of))}" -eq $((2 * count / of)) ]; then
            echo "$1|${pair%:*}|${pair#*:}||$programs"
            programs=no
        fi
        count=$((count + 1))
    done
}

# Seeds play the threads that they need, so none are asked for. The first scheduler takes them all, the others a tenth of
# the one before: there is less for chance to decide in them. One process plays all schedulers: beginning takes as long as
# many seeds.
seeded()
{
    share=$seeds list=''
    for sched in ${SCHED:-$all_scheds}; do
        [ "$share" -eq 0 ] || list="$list $sched:$share"
        share=$(((share + 9) / 10))
    done
    [ -z "$list" ] || echo "$1|||${list# }|"
}

if [ "${1-}" = --one ]; then
    [ ! -e "$SCRATCH/failed" ] || [ -z "${FIRST-}" ] || exit 0
    run_one "$2"
    exit 0
fi

all_scheds="stealing global dedicated current" all_threads="1 2 4 8"
usual "${MODE:-release}"
if [ -n "${SCHED-}${THREADS-}" ]; then
    stress="$(cross "${SCHED:-$all_scheds}" "${THREADS:-$all_threads}")"
    spec=$stress
fi
httpd="$(cross stealing "${THREADS:-1 2}")"
seeds=${SEEDS:-$seeds}
limit=1800 # for programs that hang: no program needs a tenth of it on a machine with twenty times as much to do
[ -z "${STACKS-}" ] || export STRAND_STACKS="$STACKS"
export STRAND_TEST_SCALE="${SCALE:-$scale}" LIMIT="${LIMIT:-$limit}"
# Where a thread has variables of a library that was loaded late, LeakSanitizer guesses from the bytes before them how they
# were had, and may guess wrong, and crash; so it is not to follow them (they are memory of malloc's, which it knows).
export ASAN_OPTIONS="detect_leaks=1:intercept_tls_get_addr=0:${ASAN_OPTIONS-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
# Without its usual second of sleep at each exit. A seeded run that is aborted says what it can, from the handler.
TSAN_OPTIONS="halt_on_error=1:atexit_sleep_ms=0:report_signal_unsafe=0:suppressions=$(dirname "$0")/tsan.supp:external_symbolizer_path=$(command -v addr2line):${TSAN_OPTIONS-}"
export TSAN_OPTIONS
SCRATCH=$(mktemp -d) || exit 1
export SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT TERM

start=$(date +%s)
runs "$@" | xargs -d '\n' -r -P "${JOBS:-2}" -n 1 "$0" --one
touch "$SCRATCH/counts"
awk -v s=$(($(date +%s) - start)) -v mode="${MODE:-release}" '
    { passed += $1; failed += $2; skipped += $3; late += $4 }
    END {
        printf "tests (%s): %d runs, %d passed, %d failed, %d skipped, %d s\n", mode, NR, passed, failed, skipped, s
        exit failed == 0 && NR != 0 ? 0 : failed != 0 && failed == late ? 124 : 1
    }' "$SCRATCH/counts"
