#!/bin/sh
# usage: tools/check-crowd.sh FOLDER
#
# FOLDER's examples/crowd with few agents: its results are as near to their known means as they have to be, and the same
# whatever stacks they run on; shared stacks take less memory; it reports its progress.
set -u
export LC_ALL=C

cd "$(dirname "$0")/.." || exit 1
crowd=$1/examples/crowd
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0 count=0

complain()
{
    echo "crowd: $*"
    status=1
}

# run WANTED_STATUS ARGUMENT...: what it wrote goes to $work/out and $work/err, the trail of its events to $trail
run()
{
    wanted=$1 count=$((count + 1))
    shift
    timeout -s KILL 600 "$crowd" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got = "$wanted" ] || complain "$* ended with $got: $(cat "$work/out" "$work/err")"
    trail=$(sed -n 's/.* trail //p' "$work/out")
}

# says FILE WORDS
says()
{
    grep -q "$2" "$work/$1" || complain "it did not say '$2' but: $(cat "$work/$1")"
}

# memory_of WAY: bytes per agent
memory_of()
{
    sed -n "s/^$1 stacks .* \\([0-9]*\\) bytes per agent.*/\\1/p" "$work/out"
}

run 0 --agents=20000 --progress=0
[ -n "$trail" ] || complain "there is no trail: $(cat "$work/out")"
[ ! -s "$work/err" ] || complain "it said: $(cat "$work/err")"
says out "both ways come to the same"
[ "$(grep -c ' standard errors off$' "$work/out")" = 3 ] || complain "three figures have a known mean: $(cat "$work/out")"
own=$(memory_of own) shared=$(memory_of shared)
[ "${own:-0}" -gt $((${shared:-0} * 3)) ] || complain "shared stacks are no third of own ones: $(cat "$work/out")"
deepest=$(sed -n 's/^deepest repair *\([0-9]*\) .*/\1/p' "$work/out")
[ "${deepest:-0}" -ge 3 ] || complain "nobody went deep: $(cat "$work/out")"

# Neither how many stacks there are nor the scheduler has a say in what comes out.
first=$trail
for fibres in 1 3 100; do
    run 0 --agents=20000 --progress=0 --stacks=shared --fibres=$fibres
    [ "$trail" = "$first" ] || complain "$fibres fibres come to something else"
done
run 0 --agents=20000 --progress=0 --stacks=shared --seed=2
[ "$trail" != "$first" ] || complain "another seed comes to the same"
run 0 --agents=1000 --progress=0 --time=1
first=$trail
export STRAND_SEED=7
run 0 --agents=1000 --progress=0 --time=1
unset STRAND_SEED
says err "^libstrand: seed 7"
[ "$trail" = "$first" ] || complain "a played scheduler comes to something else"
export STRAND_STACKS=shared
run 0 --agents=1000 --progress=0 --time=1
unset STRAND_STACKS
[ "$trail" = "$first" ] || complain "copies at each suspension come to something else"

run 0 --agents=20000 --stacks=own --progress=20
says err "^crowd: own stacks: [0-9]* % of the time, [0-9.]* million events$"

run 3 --agents=100000000
says err "^crowd: own stacks of 100000000 agents may take [0-9]* MB, and [0-9]* are free"

[ $status -ne 0 ] || echo "crowd: ok ($count runs)"
exit $status
