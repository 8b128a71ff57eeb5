#!/bin/sh
# usage: tools/check-profileprocess.sh FOLDER
#
# Checks FOLDER's examples/profileprocess by the log, and by what the processes themselves record: the order of starts
# and stops, whichever process ends first and whichever signal arrives; supporters that ignore SIGTERM, end at once or
# leave a process behind; real profilers; pid 1 of a namespace; signals, exit statuses, terminals and output.
#
# P-01, P-02, P-03, P-04, P-05
set -u
export LC_ALL=C

program=$(realpath "$1")/examples/profileprocess
work=$(mktemp -d) || exit 1
pid='' left=''
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; end_left; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
export PATH="$work:$PATH"
status=0 count=0

complain()
{
    echo "profileprocess: $*"
    status=1
}

skip()
{
    echo "profileprocess: skipped: $*"
}

# ---- processes that record what they see ----

# `record LINE` is a whole line at the end of one file: the order of lines is that of the events.
cat >record <<'SCRIPT'
#!/bin/sh
echo "$*" >>record.txt
SCRIPT

# tested: ends by SIGTERM, with 7, and takes its time.
cat >tested <<'SCRIPT'
#!/bin/sh
for signal in HUP INT QUIT USR1 USR2 WINCH; do
    trap "record tested got $signal" $signal
