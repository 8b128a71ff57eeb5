#!/bin/sh
# usage: tools/check-pipeline.sh FOLDER
#
# Runs FOLDER's examples/pipeline over logs that FOLDER's examples/httpd has written, and over bad ones: its results are
# those of awk, and each way to end has its exit status and message.
set -u
export LC_ALL=C

cd "$(dirname "$0")/.." || exit 1
folder=$(realpath "$1")
pipeline=$folder/examples/pipeline
work=$(mktemp -d) || exit 1
running=
trap 'for pid in $running; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
status=0 count=0

complain()
{
    echo "pipeline: $*"
    status=1
}

by_awk()
{
    awk -F'[ ]' -f examples/pipeline/report.awk "$@" | sort
}

# run ARGUMENT...: its status goes to $got, what it wrote to $work/out and $work/err. 137: it was hanging
run()
{
    count=$((count + 1))
    timeout -s KILL 600 "$pipeline" --progress=0 "$@" >"$work/out" 2>"$work/err"
    got=$?
}

# ends WITH WORDS WHAT: the last one ended with this status, and said these words and nothing else (or nothing at all)
ends()
{
    [ "$got" = "$1" ] || complain "$3: it ended with $got: $(cat "$work/err")"
    case $(cat "$work/err") in
    "${2:+pipeline: }"$2) ;;
    *) complain "$3: it said: $(cat "$work/err")" ;;
    esac
}

# reports FILE WHAT: the last one wrote this
reports()
{
    cmp -s "$1" "$work/out" || complain "$2: $(diff "$1" "$work/out" | head -n 3)"
}

# until_file FILE TEXT: wait until the text is in the file
until_file()
{
    tries=0
    until grep -qs "$2" "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 15000 ] || { complain "it never said '$2': $(tail -n 1 "$1")" && return 1; }
        sleep 0.02
    done
}

# until_end PID: wait for the end, whose status goes to $got; what hangs is ended
until_end()
{
    tries=0
    while kill -0 "$1" 2>/dev/null && [ $tries -lt 30000 ]; do
        tries=$((tries + 1))
        sleep 0.01
    done
    [ $tries -lt 30000 ] || kill -9 "$1"
    wait "$1"
    got=$?
}

# ---- the logs ----

mkdir "$work/root"
echo "a file" >"$work/root/file.txt"
head -c 30000 /dev/zero >"$work/root/large"
"$folder/examples/httpd" --root="$work/root" --log="$work/log" >"$work/httpd" 2>&1 &
server=$!
running=$server
until_file "$work/httpd" '^httpd: listening' || exit 1
url=http://$(sed -n 's/^httpd: listening on //p' "$work/httpd")
curl -sS -m 30 -A 'a name with spaces' "$url/file.txt?[1-300]" "$url/hello?[1-200]" "$url/large?[1-50]" \
    "$url/nothing[1-40]" "$url/slow?ms=0&n=[1-10]" >/dev/null || complain "curl ended with $?"
kill -TERM $server
wait $server || complain "httpd ended with $?"
running=
[ "$(wc -l <"$work/log")" -eq 600 ] || complain "$(wc -l <"$work/log") lines in the log"
# What httpd writes for what is no request.
echo '127.0.0.1 - - [03/Oct/2025:23:59:59 +0000] "-  HTTP/0.0" 400 16 "-" "-"' >>"$work/log"
by_awk "$work/log" >"$work/want"

# Many paths, many minutes, and more than fits into a pipe on both sides.
awk 'BEGIN {
    for (i = 0; i < 60000; i++)
        printf "10.0.%d.%d - - [%02d/%s/2025:%02d:%02d:%02d +0000] \"GET /%x/page?%d HTTP/1.1\" %d %d \"-\" \"none\"\n",
            i % 7, i % 251, 1 + i % 28, substr("JanFebMarAprMayJunJulAugSepOctNovDec", 1 + int(i / 5000) * 3, 3), i % 24,
            int(i / 900) % 60, i % 60, i * 7919 % 20011, i, i % 9 ? 200 : 404, i * 31 % 100000
}' >"$work/many"
by_awk "$work/many" >"$work/want-many"
i=0
while [ $i -lt 100 ]; do
    i=$((i + 1))
    cat "$work/log"
