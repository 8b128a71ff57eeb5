#!/bin/sh
# usage: tools/check-instructions.sh PROGRAM "HOW IT IS BUILT"
#
# Counts the instructions of each row of tests/instructions, by valgrind, and compares them with the table
# tests/instructions/expected, for one thread. The first two lines of the table name the compiler, and the mode and flags
# of the library. More than two per cent above the table fail. An operation that gets dearer on purpose changes the table
# in the same commit, which says why. With another compiler or mode the counts are printed and not compared; with other
# flags that fails.
#
# What a run does every millisecond adds to a count, the more the slower the machine is. So the least of three runs counts,
# or of twelve if that is too much.
set -u
export LC_ALL=C

program=$1 built=$2 expected=tests/instructions/expected
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# counted ROW ROUNDS TIMES: "OPERATIONS INSTRUCTIONS" of a whole process, the least of so many
counted()
{
    : >"$work/counts"
    for _ in $(seq "$3"); do
        operations=$(valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$program" "$1" "$2" \
            2>"$work/said") || {
            echo "instructions: $program $1 $2 fails:" >&2
            cat "$work/said" >&2
            return 1
        }
        echo "$operations $(sed -n 's/.*I *refs: *//p' "$work/said" | tr -d ,)" >>"$work/counts"
    done
    sort -n -k 2 "$work/counts" | head -n 1
}

# cost ROW TIMES: the instructions of an operation
cost()
{
    few=$(counted "$1" 1000 "$2") && many=$(counted "$1" 3000 "$2") || return 1
    echo "$few $many" | awk '{ if (NF != 4) exit 1; printf "%.1f\n", ($4 - $2) / ($3 - $1) }'
}

# Whether the number is more than two per cent above the other.
is_above()
{
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b * 1.02) }'
}

how="# $(${CC:-gcc} --version | head -n 1)
# $built"
compare=true
if [ "$(head -n 2 $expected)" != "$how" ]; then
    # The compiler and the mode of the table, with other flags.
    case $how in "$(head -n 2 $expected | sed 's/^\(# MODE=[^ ]* \).*/\1/')"*) status=1 ;; esac
    [ $status -eq 0 ] || echo "instructions: the flags have changed: write them and the counts into $expected"
    echo "instructions: not compared, for the table has"
    head -n 2 $expected
    echo "and this is"
    echo "$how"
    compare=false
fi
rows=$("$program") || exit 1
for row in $rows; do
    now=$(cost "$row" 3) || exit 1
    if ! $compare; then
        echo "$row $now"
        continue
    fi
    then=$(sed -n "s/^$row //p" $expected)
    if [ -z "$then" ]; then
        echo "instructions: $expected lacks a line '$row $now'"
        status=1
    elif is_above "$now" "$then"; then
        now=$(cost "$row" 12) || exit 1
        ! is_above "$now" "$then" || { echo "instructions: $row takes $now, and $expected has $then"; status=1; }
    elif is_above "$then" "$now"; then
        echo "instructions: $row takes $now now, and $expected has $then: lower it there"
    fi
done
gone=$(sed '/^#/d; s/ .*//' $expected | grep -vxF "$rows")
[ -z "$gone" ] || { echo "instructions: $expected has lines without a row: $gone"; status=1; }
! $compare || [ $status -ne 0 ] || echo "instructions: ok ($(echo "$rows" | wc -l) rows)"
exit $status