done
trap 'record tested stops; for one in 1 2 3; do :; done; zombies; record tested ends; exit 7' TERM
zombies()
{
    for folder in /proc/[0-9]*; do
        read -r line 2>/dev/null <$folder/stat || continue
        case ${line##*) } in
        "Z $PPID "*) record "a zombie: $line" ;;
        esac
    done
    record "pidfds: $(ls -l /proc/$PPID/fd 2>/dev/null | grep -c pidfd)"
}
record "tested runs as $$"
[ $# -eq 0 ] || "$@"
while :; do
    sleep 1000 &
    wait $!
done
SCRIPT

# supporter NAME PID PARTNER...: by SIGTERM it ends when all partners have been stopped too.
cat >supporter <<'SCRIPT'
#!/bin/sh
name=$1 tested=$2
shift 2
stop()
{
    record "$name stops"
    for partner; do
        until grep -q "^$partner stops" record.txt; do sleep 0.02; done
    done
    [ ! -e /proc/$tested ] || record "$name ends before $(cat /proc/$tested/comm)"
    exit 0
}
trap 'stop "$@"' TERM
record "$name runs for $tested, which is $(cat /proc/$tested/comm 2>/dev/null)"
while :; do
    sleep 1000 &
    wait $!
done
SCRIPT

# deaf NAME: does not mind SIGTERM
cat >deaf <<'SCRIPT'
#!/bin/sh
trap '' TERM
record "$* runs"
while :; do sleep 1000; done
SCRIPT
chmod +x record tested supporter deaf

# ---- running it ----

# leave PID...: these are ended with the script
end_left()
{
    for one in $left; do kill -9 "$one" 2>/dev/null; done
    left=''
}

# start ARGUMENT...: in the background. $wrapper runs it. The signals are as usual, even if this script runs under nohup.
start()
{
    : >record.txt >out >err
    count=$((count + 1))
    what="$*"
    ${wrapper:-env --default-signal=HUP} "$program" "$@" >out 2>err </dev/null &
    pid=$!
}

# until_line FILE PATTERN: the file has such a line
until_line()
{
    tries=0 alive=yes
    while [ $tries -lt 15000 ] && [ $alive ]; do
        kill -0 "$pid" 2>/dev/null || alive=''
        grep -qs -e "$2" "$1" && return 0
        tries=$((tries + 1))
        sleep 0.02
    done
    complain "$what: no '$2' in $1: $(cat "$1" err)"
    return 1
}

# ends WITH: the one that was started ends, with this exit status
ends()
{
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 15000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    [ $tries -lt 15000 ] || { complain "$what: it does not end: $(cat err)" && kill -9 "$pid"; }
    wait "$pid"
    got=$?
    pid=''
    [ $got = "$1" ] || complain "$what: it ended with $got, not $1: $(cat err)"
}

# run WANTED_STATUS ARGUMENT...
run()
{
    wanted=$1
    shift
    start "$@"
    ends "$wanted"
}

# has FILE PATTERN, lacks FILE PATTERN
has()
{
    grep -q -e "$2" "$1" || complain "$what: no '$2' in $1: $(cat "$1")"
}
lacks()
{
    ! grep -q -e "$2" "$1" || complain "$what: '$2' in $1: $(cat "$1")"
}

# steps: the log without times and numbers
steps()
{
    sed -n 's/^[0-9-]*T[0-9:.]*Z profileprocess: //p' "${1-err}" | sed 's/\[[0-9]*\]//g; s/^\([^ ]* started[a-z ,]*\):.*/\1/'
}

# logged: the log has exactly these steps; lines that begin with * may have any order among each other
logged()
{
    sed 's/^\* //' >wanted
    sort wanted >wanted.sorted
    steps | sort >got.sorted
    cmp -s wanted.sorted got.sorted || complain "$what: it logs '$(steps)' instead of '$(cat wanted)'"
    steps | grep -v "^supporter ended" >got
    grep -v "^supporter ended" wanted | cmp -s - got || complain "$what: the order of the log is '$(steps)'"
}

# line PATTERN: the number of its first line in the record
line()
{
    grep -n -m 1 -e "$1" record.txt | cut -d : -f 1
}

# before PATTERN PATTERN: both are in the record, in this order
before()
{
    earlier=$(line "$1") later=$(line "$2")
    [ -n "$earlier" ] && [ -n "$later" ] && [ "$earlier" -lt "$later" ] ||
        complain "$what: '$1' is not before '$2': $(cat record.txt err)"
}

# ---- the order ----

first='supporter one {pid} two' second='supporter two {pid} one'

start_three()
{
    start --grace 1000s --with "$first" --with "$second" "$@" -- tested
    until_line record.txt '^tested runs' && until_line record.txt '^one runs' && until_line record.txt '^two runs'
}

check_order()
{
    tested=$(sed -n 's/^tested runs as //p' record.txt)
    for name in one two; do
        has record.txt "^$name runs for $tested, which is tested$"
        before "^$name ends before tested" '^tested stops'
    done
    before '^one stops' '^two ends'
    before '^two stops' '^one ends'
    before '^tested stops' '^tested ends'
    has record.txt '^pidfds: [01]$' # none where the system has no such descriptors
    lacks record.txt zombie
    [ "$(tail -n 1 record.txt)" = 'tested ends' ] || complain "$what: it does not wait for the end: $(cat record.txt)"
    [ ! -e "/proc/$tested" ] || complain "$what: the process under test is there"
}

try_order()
{
    for signal in TERM INT; do
        start_three "$@"
        kill -USR1 $pid # nothing ends because of it
        until_line record.txt '^tested got USR1'
        lacks record.txt stops
        kill -$signal $pid
        ends 7
        check_order
        logged <<STEPS
tested started, the process under test
supporter started
supporter started
SIG$signal arrived
stopping the supporters
* supporter ended with exit code 0
* supporter ended with exit code 0
stopping tested
tested ended with exit code 7
exit status 7
STEPS
    done
}

try_order
export STRAND_SIM_SILENT=1
for seed in 1 2 3 4 5 6; do
    export STRAND_SEED=$seed
    try_order
done
unset STRAND_SEED

# A supporter ends: the other one is stopped, and then the process under test.
start_three
kill -9 "$(sed -n 's/.*supporter\[\([0-9]*\)\] started: supporter one .*/\1/p' err)"
echo 'one stops' >>record.txt
ends 7
before '^two ends before tested' '^tested stops'
[ "$(tail -n 1 record.txt)" = 'tested ends' ] || complain "$what: it does not wait for the end: $(cat record.txt)"
logged <<STEPS
tested started, the process under test
supporter started
supporter started
supporter ended by signal 9 (KILL)
stopping the supporters
supporter ended with exit code 0
stopping tested
tested ended with exit code 7
exit status 7
STEPS

# The process under test ends: its supporters are stopped.
start_three
kill -9 "$(sed -n 's/^tested runs as //p' record.txt)"
ends 137
has record.txt '^one stops' && has record.txt '^two stops'
logged <<STEPS
tested started, the process under test
supporter started
supporter started
tested ended by signal 9 (KILL)
stopping the supporters
* supporter ended with exit code 0
* supporter ended with exit code 0
exit status 137
STEPS

# A signal while the supporters end, or the process under test does, changes nothing.
start --grace 1000 --with 'supporter one {pid} three' --with 'sleep 1000' -- tested
until_line record.txt '^one runs' && until_line err 'sleep\[[0-9]*\] started' && until_line record.txt '^tested runs'
kill -9 "$(sed -n 's/.*sleep\[\([0-9]*\)\] started.*/\1/p' err)"
until_line record.txt '^one stops'
kill -TERM $pid
until_line err 'SIGTERM arrived$'
echo 'three stops' >>record.txt
ends 7
before '^one ends before tested' '^tested stops'
lacks err KILL\)\$.*KILL