done >"$work/long"

# ---- what it computes ----

for threads in 1 4; do
    for log in log many; do
        run --threads=$threads "$work/$log"
        ends 0 "" "$log on $threads threads"
        by_awk "$work/$log" >"$work/want-$log"
        reports "$work/want-$log" "$log on $threads threads"
    done
    for options in --buffer=0 --buffer=1 "--parsers=1 --groupers=1 --buffer=0" "--parsers=64 --groupers=64 --buffer=1"; do
        # shellcheck disable=SC2086 # they are several words
        run --threads=$threads $options "$work/many"
        ends 0 "" "$options on $threads threads"
        reports "$work/want-many" "$options on $threads threads"
    done
    cat "$work/many" | timeout -s KILL 600 "$pipeline" --progress=0 --threads=$threads >"$work/out" 2>"$work/err"
    got=$? count=$((count + 1))
    ends 0 "" "a pipe on $threads threads"
    reports "$work/want-many" "a pipe on $threads threads"
done
for seed in 1 2 3 4 5 6 7 8 9 10; do
    export STRAND_SEED=$seed
    run --threads=4 --buffer=$((seed % 3)) "$work/log"
    [ $got -eq 0 ] || complain "seed $seed: it ended with $got: $(cat "$work/err")"
    reports "$work/want" "seed $seed"
done
unset STRAND_SEED

: >"$work/empty"
run "$work/empty"
ends 0 "" "an empty file"
reports "$work/empty" "an empty file"
head -c -1 "$work/log" >"$work/no-newline"
run "$work/no-newline"
ends 0 "" "a last line without a newline"
reports "$work/want" "a last line without a newline"

for threads in 1 4; do
    run --threads=$threads - <&-
    ends 1 "standard input: Bad file descriptor" "no standard input on $threads threads"
done

# ---- bad records ----

good='127.0.0.1 - - [03/Oct/2025:12:41:59 +0000] "GET /x HTTP/1.1" 200 5 "-" "-"'
# bad LINE WORDS: one line in the middle of a log, and as the first of many
bad()
{
    { sed -n 1,500p "$work/log" && printf '%s\n' "$1" && cat "$work/long"; } >"$work/bad"
    for threads in 1 4; do
        run --threads=$threads "$work/bad"
        ends 1 "$work/bad:501: $2" "a bad record on $threads threads"
        [ ! -s "$work/out" ] || complain "it wrote a report over a bad record"
        run --threads=$threads --buffer=0 --skip-bad "$work/bad"
        ends 0 "1 bad records of 60601 are left out" "a bad record left out on $threads threads"
        sed 501d "$work/bad" >"$work/rest"
        by_awk "$work/rest" >"$work/want-rest"
        reports "$work/want-rest" "a bad record left out on $threads threads"
    done
}
bad "" "it does not begin with*"
bad "$(echo "$good" | sed 's/Oct/October/')" "the date is not like*"
bad "$(echo "$good" | sed 's/Oct/Okt/')" "there is no such month"
bad "$(echo "$good" | sed 's/ HTTP//')" "the request is not like*"
bad "$(echo "$good" | sed 's/ 200 / 20 /')" "the status is not*"
bad "$(echo "$good" | sed 's/ 5 / -5 /')" "the length is not*"
bad "$good " "it does not end with*"
bad "$(printf '%s' "$good" | head -c -1)" "it does not end with*"
bad "$(head -c 300000 /dev/zero | tr '\0' x)" "it is longer than*"
STRAND_SEED=1 run --threads=4 "$work/bad"
[ $got -eq 1 ] || complain "a bad record under a seed: it ended with $got"

sed -n 1,600p "$work/log" | head -c -20 >"$work/cut"
run "$work/cut"
ends 1 "$work/cut:600: it does not end with a referrer and a user agent (the file ends in it)" "a last line that is cut off"
run "$work/missing"
ends 1 "$work/missing: No such file or directory" "a missing file"
run "$work"
ends 1 "$work: Is a directory" "a directory"

