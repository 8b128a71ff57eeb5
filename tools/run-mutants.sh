#!/bin/sh
# usage: tools/run-mutants.sh OUT PATCH...
#
# Breaks the library on purpose, one patch at a time, and checks which test finds it. Each patch gets a copy of the
# tree, with the objects of OUT (and of OUT/steps) and all times, so that only what it touches is compiled again. Its
# head says what it breaks, and which test is tried first:
#
#   # A sentence.
#   # breaks: LABEL | RULE | contract STATEMENT
#   # found by: sim WORKLOAD | sim-steps WORKLOAD | test NAME | test-steps NAME | fault WORKLOAD
#
# A workload of make fault is played in full up to the first call whose failure finds something, under a seed and on one
# thread before two. If it is not found there, all other workloads are run, then all of them at atomic steps, each under
# a tenth of the seeds. Prints a line for each patch: the test that found it, after how many seeds or failed calls. What
# found one is then run as long on the tree as it is, where it has to find nothing. Exit status 0 if all were found, and
# nothing else.
#
# A test that does not end counts only if the mutant holds it up, not the machine: it runs again, and the tree as it is
# runs beside it, under the same load, and ends within a quarter of the limit. Otherwise both run again under four times
# the limit.
#
# The environment: SEEDS, the most for a workload (20000); JOBS; LIMIT, the most seconds for one run (120); SHORT=1, a
# dozen of the patches only, others after each commit; the others have to apply.
set -u
export LC_ALL=C

# A make of its own: neither the jobs nor the goals of the one that has called this.
build()
{
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make --no-print-directory "$@" 2>&1
}

# program_of WAY NAME, folder_of WAY: what is run, and the variables that it is built with
program_of()
{
    case $1 in
    sim) echo "$OUT/sim/$2" ;;
    sim-steps) echo "$OUT/steps/sim/$2" ;;
    test) echo "$OUT/tests/plain/spec/$2" ;;
    test-steps) echo "$OUT/steps/tests/plain/spec/$2" ;;
    fault) echo "$OUT/tests/fault" ;;
    esac
}
variables_of()
{
    case $1 in
    sim | fault) echo "OUT=$OUT STEPS=" ;;
    sim-steps) echo "OUT=$OUT/steps STEPS=1" ;;
    test) echo "OUT=$OUT STEPS= RUNNER=plain" ;;
    test-steps) echo "OUT=$OUT/steps STEPS=1 RUNNER=plain" ;;
    esac
}

# run WAY NAME SEEDS LOG: exit status 0 if nothing was found; others are finds, but 124 and 137: it did not end
run()
{
    case $1 in
    test)
        # Four at a time: what hangs takes time, and nothing else.
        FIRST=1 JOBS=4 SEEDS=200 SCHED='' THREADS='' SCALE=20 LIMIT=$((LIMIT / 4)) tools/run-tests.sh \
            "$(program_of "$1" "$2")" >"$4" 2>&1 </dev/null
        ;;
    test-steps)
        FIRST=1 STRAND_TEST_STEPS=1 JOBS=4 SEEDS=200 SCHED=stealing THREADS=2 SCALE=20 LIMIT=$((LIMIT / 4)) \
            tools/run-tests.sh "$(program_of "$1" "$2")" >"$4" 2>&1 </dev/null
        ;;
    fault)
        JOBS=1 timeout -k 5 "$LIMIT" "$(program_of "$1" "$2")" --first "$2" >"$4" 2>&1 </dev/null
        ;;
    *)
        timeout -k 5 "$LIMIT" "$(program_of "$1" "$2")" --seeds "1-$3" >"$4" 2>&1 </dev/null
        ;;
    esac
}

# seeds_of LOG: after how many a workload has found something; 0: before the first
seeds_of()
{
    awk '
        /^sim: .* FAILED under seed/ { for (i = 1; i < NF && !n; i++) if ($i == "the") n = $(i + 1) + 0 }
        END { print n + 0 }' "$1"
}

# points_of LOG: how many calls have failed until one was found
points_of()
{
    awk '/^fault: / { n = $2 } END { print n + 0 }' "$1"
}

