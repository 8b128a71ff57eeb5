#!/bin/sh
# usage: tools/check-ledger.sh FOLDER
#
# Checks FOLDER's examples/ledger: the total of all money stays the same, however the program ends, and its own entries
# account for every balance, as sqlite3 computes it; transactions that are left in the middle are rolled back; an error
# of the database has an exit status and a message.
#
# S-38, S-39
set -u
export LC_ALL=C

ledger=$(realpath "$1")/examples/ledger
work=$(mktemp -d) || exit 1
pid=''
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
mkdir temporary
export TMPDIR="$work/temporary"
status=0 count=0

complain()
{
    echo "ledger: $*"
    status=1
}

# run WANTED_STATUS ARGUMENT...: what it wrote goes to the files out and err
run()
{
    wanted=$1 count=$((count + 1))
    shift
    timeout -s KILL 600 "$ledger" "$@" >out 2>err
    got=$?
    [ $got = "$wanted" ] || complain "$* ended with $got: $(cat out err)"
}

# says FILE WORDS
says()
{
    grep -q -e "$2" "$1" || complain "it did not say '$2' but: $(cat "$1")"
}

# figure SED_PATTERN: the number that it matches
figure()
{
    sed -n "s/$1.*/\\1/p" out
}

# balanced FILE: every balance is the first one, less what its account has paid, and what it has got; nothing is missing
balanced()
{
    sqlite3 "$1" '
        SELECT "account " || id || " has " || balance || " instead of " || due FROM (
            SELECT id, balance, 1000 - ifnull(paid, 0) + ifnull(got, 0) AS due FROM accounts
                LEFT JOIN (SELECT payer, sum(amount) AS paid FROM entries GROUP BY payer) ON payer = id
                LEFT JOIN (SELECT payee, sum(amount) AS got FROM entries GROUP BY payee) ON payee = id)
            WHERE balance <> due LIMIT 3;
        SELECT "there are " || sum(balance) || " in " || count(*) || " accounts" FROM accounts
            HAVING sum(balance) <> 1000 * count(*) OR count(*) = 0;
        PRAGMA integrity_check' >sums 2>&1
    [ "$(cat sums)" = ok ] || complain "$1: $(cat sums)"
}

# ---- what it does ----

run 0
[ ! -s err ] || complain "it said: $(cat err)"
says out "^[0-9]* audits, each of which found 10000000 in 10000 accounts$"
says out " steps by 1 writer and 3 readers, each on the thread that had opened its connection$"
[ "$(ls temporary)" = '' ] || complain "it has left behind $(ls temporary/*)"

# Each transfer that was confirmed to a client is in the file, once, and no other is.
for threads in 1 4; do
    for readers in 1 8; do
        rm -f file.db
        run 0 --threads=$threads --readers=$readers --clients=20 --transfers=100 --levies=0 --accounts=100 file.db
        balanced file.db
        moved=$(figure '^\([0-9]*\) transfers,') entries=$(sqlite3 file.db 'SELECT count(*) FROM entries')
        [ "${moved:-none}" = "$entries" ] || complain "${moved:-none} transfers were done, and $entries are in the file"
        refused=$(figure '.* and \([0-9]*\) refused')
        [ $((moved + refused)) -eq 2000 ] || complain "$moved transfers and $refused refused are not 2000"
        [ "$(ls file.db*)" = file.db ] || complain "it has left behind $(ls file.db*)"
    done
done
run 0 --clients=5 --transfers=10 --levies=0 file.db
says out "found 100000 in 100 accounts$"
balanced file.db
export STRAND_SIM_SILENT=1
for seed in 1 2 3 4 5 6 7 8; do
    export STRAND_SEED=$seed
    rm -f file.db
    run 0 --threads=3 --clients=10 --transfers=20 --levies=5 --accounts=500 file.db
    balanced file.db
done
unset STRAND_SEED
export STRAND_STACKS=shared
run 0 --clients=10 --transfers=20 --levies=5
unset STRAND_STACKS

# ---- transactions that are left in the middle ----

