#!/bin/sh
# usage: tools/check-options.sh FOLDER
#
# The command lines of FOLDER's examples: --help exits with 0 and names every option; each option takes the values in its
# range and no others. A wrong command line exits with 2, and the message names the option, the value, and what the
# option takes.
set -u
export LC_ALL=C
unset DISPLAY WAYLAND_DISPLAY

folder=$(realpath "$1")/examples
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
status=0 count=0
proxy=proxy # needs both satellites
[ -x "$folder/proxy" ] || proxy=

complain()
{
    echo "options: $*"
    status=1
}

# run STATUS PROGRAM ARGUMENT...
run()
{
    wanted=$1 program=$2 count=$((count + 1))
    shift 2
    timeout -s KILL 600 "$folder/$program" "$@" >out 2>err </dev/null
    got=$?
    [ $got = "$wanted" ] || complain "$program $* ended with $got: $(cat out err)"
}

# refuses PROGRAM MESSAGE ARGUMENT...
refuses()
{
    program=$1 message=$2
    shift 2
    run 2 "$program" "$@"
    grep -qF -e "$message" err || complain "$program $* does not say '$message' but: $(cat err)"
    [ ! -s out ] || complain "$program $* writes to standard output: $(cat out)"
}

# Each option with a number: its letter or -, what it takes, and the bounds.
numbers()
{
    sed 's/#.*//' <<TABLE
httpd    port       p whole        0     65535
httpd    threads    t whole        1     1024
httpd    timeout    T seconds      0.001 1000000
httpd    rate       R whole        0     1000000000
httpd    keep-alive k seconds      0.001 1000000
httpd    drain      d seconds      0.001 1000000
crowd    agents     a whole        1000  100000000
crowd    fibres     f whole        1     65536
crowd    seed       s whole        0     9223372036854775807
crowd    time       t number       0.1   1000
crowd    progress   P milliseconds 0     1000000000
ledger   accounts   a whole        1     100000000
ledger   clients    c whole        0     1000000
ledger   transfers  n whole        0     2147483647
ledger   levies     l whole        0     2147483647
ledger   patience   p milliseconds 0     1000000
ledger   readers    r whole        1     64
ledger   threads    t whole        1     1024
ledger   busy       b seconds      0     1000000
ledger   pages      m whole        0     2147483647
ledger   seed       s whole        0     9223372036854775807
pipeline threads    t whole        1     1024
pipeline parsers    p whole        1     64
pipeline groupers   g whole        1     64
pipeline buffer     b whole        0     100000
pipeline deadline   d seconds      0.001 1000000
pipeline progress   P milliseconds 0     1000000000
turtle   depth      d whole        0     24
turtle   size       s whole        64    4096
turtle   turtles    T whole        1     64
turtle   threads    t whole        1     1024
turtle   seconds    S number       0     1000000
bank     accounts   - whole        2     100000000
bank     transfers  - whole        1     1099511627776
bank     crashes    - whole        0     4294967295
bank     threads    - whole        1     1024
chat     port       - whole        0     65535
profileprocess grace g seconds     0     1000000
proxy    active     a whole        1     1000000
proxy    queue      q whole        1     1000000
proxy    pool       p whole        0     1000000
proxy    retries    r whole        0     64
proxy    failures   f whole        1     1000000
proxy    down       D seconds      0     1000000
proxy    check-every - seconds     0.001 1000000
proxy    check-time - seconds      0.001 1000000
proxy    rise       - whole        1     1000
proxy    fall       - whole        1     1000
proxy    handshake - seconds  0.001 1000000
proxy    head  - seconds      0.001 1000000
proxy    wait - seconds      0.001 1000000
proxy    connect - seconds    0.001 1000000
proxy    answer - seconds     0.001 1000000
proxy    idle  - seconds      0.001 1000000
proxy    rate       R whole        0     1000000000
proxy    whole - seconds      0     1000000
proxy    keep-alive K seconds      0.001 1000000
proxy    pool-time  - seconds      0.001 1000000
proxy    drain      d seconds      0.001 1000000
proxy    threads    t whole        1     1024
crawl    threads    - whole        1     1024
TABLE
}

# ---- what all programs have in common ----

for program in httpd crowd ledger pipeline turtle bank chat crawl profileprocess $proxy; do
    for help in -h --help; do
        run 0 "$program" $help
        grep -q "^usage: $program " out || complain "$program $help: $(cat out err)"
    done
    listed=$(grep -c -- '--[a-z-]*=[NSTM]S\? ' out)
    known=$(numbers | grep -c "^$program ")
    [ "$listed" = "$known" ] || complain "$program has $listed options with numbers, and $known of them are checked"
    timeout -s KILL 600 "$folder/$program" --help >/dev/full 2>err
    [ $? = 1 ] || complain "$program --help does not notice that it cannot write"
    refuses "$program" "'--no-such'" --no-such
    refuses "$program" "'Z'" -Z
done

# ---- numbers ----