# copy TO: what the programs are made of, and those objects that are already there
copy()
{
    mkdir -p "$1/$OUT/obj" "$1/$OUT/steps/obj" || return 1
    cp -a Makefile src include tests tools "$1" || return 1
    for folder in "$OUT" "$OUT/steps"; do
        [ ! -e "$folder/flags" ] || cp -a "$folder/flags" "$1/$folder" || return 1
        cp -a "$folder/obj/src" "$1/$folder/obj" || return 1
        for runner in criterion plain; do
            [ ! -d "$folder/obj/$runner/tests" ] || {
                mkdir -p "$1/$folder/obj/$runner/tests"
                for part in sim harness spec fault; do
                    [ ! -d "$folder/obj/$runner/tests/$part" ] ||
                        cp -a "$folder/obj/$runner/tests/$part" "$1/$folder/obj/$runner/tests" || return 1
                done
            }
        done
    done
}

# helpers_of WAY NAME: the programs that a test runs
helpers_of()
{
    case $1 in
    test) folder=$OUT/programs ;;
    test-steps) folder=$OUT/steps/programs ;;
    *) return ;;
    esac
    grep -ho 'test_program([^"]*"[a-z_]*"' "tests/spec/$2".c* | sed "s|.*(.*\"\(.*\)\"|$folder/\1|" | sort -u
}

# beside WAY NAME: runs a test that did not end again, beside the same test of the tree as it is. Exit status as that of
# run, but 1, and hung=yes, if the mutant holds the test up.
beside()
{
    for factor in 1 4 16; do
        (cd "$home" && LIMIT=$((factor * LIMIT / 4)) run "$1" "$2" 0 "$SCRATCH/$mutant.unbroken") &
        (LIMIT=$((factor * LIMIT)) run "$1" "$2" 0 "$SCRATCH/$mutant.log")
        result=$?
        wait $!
        unbroken=$?
        [ $result -eq 124 ] || return $result
        [ $unbroken -ne 0 ] || { hung=yes && return 1; }
    done
    return 124
}

# hunt WAY NAME SEEDS: in a copy; true if it is found
hunt()
{
    program=$(program_of "$1" "$2")
    touch tests/harness/program.c # where the helpers are is compiled into it
    # shellcheck disable=SC2046
    build $(variables_of "$1") "$program" $(helpers_of "$1" "$2") >"$SCRATCH/$mutant.build" || {
        broken=yes
        return 1
    }
    run "$1" "$2" "$3" "$SCRATCH/$mutant.log"
    result=$?
    case $1:$result in test*:124) beside "$1" "$2" ;; *) (exit $result) ;; esac
    case $? in
    0) return 1 ;;
    124 | 137)
        slow="$slow $1 $2"
        return 1
        ;;
    esac
    way="$1 $2"
    case $1 in
    sim*) seeds=$(seeds_of "$SCRATCH/$mutant.log") unit=seeds ;;
    fault) seeds=$(points_of "$SCRATCH/$mutant.log") unit=points ;;
    esac
}

# hunt_all NAMED: where it is found usually, then everywhere
hunt_all()
{
    hunt "${1% *}" "${1#* }" "$SEEDS" && return 0
    for each in sim sim-steps; do
        for workload in $WORKLOADS; do
            [ -z "$broken" ] || return 1
            [ "$1" = "$each $workload" ] || ! hunt "$each" "$workload" $(((SEEDS + 9) / 10)) || return 0
        done
    done
    return 1
}

# head_of PATCH KEY: what stands behind it in a patch's head
head_of()
{
    sed -n "/^--- /q; s/^# $2: //p" "$1"
}

# one PATCH: one line to standard output, one to $SCRATCH/results
one()
{
    patch=$(realpath "$1") mutant=$(basename "$1" .patch) named=$(head_of "$1" 'found by')
    broken='' slow='' hung='' way='' seeds='' unit='' start=$(date +%s)
    tree=$SCRATCH/$mutant
    verdict=SURVIVES
    case $named in
    'sim '* | 'sim-steps '* | 'test '* | 'test-steps '* | 'fault '*) ;;
    *) broken=yes && echo "its head does not say what it is found by" >"$SCRATCH/$mutant.build" ;;
    esac
    if [ -z "$broken" ]; then
        copy "$tree" && (cd "$tree" && GIT_CEILING_DIRECTORIES=$SCRATCH git apply "$patch") \
            >"$SCRATCH/$mutant.build" 2>&1 || broken=yes
    fi
    if [ -z "$broken" ]; then
        home=$PWD
        cd "$tree" || exit 1
        ! hunt_all "$named" || verdict=found
        cd "$home" || exit 1
    fi
    rm -rf "$tree"
    [ -z "$broken" ] || verdict=BROKEN
    {
        flock 9
        echo "$verdict ${way:-$named} ${seeds:-0} ${hung:-no}" >>"$SCRATCH/results"
        printf '%-8s %-26s %-22s ' "$verdict" "$mutant" "$way"
        [ -z "$seeds" ] && printf '%6s       ' '' || printf '%6d %-6s' "$seeds" "$unit"
        printf '%4d s%s%s\n' $(($(date +%s) - start)) "${hung:+  (it hangs)}" "${slow:+  (not ended:$slow)}"
        [ -z "$broken" ] || cat "$SCRATCH/$mutant.build"
    } 9>"$SCRATCH/lock"
}

