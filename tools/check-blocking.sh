#!/bin/sh
# usage: tools/check-blocking.sh
#
# Every function that is marked STRAND_BLOCKS has a row in tests/harness/blocking.h, so that tests/spec/blocking.c tries
# it; and there is no row of another. A satellite (tools/satellites) has its rows in tests/spec/NAME_blocking.c.
#
# contract 1.7
set -u
export LC_ALL=C

status=0 count=0

# check TABLE HEADER...
check()
{
    table=$1
    shift
    marked=$(grep -h '^STRAND_BLOCKS ' "$@" | sed -n 's/.*[ *]\(strand_[a-z0-9_]*\)(.*/\1/p' | sort)
    rows=$(sed -n 's/^ *ROW(\(strand_[a-z0-9_]*\),.*/\1/p' "$table" | sort)
    lines=$(grep -h 'STRAND_BLOCKS ' "$@" | grep -Evc '^#|^ \*')
    for name in $marked; do
        echo "$rows" | grep -qx "$name" || { echo "blocking: $table has no row for $name" && status=1; }
    done
    for name in $rows; do
        echo "$marked" | grep -qx "$name" || { echo "blocking: $name of $table is not marked STRAND_BLOCKS" && status=1; }
    done
    number=$(echo "$marked" | grep -c .)
    [ "$number" -eq "$lines" ] || { echo "blocking: $lines marks, but $number names" && status=1; }
    count=$((count + number))
}

core=$(ls include/strand.h include/strand/*.h)
for satellite in $(awk '/^[a-z]/ { print $1 }' tools/satellites); do
    core=$(echo "$core" | grep -vx "include/strand/$satellite\.h")
    check "tests/spec/${satellite}_blocking.c" "include/strand/$satellite.h"
done
# shellcheck disable=SC2086
check tests/harness/blocking.h $core
[ $status -eq 0 ] && echo "blocking: ok ($count functions)"
exit $status
