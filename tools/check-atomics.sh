#!/bin/sh
# usage: tools/check-atomics.sh
#
# Every atomic operation of src/ is one of src/base/atomic.h, with a memory order: so each is a step of a run whose steps
# end at atomic operations.
set -u
export LC_ALL=C

found=$(grep -nE '__atomic_|__c11_atomic_|__sync_|<stdatomic\.h>' src/*/*.[chS] | grep -v '^src/base/atomic\.h:')
found="$found$(grep -nE '\batomic_(load|store|exchange|compare_exchange_(weak|strong)|fetch_(add|sub|or|and|xor)|flag_(test_and_set|clear))\(' \
    src/*/*.[chS])"
if [ -n "$found" ]; then
    echo "atomics: not by an operation of src/base/atomic.h with a memory order:
$found"
    exit 1
fi
echo "atomics: ok"