# as_it_is WAY NAME SEEDS: what has found something, on the tree that is not broken. Nothing hangs there, so that the limit
# is one that a busy machine keeps.
as_it_is()
{
    log=$SCRATCH/$1-$2.log
    LIMIT=$((20 * LIMIT)) run "$1" "$2" "$3" "$log" && return 0
    {
        flock 9
        echo "$1 $2" >>"$SCRATCH/false"
        printf '%-8s %-26s %-22s\n' FAILED 'the tree as it is' "$1 $2"
        cat "$log"
    } 9>"$SCRATCH/lock"
}

case ${1-} in
--one | --as-it-is)
    OUT=$2
    shift 2
    if [ $# -eq 1 ]; then one "$1"; else as_it_is "$@"; fi
    exit 0
    ;;
esac

OUT=$1
shift
[ $# -gt 0 ] || { echo "run-mutants: there is no such mutant" >&2 && exit 2; }
for patch; do
    [ -e "$patch" ] || { echo "run-mutants: there is no $patch" >&2 && exit 2; }
done
SEEDS=${SEEDS:-20000}
case $SEEDS in *[!0-9]* | 0) echo "run-mutants: SEEDS is '$SEEDS', no number of seeds" >&2 && exit 2 ;; esac
if [ -n "${SHORT-}" ]; then
    for patch; do
        git apply --check "$patch" || { echo "run-mutants: $patch does not apply any more" >&2 && exit 1; }
    done
    turn=$(git rev-list --count HEAD 2>/dev/null || echo 0)
    step=$((($# + 11) / 12))
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$@" | awk -v step="$step" -v turn="$turn" 'NR % step == turn % step')
fi
WORKLOADS=$(for f in tests/sim/*.c; do basename "$f" .c; done | grep -vx sim)
SCRATCH=$PWD/$OUT/mutants
rm -rf "$SCRATCH"
mkdir -p "$SCRATCH" || exit 1
export SEEDS SCRATCH WORKLOADS LIMIT="${LIMIT:-120}" MODE="${MODE:-release}"
trap 'exit 130' INT TERM

start=$(date +%s)
# The workloads are there already.
for patch; do head_of "$patch" 'found by'; done | awk '$1 ~ /^test/ || $1 == "fault"' | sort -u >"$SCRATCH/others"
while read -r way name; do
    # shellcheck disable=SC2046
    build $(variables_of "$way") "$(program_of "$way" "$name")" $(helpers_of "$way" "$name") || exit 1
done <"$SCRATCH/others"
printf '%s\n' "$@" | xargs -d '\n' -P "${JOBS:-2}" -n 1 "$0" --one "$OUT"
touch "$SCRATCH/results" "$SCRATCH/false"
awk '
    $1 == "found" && $4 >= most[$2 " " $3] { most[$2 " " $3] = $4 > 0 ? $4 : 1 }
    END { for (way in most) print way, most[way] }' "$SCRATCH/results" | xargs -r -P "${JOBS:-2}" -L 1 "$0" --as-it-is "$OUT"
awk -v n=$# -v false="$(wc -l <"$SCRATCH/false")" -v s=$(($(date +%s) - start)) '
    { verdict[$1]++ }
    $1 == "found" { by[$2]++ }
    $5 == "yes" { hangs++ }
    END {
        printf "mutants: %d, %d found", n, verdict["found"]
        printf " (%d by make sim, %d at atomic steps, %d by make test, %d by make fault)", by["sim"],
            by["sim-steps"] + by["test-steps"], by["test"], by["fault"]
        printf ", %d of them because a test hangs", hangs
        printf ", %d survive, %d broken, %d false finds; %d s\n", verdict["SURVIVES"], verdict["BROKEN"], false, s
        exit NR != n || verdict["found"] != n || false
    }' "$SCRATCH/results"