# Likewise while the process under test ends; a second one kills.
for wanted in 0 137; do
    start --grace 1000 --with 'sleep 1000' -- supporter main 1 three
    until_line record.txt '^main runs' && until_line err 'sleep\[[0-9]*\] started'
    kill -9 "$(sed -n 's/.*sleep\[\([0-9]*\)\] started.*/\1/p' err)"
    until_line record.txt '^main stops'
    kill -TERM $pid
    until_line err 'SIGTERM arrived$'
    [ $wanted = 0 ] && echo 'three stops' >>record.txt || kill -INT $pid
    ends $wanted
done

# Likewise when all has ended, and the output of a process that is left behind is waited for.
for round in 1 2 3 4 5; do
    start -- sh -c 'exit 5'
    until_line err ' exit status 5$'
    kill -TERM $pid 2>/dev/null
    ends 5
done
start --prefix -- sh -c 'sleep 1000 & echo $! >left; exit 5'
until_line err ' ended with exit code 5$'
kill -TERM $pid 2>/dev/null
kill -INT $pid 2>/dev/null
ends 5
left=$(cat left)
end_left

# Signals at any time: nothing is left.
for delay in 0 0.001 0.002 0.003 0.004 0.005 0.006 0.008 0.01 0.02; do
    start --with 'sleep 7654321' --with 'sleep 7654321' -- sleep 7654321
    until grep -q profileprocess "/proc/$pid/comm"; do :; done # the shell's child loses signals before it is that
    sleep $delay
    kill -TERM $pid
    ends 143
done
! grep -al '765432[1]' /proc/[0-9]*/cmdline >found 2>/dev/null || complain "processes are left: $(cat found)"

# ---- supporters of all kinds ----

# The time of grace is that of the process under test too, which ends at once.
start --grace 300ms --with 'deaf one' --with 'deaf two' -- sleep 1000
until_line record.txt '^one runs' && until_line record.txt '^two runs'
kill -TERM $pid
ends 143
logged <<STEPS
sleep started, the process under test
deaf started
deaf started
SIGTERM arrived
stopping the supporters
deaf ended by signal 9 (KILL)
deaf ended by signal 9 (KILL)
stopping sleep
sleep ended by signal 15 (TERM)
exit status 143
STEPS

start --grace 300ms -- deaf tested
until_line record.txt '^tested runs'
kill -TERM $pid
ends 137

# The second signal kills, in the same order.
start --grace 1000 --with 'deaf one' -- deaf tested
until_line record.txt '^one runs' && until_line record.txt '^tested runs'
kill -TERM $pid
until_line err 'SIGTERM arrived$'
kill -INT $pid
ends 137
logged <<STEPS
deaf started, the process under test
deaf started
SIGTERM arrived
stopping the supporters
SIGINT arrived again: killing instead of stopping
deaf ended by signal 9 (KILL)
stopping deaf
deaf ended by signal 9 (KILL)
exit status 137
STEPS

