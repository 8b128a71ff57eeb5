#!/bin/sh
# usage: tools/soak-httpd.sh FOLDER [SECONDS [CONNECTIONS]]
#
# FOLDER's examples/httpd under wrk, with a tenth of the clients cut in the middle at random (FOLDER's
# programs/cut_clients). Nothing is lost; descriptors and resident memory are at the end what they were after the first ten
# seconds. Of memory a third more is borne: for half a minute there are now and then more strands at once than ever before,
# and the pages of their stacks stay. Prints both, and what wrk has to say.
set -u
export LC_ALL=C

folder=$(realpath "$1") seconds=${2:-60} connections=${3:-1000}
work=$(mktemp -d) || exit 1
server=
trap 'kill -9 $server 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
status=0

complain()
{
    echo "soak: $*"
    status=1
}

# resident: prints the server's resident memory in KiB
resident()
{
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status"
}

descriptors()
{
    find "/proc/$server/fd" -mindepth 1 2>/dev/null | wc -l
}

[ "$seconds" -gt 20 ] || { echo "soak: it takes more than 20 seconds" >&2 && exit 2; }
# shellcheck disable=SC3045 # dash has it
ulimit -n "$(ulimit -H -n)"
mkdir "$work/root"
head -c 1000000 /dev/urandom >"$work/root/large"
"$folder/examples/httpd" --root="$work/root" --log=/dev/null >"$work/out" 2>"$work/err" &
server=$!
until grep -qs '^httpd: listening' "$work/out"; do
    kill -0 $server 2>/dev/null || { cat "$work/err" && exit 1; }
    sleep 0.05
done
url=$(sed -n 's/^httpd: listening on //p' "$work/out")
before=$(descriptors)

cut=$((connections / 10))
wrk -t1 -c$((connections - cut)) -d"$seconds" --latency "http://$url/hello" >"$work/wrk" 2>&1 &
wrk=$!
"$folder/programs/cut_clients" "${url##*:}" $cut "$seconds" >"$work/cut" &
clients=$!
sleep 10
memory=$(resident) open=$(descriptors)
sleep $((seconds - 12))
memory_last=$(resident) open_last=$(descriptors)
wait $wrk $clients
cat "$work/wrk" "$work/cut"
sleep 1
after=$(descriptors)
echo "soak: resident $memory KiB after 10 s, $memory_last KiB at the end, $(resident) KiB after it"
echo "soak: descriptors $before before, $open after 10 s, $open_last at the end, $after after it"
[ "$memory_last" -le $((memory + memory / 3)) ] || complain "the memory has grown"
[ "$open_last" -le $((open + cut)) ] || complain "the descriptors have grown"
[ "$after" -le $((before + 1)) ] || complain "descriptors are left"
grep -q '^ *Non-2xx\|^ *Socket errors' "$work/wrk" && complain "wrk has seen errors"

kill -TERM $server
wait $server || complain "the server ended with $?"
server=
cat "$work/out" "$work/err"
grep -q ' lost=0 .* live=0' "$work/out" || complain "something is lost"
[ ! -s "$work/err" ] || complain "the server complained"
[ $status -ne 0 ] || echo "soak: ok"
exit $status
