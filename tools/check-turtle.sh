#!/bin/sh
# usage: tools/check-turtle.sh FOLDER
#
# Runs FOLDER's examples/turtle in windows of a virtual X server, and reads the server's memory: each curve is drawn as
# tests/turtle/picture.awk computes it, by any number of turtles; all calls of SDL come from the main thread; events are
# handled while it draws; each way to end has its exit status and message.
#
# S-43, S-45
set -u
export LC_ALL=C

cd "$(dirname "$0")/.." || exit 1
folder=$(realpath "$1")
turtle=$folder/examples/turtle client=$folder/turtle/client size=400
work=$(mktemp -d) || exit 1
server='' pid=''
trap 'for one in $server $pid; do kill -9 "$one" 2>/dev/null; done; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset WAYLAND_DISPLAY SDL_VIDEODRIVER
export XDG_RUNTIME_DIR="$work"
status=0 count=0

complain()
{
    echo "turtle: $*"
    status=1
}

# A server whose only screen is as large as the window, in the file $work/Xvfb_screen0.
start_server()
{
    rm -f "$work/display"
    mkfifo "$work/display"
    Xvfb -displayfd 3 -screen 0 ${size}x${size}x24 -fbdir "$work" -nolisten tcp 3>"$work/display" 2>"$work/xvfb" &
    server=$!
    read -r display <"$work/display" || { complain "Xvfb does not start: $(tail -n 1 "$work/xvfb")" && exit 1; }
    export DISPLAY=":$display"
}

# start OPTION...: in the background
start()
{
    count=$((count + 1))
    "$turtle" --size=$size "$@" >"$work/out" 2>"$work/err" &
    pid=$!
}

# do_it WORD...: a user does that to the window
do_it()
{
    timeout 600 "$client" "$@" 2>"$work/client" || complain "$* can't be done: $(cat "$work/client")"
}

# until_drawn: it says so; what never does is ended
until_drawn()
{
    tries=0
    until grep -qs ' drawn in ' "$work/out"; do
        tries=$((tries + 1))
        [ $tries -lt 15000 ] && kill -0 "$pid" 2>/dev/null || return
        sleep 0.02
    done
}

# ends WITH WHAT: the one that was started has ended, or does soon, with this status
ends()
{
    tries=0
    while kill -0 "$pid" 2>/dev/null && [ $tries -lt 15000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    [ $tries -lt 15000 ] || { complain "$2: it does not end" && kill -9 "$pid"; }
    wait "$pid"
    got=$?
    pid=
    [ $got = "$1" ] || complain "$2: it ended with $got: $(cat "$work/err")"
}

# says FILE WORDS
says()
{
    grep -q -e "$2" "$work/$1" || complain "it did not say '$2' but: $(cat "$work/$1")"
}

# What the screen shows: a line of bytes for each line of pixels. The file is an X window dump: how long its header is
# says its first word, how many colours follow, of 12 bytes each, its twentieth.
pixels()
{
    header=$(od -An -v -tu1 -N80 "$work/Xvfb_screen0" | awk '
        { for (i = 1; i <= NF; i++) byte[n++] = $i }
        function word(at) { return ((byte[at] * 256 + byte[at + 1]) * 256 + byte[at + 2]) * 256 + byte[at + 3] }
        END { print word(0) + 12 * word(76) }')
    od -An -v -tu1 -j"$header" -w$((4 * size)) "$work/Xvfb_screen0"
}

# shows CURVE DEPTH: soon, as a window comes on the screen some time after it was asked for
shows()
{
    tries=0
    until pixels | awk -v curve="$1" -v depth="$2" -v size=$size -f tests/turtle/picture.awk >"$work/picture"; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || { complain "$(cat "$work/picture")" && return; }
        sleep 0.1
    done
}

# draws CURVE DEPTH OPTION...: it shows that, and is closed then
draws()
{
    curve=$1 depth=$2
    shift 2
    start --curve="$curve" --depth="$depth" --seconds=0 "$@"
    until_drawn
    shows "$curve" "$depth"
    do_it close
    ends 0 "$curve $depth $*"
    says out "^$curve of depth $depth: $(cut -d' ' -f1 "$work/picture") steps, "
}

# How often its threads have slept, all together.
wakes()
{
    awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }' "/proc/$pid/task"/*/status
}

start_server

# ---- pictures ----

for what in "hilbert 1" "hilbert 5" "hilbert 6" "dragon 10" "dragon 11" "levy 10" "levy 11" "koch 4" "sierpinski 5" \
    "sierpinski 6" "gosper 4" "plant 5"; do
    draws ${what% *} ${what#* }
done
for options in "--turtles=1 --threads=1" "--turtles=3 --threads=4" "--turtles=64 --threads=2" "--seconds=0.5 --turtles=7"; do
    # shellcheck disable=SC2086 # they are several words
    draws hilbert 6 $options
done
export STRAND_SIM_SILENT=1
for seed in 1 2 3 4 5; do
    export STRAND_SEED=$seed
    draws dragon 9 --threads=3
done
unset STRAND_SEED
STRAND_STACKS=shared
export STRAND_STACKS
draws plant 4
unset STRAND_STACKS

# ---- the main thread ----

export LD_PRELOAD="$folder/turtle/watch.so"
start --curve=hilbert --depth=5 --seconds=0 --once
unset LD_PRELOAD
ends 0 "watched"
says err "^watch: [0-9]\\{4,\\} calls, all on the main thread"

# ---- the window while it draws, and afterwards ----

# Moves of the pointer reach the window while it draws. On a busy machine the picture may be finished before; then a
# longer one is drawn.
for seconds in 2 8 32 128; do
    start --curve=koch --depth=4 --seconds=$seconds
    do_it move
    until_drawn
    events=$(sed -n 's/.* \([0-9]*\) events.*/\1/p' "$work/out")
    [ "${events:-0}" -lt 25 ] || break
    do_it close
    ends 0 "a window that was too quick"
done
[ "${events:-0}" -ge 25 ] || complain "of 50 events it has seen ${events:-none} while it drew"
shows koch 4
do_it cover
shows koch 4
# The quietest of ten seconds: what was asked of it may not be done yet in the first.
quietest=1000000
for _ in 1 2 3 4 5 6 7 8 9 10; do
    before=$(wakes)
    sleep 1
    woken=$(($(wakes) - before))
    [ $woken -ge $quietest ] || quietest=$woken
    [ $quietest -ge 10 ] || break
done
[ $quietest -lt 10 ] || complain "with nothing to do its threads wake up $quietest times in a second"
do_it close
ends 0 "a window that is moved across"

# While the pen is held still the turtles come to a stop: each with a chunk in hands, and the channel full.
# A picture may be drawn before the key arrives: then the next one takes longer.
for seconds in 1 4 16 64; do
    start --curve=hilbert --depth=9 --seconds=$seconds --turtles=4
    do_it space
    sleep $((seconds + 1))
    grep -q drawn "$work/out" || break
    do_it close
    ends 0 "a picture that was drawn too soon"
done
grep -q drawn "$work/out" && complain "it goes on while it is held"
do_it space
until_drawn
ahead=$(sed -n 's/^never more than \([0-9]*\) chunks.*/\1/p' "$work/out")
case $ahead in
8 | 9) ;;
*) complain "with room for 4 chunks and 4 turtles ${ahead:-none} were ahead" ;;
esac
do_it close
ends 0 "a picture that was held"