run 143 --with true -- sleep 1000
has err 'true.* ended with exit code 0$'
run 143 --with false --with 'sleep 1000' -- sleep 1000
has err 'false.* ended with exit code 1$'
run 0 --with 'sleep 1000' --with 'sleep 1000' -- true
has err 'true.* ended with exit code 0$'

# One that leaves a process behind has ended.
run 143 --with 'sh -c "sleep 1000 & echo $! >left"' -- sleep 1000
left=$(cat left)
end_left

# A process that ends at once has its number in the log.
run 137 -- sh -c 'kill -9 $$'
has err ' sh\[[0-9]\{1,\}\] started'
has err ' sh\[[0-9]\{1,\}\] ended by signal 9 (KILL)'

# ---- programs that can't be run ----

touch plain
run 127 -- no/such
has err ' no/such can.t be started: No such file or directory$'
run 126 -- ./plain
has err ' ./plain can.t be started: Permission denied$'
run 126 -- .
run 126 --with 'sleep 1000' --with './plain {pid}' --with 'sleep 1000' -- sleep 1000
logged <<STEPS
sleep started, the process under test
sleep started
./plain can't be started: Permission denied
stopping the supporters
sleep ended by signal 15 (TERM)
stopping sleep
sleep ended by signal 15 (TERM)
exit status 126
STEPS
run 127 --with 'no-such {pid}' -- sleep 1000
has err ' no-such can.t be started: No such file or directory$'

# ---- words, streams and descriptors ----

run 0 --with "deaf 'two words' x{pid}y,{pid} \"\$HOME{pid}\" \\{ *.none" --grace 0 -- sh -c 'while ! grep -q none record.txt; do sleep 0.02; done; exit 0'
grep -q "^two words x\([0-9]*\)y,\1 $HOME\1 { \*\.none runs$" record.txt || complain "$what: $(cat record.txt)"
count=$((count + 1))
[ "$(echo in | "$program" --with 'sh -c "readlink /proc/self/fd/0 >null; exec sleep 1000"' -- sh -c 'cat; until [ -s null ]; do sleep 0.02; done' 2>err)" = in ] ||
    complain "the process under test does not read the input: $(cat err)"
[ "$(cat null)" = /dev/null ] || complain "a supporter has the input $(cat null)"
alone=$(sh -c 'cat <&7; ls /proc/self/fd' 7<null </dev/null)
count=$((count + 1))
[ "$("$program" --log log -- sh -c 'cat <&7; ls /proc/self/fd' 7<null </dev/null)" = "$alone" ] ||
    complain "the process under test has other descriptors than alone"
rm log
run 143 --log log --with 'sh -c "ls /proc/self/fd >fds"' -- sleep 1000
[ "$(tr '\n' ' ' <fds)" = '0 1 2 3 ' ] || complain "a supporter has the descriptors $(cat fds)"
[ ! -s err ] || complain "$what: it wrote $(cat err)"
[ "$(steps log | tail -n 1)" = 'exit status 143' ] || complain "$what: it logged $(cat log)"
run 3 --log - --stop USR1 -- sh -c 'exit 3'
has out ' exit status 3$'
[ ! -s err ] || complain "$what: it wrote $(cat err)"

# ---- signals ----

start --grace 1000 -- tested
until_line record.txt '^tested runs'
for signal in HUP QUIT USR1 USR2 WINCH; do
    kill -$signal $pid
    until_line record.txt "^tested got $signal$"
done
kill -TERM $pid
ends 7
for name in USR2 SIGUSR2 sigusr2 12; do
    start --grace 1000 --stop $name -- tested sh -c "trap 'record stopped; exit 0' USR2; record ready; while :; do sleep 0.02; done"
    until_line record.txt '^ready'
    kill -TERM $pid
    until_line record.txt '^stopped'
    until_line record.txt '^tested got USR2'
    kill -TERM $pid
    ends 137