# A levy on so many takes much longer than its client waits.
rm -f file.db
run 0 --accounts=200000 --clients=2 --transfers=20 --levies=20 --patience=40 file.db
[ "$(figure '.*; \([0-9]*\) transactions were left')" -ge 1 ] || complain "nothing was rolled back: $(cat out)"
[ "$(figure '.* and \([0-9]*\) given up')" -ge 10 ] || complain "hardly anything was given up: $(cat out)"
balanced file.db

# In the middle of many: Ctrl-C, and a death without warning.
for signal in INT TERM KILL; do
    rm -f file.db*
    count=$((count + 1))
    "$ledger" --accounts=20000 --transfers=1000000 --levies=1000000 file.db >out 2>err &
    pid=$!
    until [ "$(sqlite3 file.db 'SELECT count(*) > 100 FROM entries' 2>/dev/null)" = 1 ]; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    kill -$signal $pid
    wait $pid 2>/dev/null
    got=$?
    pid=''
    if [ $signal = KILL ]; then
        [ $got -eq 137 ] || complain "SIGKILL: it ended with $got: $(cat err)"
    else
        [ $got -eq 130 ] || complain "SIG$signal: it ended with $got: $(cat err)"
        says err '^ledger: interrupted after [0-9]* transfers; what was under way is rolled back$'
        [ "$(ls file.db*)" = file.db ] || complain "SIG$signal: it has left behind $(ls file.db*)"
    fi
    run 0 --clients=1 --transfers=10 --levies=1 file.db
    says out "found 20000000 in 20000 accounts$"
    balanced file.db
done

# ---- what the database refuses ----

rm -f file.db
run 1 --pages=500 --accounts=10000 --clients=20 --transfers=1000000 file.db
says err "^ledger: file.db: database or disk is full (.*) after [0-9]* transfers; what was under way is rolled back$"
balanced file.db
run 1 --pages=10 full.db
says err "^ledger: full.db: database or disk is full (INSERT .*)$"
count=$((count + 1))
(ulimit -f 2000 && exec timeout -s KILL 600 "$ledger" --transfers=1000000 small.db >out 2>err)
got=$?
[ $got = 1 ] || complain "a file that may not grow: it ended with $got: $(cat out err)"
says err "^ledger: small.db: disk I/O error.* rolled back$"
balanced small.db

# Another process writes. Meanwhile the bank waits; then it continues, or gives up.
rm -f file.db
run 0 --clients=1 --transfers=1 --levies=0 file.db
mkfifo other
# hold: another process has the file locked until it reads COMMIT from descriptor 3
hold()
{
    rm -f locked
    sqlite3 -cmd 'PRAGMA busy_timeout = 600000' file.db <other >locked &
    pid=$!
    exec 3>other
    echo 'BEGIN IMMEDIATE; SELECT "locked";' >&3
    until grep -q locked locked; do sleep 0.02; done
}
hold
{ sleep 1 && echo 'COMMIT;'; } >&3 &
run 0 --clients=5 --transfers=5 --levies=0 --busy=600 file.db
says out "^[0-9]* waits for another process$"
exec 3>&-
wait
hold
run 1 --busy=0.3 file.db
echo 'COMMIT;' >&3
exec 3>&-
says err "^ledger: file.db: another process has had it locked for 0.3 s (.*)$"
wait
pid=''
balanced file.db

head -c 5000 /dev/urandom >noise.db
run 1 noise.db
says err "^ledger: noise.db: file is not a database (.*)$"
run 1 no/such/file.db
says err "^ledger: no/such/file.db: unable to open database file: No such file or directory (open)$"
run 1 "$work"
says err "^ledger: $work: unable to open database file"
sqlite3 file.db 'UPDATE accounts SET balance = balance + 1 WHERE id = 7'
run 1 file.db
says err "^ledger: file.db: there are 10000001 in 10000 accounts"

[ "$(ls temporary)" = '' ] || complain "it has left behind $(ls temporary/*)"

[ $status -ne 0 ] || echo "ledger: ok ($count runs)"
exit $status