numbers | if [ -n "$proxy" ]; then cat; else grep -v '^proxy '; fi >table
while read -r program name letter takes min max; do
    [ "$takes" = seconds ] || [ "$takes" = milliseconds ] || takes="a $takes"
    takes=$(echo "$takes" | sed 's/whole/whole number/')
    run 0 "$program" "--$name=$min" "--$name=$max" --help
    bad='x nan inf 1x -1'
    [ "$min" = 0 ] || bad="$bad 0"
    [ "$takes" != 'a whole number' ] || bad="$bad 1.5 1e1 0x10 +5"
    for value in '' ' ' $bad "${max}0"; do
        refuses "$program" "$program: --$name can't be '$value'; it takes $takes from $min to $max" "--$name=$value"
    done
    refuses "$program" "--$name" "--$name"
    [ "$letter" = - ] || refuses "$program" "--$name can't be 'x'" "-$letter" x
done <table

# ---- texts, switches and arguments ----

while IFS='|' read -r program words message; do
    # shellcheck disable=SC2086 # these are several words
    refuses "$program" "$message" $words
done <<TABLE
httpd|more|unexpected argument 'more'
httpd|--host|--host
httpd|--tls|--tls
httpd|--key|--key
httpd|--staple|--staple
crowd|more|unexpected argument 'more'
crowd|--stacks=none|--stacks can't be 'none'; it takes one of: own shared both
crowd|--stacks=|--stacks can't be ''
ledger|one two|unexpected argument 'two'
pipeline|one --skip-bad two|unexpected argument 'two'
pipeline|--skip-bad=yes|--skip-bad
turtle|more|unexpected argument 'more'
turtle|-c circle|--curve can't be 'circle'; it takes one of: hilbert dragon
turtle|--curve=hil|--curve can't be 'hil'
turtle|--curve=hilbert --depth=13|--depth can't be '13'; hilbert takes a depth from 0 to 12
turtle|--once=1|--once
bank|more|unexpected argument 'more'
chat|more|unexpected argument 'more'
profileprocess|--prefix|COMMAND is missing
profileprocess|--prefix --|COMMAND is missing
profileprocess|--stop TERMS true|--stop can't be 'TERMS'
profileprocess|--stop 0 true|--stop can't be '0'
profileprocess|--grace 5h true|--grace can't be '5h'
profileprocess|--log no/log true|--log can't be 'no/log': No such file or directory
profileprocess|--with= true|--with can't be '': it has no word
crawl|one two|unexpected argument 'two'
crawl|--scheduler fair|--scheduler can't be 'fair'; it takes one of: stealing global
crawl|no-such-folder|crawl: no-such-folder: No such file or directory
TABLE
if [ -n "$proxy" ]; then
    refuses proxy '--backend is missing' --listen=127.0.0.1:0
    for address in '' x x: :1 x:0 x:65536 x:1x x:-1 a:b:1 '[]:1' '[::1]' '[::1:1' 'a/b:1' ' :1'; do
        refuses proxy "--backend can't be '$address'; it takes HOST:PORT or [ADDRESS]:PORT" --backend "$address"
    done
    refuses proxy "--listen can't be 'x'; it takes HOST:PORT" --listen x --backend 127.0.0.1:1
    refuses proxy "--check can't be 'x'; it takes a path" --check x --backend 127.0.0.1:1
    refuses proxy "--check can't be ''" --check= --backend 127.0.0.1:1
    refuses proxy "--balance can't be 'x'; it takes one of: turns least" --balance x
    refuses proxy '--key needs --certificate' --key x --backend 127.0.0.1:1
    refuses proxy "unexpected argument 'more'" --backend 127.0.0.1:1 more
    run 1 proxy --backend 127.0.0.1:1 --certificate no-such
    grep -q '^proxy: .*no-such' err || complain "a certificate that is missing: $(cat err)"
    run 1 proxy --backend 127.0.0.1:1 --log no/log
    run 1 proxy --backend 127.0.0.1:1 --listen 192.0.2.1:1
    grep -q '^proxy: listen on 192.0.2.1:1: ' err || complain "an address of another machine: $(cat err)"
fi
for grace in 5 .5 500ms 0.5s 2m 1e3; do
    run 0 profileprocess --grace=$grace -- true
done
for line in 'a | b' 'a; b' 'a &' 'a >b' 'a {}'; do
    refuses profileprocess "--with can't be '$line': it has one of" --with "$line" true
done
refuses profileprocess "it has a command" --with 'a $(b)' true
refuses profileprocess "a quote or a brace is not closed" --with "a 'b" true
run 3 profileprocess sh -c 'exit 3' --no-such
run 0 crowd --stacks=own --stacks=shared --stacks=both -h
run 0 crawl --whole --scheduler=global --scheduler=stealing -h
run 0 turtle -o -c gosper -f picture.bmp -h
[ "$(ls)" = "$(printf 'err\nout\ntable')" ] || complain "the runs have left files: $(ls)"

[ $status -ne 0 ] || echo "options: ok ($count runs)"
exit $status