done

# What the parent ignores or blocks.
wrapper='env --ignore-signal=CHLD --ignore-signal=HUP --block-signal=TERM'
start --grace 1000 -- tested
until_line record.txt '^tested runs'
kill -HUP $pid
kill -USR1 $pid
until_line record.txt '^tested got USR1'
kill -TERM $pid
ends 7
lacks record.txt HUP
wrapper=''

# ---- output ----

# Lines of both streams, the last one without its end; long lines come in pieces.
run 0 --prefix -- sh -c 'echo one; echo two >&2; printf "\nthree"'
grep -q '^sh[][0-9]*: two$' err || complain "$what: errors are $(cat err)"
[ "$(sed 's/\[[0-9]*\]//' out)" = "$(printf 'sh: one\nsh: \nsh: three')" ] || complain "$what: output is $(cat out)"
lines='BEGIN { for (i = 0; i < 20000; i++) print i, "a line of output that has some length"; printf "the last" }'
awk "$lines" >wanted
run 5 --prefix --with 'sleep 1000' -- sh -c "awk '$lines'; exit 5"
echo >>wanted
sed 's/^sh[][0-9]*: //' out | cmp - wanted || complain "$what: $(wc -l <out) lines of $(wc -l <wanted)"
long='BEGIN { for (i = 0; i < 5; i++) { for (j = 0; j < 3000 * i; j++) printf "%d,", j; print "" } }'
awk "$long" >wanted
run 0 --prefix -- awk "$long"
awk '{ cut = index($0, " "); if (substr($0, cut - 1, 1) == ":" && NR > 1) print ""; printf "%s", substr($0, cut + 1) }
    END { print "" }' out | cmp - wanted || complain "$what: long lines are not whole"
[ "$(awk '{ if (length > 4095) print }' out | wc -l)" -eq 0 ] || complain "$what: a line is too long"
[ "$(grep -c '^awk[][0-9]*+ ' out)" -ge 5 ] || complain "$what: no piece is marked"

# A reader that begins when the process has ended, and the time for those that are left behind is over: two full pipes.
lines='BEGIN { for (i = 0; i < 2000; i++) print i, "a line of output that has some length"; printf "the last" }'
count=$((count + 1))
rm -f log
got=$("$program" --prefix --log log -- awk "$lines" </dev/null | {
    until grep -qs 'awk.* ended' log; do sleep 0.02; done
    sleep 2
    tail -n 1
})
[ "${got#*: }" = 'the last' ] || complain "a slow reader gets '$got' at the end"

# A reader that goes away: the process notices, as it would without the relay.
rm -f log
timeout -s KILL 600 "$program" --prefix --log log -- sh -c 'while echo line; do :; done; exit 4' </dev/null 2>err | head -n 1 >out
grep -q '^sh[][0-9]*: line$' out || complain "the first line is '$(cat out)'"
until grep -qs ' exit status' log; do sleep 0.02; done
has log ' exit status \(4\|141\)$'

# A log that nobody reads holds no step up.
mkfifo stuck
exec 3<>stuck
dd if=/dev/zero of=stuck bs=4096 count=1000 oflag=nonblock 2>/dev/null
start --grace 1000 --log stuck --with 'sleep 1000' -- tested
until_line record.txt '^tested runs'
kill -TERM $pid
ends 7
exec 3<&-

# A process that is left behind holds the output open, in silence or not.
for remains in 'sleep 1000' yes; do
    run 0 --prefix -- sh -c "$remains & echo \$! >left; echo all"
    left=$(cat left)
    end_left
    grep -q '^sh[][0-9]*: all$' out || complain "$what: output is $(head -n 3 out)"
done

# ---- a terminal ----

# Keys reach the process under test: a line, and Ctrl-C, which ends nothing else.
if command -v script >/dev/null; then
    cat >keys <<'SCRIPT'
