#!/bin/sh
# usage: tools/check-chat.sh FOLDER
#
# Checks FOLDER's examples/chat with clients like nc: a line in a room reaches its members and no other client, also
# after the room has crashed; a client that disconnects leaves its room; SIGTERM ends it, and its exit status is 0.
set -u

folder=$1
work=$(mktemp -d) || exit 1
server='' status=0 clients=''
trap 'for pid in $server $clients; do kill "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT

complain()
{
    echo "chat: $*"
    status=1
}

# until_line FILE PATTERN: for five minutes
until_line()
{
    for _ in $(seq 6000); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.05
    done
    complain "no '$2' in $(basename "$1"):"
    sed 's/^/    /' "$1"
    return 1
}

# client NAME: reads what is typed from $work/NAME.in, a pipe that stays open
client()
{
    mkfifo "$work/$1.in"
    nc -N 127.0.0.1 "$port" <"$work/$1.in" >"$work/$1" 2>/dev/null 4>&- 5>&- 6>&- &
    clients="$clients $!"
    eval "exec $2>\"$work/$1.in\""
    printf '/nick %s\n' "$1" >&"$2"
}

command -v nc >/dev/null || {
    echo "chat: there is no nc"
    exit 1
}
"$folder/examples/chat" >"$work/server" 2>"$work/errors" &
server=$!
until_line "$work/server" '^chat: on port' || exit 1
port=$(sed -n 's/^chat: on port //p' "$work/server")

client anna 4
client berta 5
client carla 6
for fd in 4 5; do
    printf '/join tea\n' >&$fd
done
printf '/join coffee\n' >&6
until_line "$work/anna" '^\* you are in tea' && until_line "$work/berta" '^\* you are in tea' &&
    until_line "$work/carla" '^\* you are in coffee'
printf 'one lump or two?\n' >&4
until_line "$work/berta" '^<anna> one lump or two?$'

printf '/crash\n' >&5
until_line "$work/anna" '^\* the room tea is back' && until_line "$work/berta" '^\* the room tea is back'
printf 'two\n' >&5
until_line "$work/anna" '^<berta> two$'
printf '/rooms\n/who\n' >&6
until_line "$work/carla" '^\* tea (2)$' && until_line "$work/carla" '^\* carla$'
grep -q 'lump\|two$' "$work/carla" && complain "what was said in one room was heard in another"

printf '/nick dora\nstill here\n' >&4
until_line "$work/berta" '^anna is called dora$' && until_line "$work/berta" '^<dora> still here$'
exec 5>&- # goes without a word
until_line "$work/anna" '^berta goes out$'
printf 'x%.0s' $(seq 3000) >&4
printf '\n/quit\n' >&4
until_line "$work/anna" '^\* bye$'

kill -TERM "$server"
wait "$server" || complain "exit status $?"
server=''
until_line "$work/server" '^chat: ends, by SIGTERM'
grep -q 'has failed: error: room tea' "$work/errors" || {
    complain "the crash of the room was not told:"
    cat "$work/errors"
}
[ $status -ne 0 ] || echo "chat: ok"
exit $status