# ---- ends in the middle ----

start --curve=dragon --seconds=600
do_it move close
ends 0 "closed in the middle"
says err "^turtle: the window was closed after [0-9]* of 16384 steps$"
start --curve=dragon --seconds=600 --save="$work/never.bmp"
do_it move close
ends 1 "closed before it could be saved"
[ ! -e "$work/never.bmp" ] || complain "it has saved a part of the picture"
for signal in INT TERM; do
    start --curve=dragon --seconds=600
    do_it move
    kill -$signal "$pid"
    ends 130 "SIG$signal"
    says err "^turtle: interrupted after [0-9]* of 16384 steps$"
done
start --curve=dragon --seconds=0
until_drawn
kill -INT "$pid"
ends 130 "Ctrl-C afterwards"

# ---- the file ----

# Its lines come from below, and its pixels have three bytes.
start --curve=gosper --depth=4 --seconds=0 --save="$work/picture.bmp"
until_drawn
shows gosper 4
pixels | awk '{ line = ""; for (i = 1; i < NF; i += 4) line = line " " $i " " $(i + 1) " " $(i + 2); print line }' >"$work/want"
offset=$(od -An -tu4 -j10 -N4 "$work/picture.bmp")
od -An -v -tu1 -j$((offset)) -w$((3 * size)) "$work/picture.bmp" | awk '{ $1 = $1; print " " $0 }' | tac >"$work/have"
cmp -s "$work/want" "$work/have" || complain "the file is not what the window shows"
do_it close
ends 0 "a picture that was saved"
start --once --seconds=0 --save="$work/no/picture.bmp"
ends 1 "a folder that there is not"
says err "^turtle: $work/no/picture.bmp: "

# ---- an X server that ends ----

start --seconds=600
do_it move
kill -9 "$server"
wait "$server" 2>/dev/null
server=
ends 1 "a server that goes away"
[ -s "$work/err" ] || complain "it does not say that the server has gone"
start --once
ends 1 "no display"
says err "^turtle: no window is available: .*DISPLAY is $DISPLAY)$"
unset DISPLAY
start --once
ends 1 "no display, nor a name of one"
says err "^turtle: no window is available: .*DISPLAY is not set)$"

[ $status -ne 0 ] || echo "turtle: ok ($count runs)"
exit $status