#!/bin/sh
trap 'record tested got INT' INT
record "tested runs"
while :; do
    read -r line && record "tested read $line"
    [ "$line" != end ] || exit 9
done
SCRIPT
    chmod +x keys
    mkfifo typed
    : >record.txt >out >err
    count=$((count + 1)) what='on a terminal'
    script -qec "$program --with 'sleep 1000' -- keys" /dev/null <typed >out 2>err &
    pid=$!
    exec 3>typed
    until_line record.txt '^tested runs' && until_line out 'sleep.* started'
    printf 'first\r' >&3
    until_line record.txt '^tested read first$'
    printf '\003' >&3
    until_line record.txt '^tested got INT$'
    printf 'end\r' >&3
    ends 9
    exec 3>&-
    lacks out ' SIGINT arrived'
else
    skip "a terminal: there is no script(1)"
fi

# ---- pid 1 ----

if unshare --pid --fork --mount-proc true 2>/dev/null; then
    wrapper='unshare --pid --fork --mount-proc'
    run 7 -- sh -c 'record "$$ of $PPID"; exit 7'
    has record.txt ' of 1$'
    start --grace 1000 --with "$first" --with "$second" -- tested
    until_line record.txt '^tested runs' && until_line record.txt '^one runs' && until_line record.txt '^two runs'
    kill -TERM "$(cat /proc/$pid/task/$pid/children)" # unshare's one
    until_line record.txt '^tested ends'
    ends 7
    before '^one ends before tested' '^tested stops'
    before '^two ends before tested' '^tested stops'
    lacks record.txt zombie
    run 137 -- sh -c 'kill -9 $$'
    # Orphans are reaped, whether they end before the process under test or with the namespace.
    run 4 -- sh -c 'orphan=$(sleep 0.1 >null & echo $!); while [ -e /proc/$orphan ]; do sleep 0.02; done; (sleep 1000 &); exit 4'
    run 143 --with 'sh -c "sleep 1000 & exit 0"' -- sleep 1000
    run 127 --with no-such -- sleep 1000
    wrapper=''
else
    skip "pid 1: no new namespace of processes is permitted here"
fi

# ---- real supporters ----

# works COMMAND...: a profiler is installed, and permitted here to do what is asked of it
works()
{
    "$@" >trial 2>&1 && return 0
    skip "$1: $(tail -n 1 trial)"
    return 1
}

# strace: may follow a process that is not its child
strace_follows()
{
    command -v strace || { echo "it is not installed" && return 1; }
    sleep 1000 &
    left=$!
    strace -o trace -p $left &
    tracer=$!
    until grep -q "^TracerPid:.$tracer$" /proc/$left/status || ! kill -0 $tracer; do sleep 0.02; done 2>/dev/null
    end_left
    wait $tracer || [ $? -gt 128 ] # it ends as the other one
}

busy='BEGIN { until = systime() + 1; while (systime() <= until) for (i = 0; i < 10000; i++) x += i }'
if works strace_follows; then
    rm -f trace
    run 0 --with 'strace -f -o trace -p {pid}' -- sh -c 'until [ -s trace ]; do sleep 0.02; done; exit 0'
    has trace 'exited with 0 +++$'
fi
if works perf record -o perf.data -p $$ -- true; then
    rm -f perf.data
    run 0 --with 'perf record -q -o perf.data -p {pid}' -- sh -c 'until [ -e perf.data ]; do :; done; for i in 1 2 3 4 5 6 7 8 9; do sed p /proc/kallsyms >sum; done'
    has err 'perf.* ended'
    perf script -i perf.data >trace 2>&1 || complain "perf.data is not whole: $(tail -n 1 trace)"
fi
if works pidstat 1 1; then
    start --grace 1000 --with 'pidstat -p {pid} 1' -- tested
    until_line record.txt '^tested runs'
    until_line out ' tested$'
    kill -TERM $pid
    ends 7
    has err 'pidstat.* ended by signal 15'
fi

[ $status -ne 0 ] || echo "profileprocess: ok ($count runs)"
exit $status
