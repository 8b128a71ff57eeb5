#!/bin/sh
# usage: tools/check-seeds.sh FOLDER
#
# FOLDER's examples/seeds finds its three bugs by seeds and holds the mended forms against the same ones; each seed that it
# names has the bug again, with a report that says what happened.
set -u
export LC_ALL=C

cd "$(dirname "$0")/.." || exit 1
seeds=$1/examples/seeds
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0 count=0

complain()
{
    echo "seeds: $*"
    status=1
}

# has_again BUG WORDS: under the seed that was named
has_again()
{
    seed=$(sed -n "s/^$1: found by seed \\([0-9]*\\), .*/\\1/p" "$work/out")
    [ -n "$seed" ] || { complain "$1 was not found" && return; }
    grep -q "^$1: the mended form holds under 1000 seeds" "$work/out" || complain "the mended form of $1 does not hold"
    if STRAND_SEED=$seed timeout -s KILL 600 "$seeds" "$1" >"$work/again" 2>&1; then
        complain "seed $seed does not have $1 again"
    fi
    for words in "$2" "libstrand: seed $seed: " "the last steps:" "the strands:" "STRAND_SEED=$seed repeats this run"; do
        grep -qF "$words" "$work/again" || complain "the report of $1 lacks '$words'"
    done
    count=$((count + 1))
}

timeout -s KILL 600 "$seeds" >"$work/out" 2>"$work/err" || complain "it ended with $?: $(tail -n 3 "$work/err")"
has_again lost-update "money was paid in that is not there"
has_again lock-order "deadlock: nothing can ever run again"
has_again lost-message "a letter is neither kept nor in the box"
well=none
for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    STRAND_SEED=$seed timeout -s KILL 600 "$seeds" lock-order >"$work/out" 2>"$work/err" || continue
    well=$seed
    grep -q "^lock-order: nothing happened with seed $seed\$" "$work/out" || complain "it does not say that seed $seed went well"
    grep -q "^libstrand: seed $seed, schedule " "$work/err" || complain "the run of seed $seed is not told of"
    break
done
[ $well != none ] || complain "lock-order fails under each of 16 seeds"
timeout -s KILL 600 "$seeds" no-such-bug >"$work/out" 2>&1 && complain "it knows a bug that there is not"
[ $status -ne 0 ] || echo "seeds: ok ($count bugs found, mended, and had again)"
exit $status
