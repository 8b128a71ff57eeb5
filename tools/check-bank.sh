#!/bin/sh
# usage: tools/check-bank.sh FOLDER
#
# FOLDER's examples/bank with few accounts and many crashes: no cent is missing, on one thread and on several; there were
# crashes, and without them none.
set -u
export LC_ALL=C

bank=$1/examples/bank
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0 count=0

complain()
{
    echo "bank: $*"
    status=1
}

# run WANTED_STATUS ARGUMENT...
run()
{
    wanted=$1 count=$((count + 1))
    shift
    timeout -s KILL 600 "$bank" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got = "$wanted" ] || complain "$* ended with $got: $(cat "$work/out" "$work/err")"
}

# says FILE WORDS
says()
{
    grep -q "$2" "$work/$1" || complain "it did not say '$2' but: $(cat "$work/$1")"
}

for threads in 1 2 4; do
    run 0 --accounts=100 --transfers=5000 --crashes=20 --threads=$threads
    says out '^bank: 5000 transfers between 100 accounts'
    says out '^bank: 100000 before, 100000 after: not a cent is missing$'
    says out '^bank: [1-9][0-9]* crashes, [1-9][0-9]* orders'
done
run 0 --accounts=2 --transfers=1000 --crashes=0 --threads=2
says out '^bank: 0 crashes'
says out '^bank: 2000 before, 2000 after: not a cent is missing$'
[ $status -ne 0 ] || echo "bank: ok ($count runs)"
exit $status
