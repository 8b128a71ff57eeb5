#!/bin/sh
# usage: tools/check-blocking.sh
#
# Every function that is marked STRAND_BLOCKS has a row in tests/harness/blocking.h, so that tests/spec/blocking.c tries
# it; and there is no row of another.
#
# contract 1.7
set -u
export LC_ALL=C

table=tests/harness/blocking.h status=0
marked=$(grep -h '^STRAND_BLOCKS ' include/strand.h include/strand/*.h | sed -n 's/.*[ *]\(strand_[a-z0-9_]*\)(.*/\1/p' | sort)
rows=$(sed -n 's/^ *ROW(\(strand_[a-z0-9_]*\),.*/\1/p' "$table" | sort)
lines=$(grep -h 'STRAND_BLOCKS ' include/strand.h include/strand/*.h | grep -Evc '^#|^ \*')
for name in $marked; do
    echo "$rows" | grep -qx "$name" || { echo "blocking: $table has no row for $name" && status=1; }
done
for name in $rows; do
    echo "$marked" | grep -qx "$name" || { echo "blocking: $name of $table is not marked STRAND_BLOCKS" && status=1; }
done
count=$(echo "$marked" | grep -c .)
[ "$count" -eq "$lines" ] || { echo "blocking: $lines marks, but $count names" && status=1; }
[ $status -eq 0 ] && echo "blocking: ok ($count functions)"
exit $status