# ---- ends from outside ----

mkfifo "$work/in" "$work/report"
# Descriptors 3 and 4 are both ends of a pipe each: the first never ends, the second is read here only. They begin empty.
fresh_pipes()
{
    exec 3>&- 4>&-
    exec 3<>"$work/in" 4<>"$work/report"
}

# slow ARGUMENT...: start it on that pipe, with 500 lines in it and the beginning of another
slow()
{
    count=$((count + 1))
    fresh_pipes
    : >"$work/out"
    : >"$work/err"
    "$pipeline" --progress=0 "$@" <"$work/in" 3>&- 4>&- >"$work/out" 2>"$work/err" &
    pid=$!
    running=$pid
    sed -n 1,500p "$work/log" >&3
    printf '127.0.0.1 - - [' >&3
}

for threads in 1 4; do
    slow --threads=$threads --progress=10
    until_file "$work/err" '^pipeline: 500 lines, 0.1 MB, 0 bad'
    kill -INT $pid
    until_end $pid
    running=
    tail -n 1 "$work/err" >"$work/last" && mv "$work/last" "$work/err"
    ends 130 "interrupted after 500 lines (0.1 MB)" "Ctrl-C on $threads threads"
    [ ! -s "$work/out" ] || complain "Ctrl-C: it wrote a report of a part"

    slow --threads=$threads --deadline=0.3
    until_end $pid
    running=
    ends 124 "the deadline of 0.3 s has passed after * lines (*)" "a deadline on $threads threads"
    [ ! -s "$work/out" ] || complain "a deadline: it wrote a report of a part"

    # The others wait for a pipe that never ends, and are cancelled.
    slow --threads=$threads
    echo bad >&3
    until_end $pid
    running=
    ends 1 "standard input:501: the date is not like*" "a bad record from a slow pipe on $threads threads"

    # In the middle of the report: it says how much of it has gone.
    count=$((count + 1))
    fresh_pipes
    "$pipeline" --progress=0 --threads=$threads "$work/many" 3>&- 4>&- >"$work/report" 2>"$work/err" &
    pid=$!
    running=$pid
    timeout -s KILL 600 head -c 1 <&4 >"$work/out"
    kill -INT $pid
    until_end $pid
    running=
    ends 130 "interrupted after 60000 lines (*); * of the report's * bytes are written" "Ctrl-C in the report"
    written=$(sed 's/.*; \([0-9]*\) of the report.*/\1/' "$work/err")
    timeout -s KILL 600 head -c $((written - 1)) <&4 >>"$work/out"
    head -c "$written" "$work/want-many" >"$work/want-part"
    reports "$work/want-part" "a part of the report"

    # Who reads the report goes away: no signal, but an error.
    { { timeout -s KILL 600 "$pipeline" --progress=0 --threads=$threads "$work/many" 2>"$work/err"; echo $? >"$work/status"; } |
        head -n 1 >"$work/out"; } 3>&- 4>&-
    got=$(cat "$work/status") count=$((count + 1))
    ends 1 "standard output: Broken pipe; * of the report's * bytes are written" "a reader that goes away"
done
timeout -s KILL 600 "$pipeline" --progress=0 "$work/log" >/dev/full 2>"$work/err"
got=$? count=$((count + 1))
ends 1 "standard output: No space left on device; 0 of the report's * bytes are written" "a full disk"

# A log that is longer than the memory it may take.
slow --threads=4 --progress=10 --skip-bad
for _ in 1 2 3 4 5 6 7 8 9 10; do timeout -s KILL 600 cat "$work/long"; done >&3
until_file "$work/err" '^pipeline: 601500 lines'
memory=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status)
kill -INT $pid
until_end $pid
running=
[ "$memory" -lt 20480 ] || complain "it took $memory KiB for a log of $(($(wc -c <"$work/long") / 100)) KB"

[ $status -ne 0 ] || echo "pipeline: ok ($count runs)"
exit $status
