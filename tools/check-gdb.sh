#!/bin/sh
# usage: tools/check-gdb.sh FOLDER
#
# gdb loads the commands `strand ...` with a program that has libstrand.a or libstrand.so of the folder in it, and shows
# the functions of its strands, those that are copied out too, in a live process and in core files. FOLDER/programs has
# the program (tests/programs/parked.c). Without gdb, or where it may not look into processes, nothing is checked.
set -u
export LC_ALL=C

folder=$1
status=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
ulimit -f 2000000 # a core file of all address space would fill the disk

command -v gdb >/dev/null || {
    echo "gdb: not checked: there is no gdb"
    exit 0
}

# gdb FILE... -- as a person calls it whose gdb trusts the program
ask()
{
    timeout 600 gdb -nx -batch -iex 'set auto-load safe-path /' -iex 'set debuginfod enabled off' "$@" </dev/null 2>&1
}

# expect WHAT FILE PATTERN: a line of the answer
expect()
{
    grep -q -- "$3" "$2" && return
    echo "gdb: $1: there is no line with '$3' in:"
    cat "$2"
    status=1
}

# check WHAT ARGUMENT...: gdb with these has the program, or its core, before it
check()
{
    what=$1
    shift
    ask "$@" -ex 'strand list' >"$work/list"
    expect "$what" "$work/list" "^9 strands; 3 threads$"
    expect "$what" "$work/list" "^    pool 'aside', closing: 2 threads (stealing)$"
    expect "$what" "$work/list" "^#[0-9]* 'root' running on thread 0"
    expect "$what" "$work/list" "^#[0-9]* 'first' sleeps; fibre 'crowd' 0, inactive; in doze_among_others"
    expect "$what" "$work/list" "^#[0-9]* 'third' sleeps; fibre 'crowd' 0; in doze_among_others"
    expect "$what" "$work/list" "^#[0-9]* 'owner' joins strand #[0-9]*; in owner"
    expect "$what" "$work/list" "^#[0-9]* 'closer' waits for the end of pool 'aside'; in close_it"
    expect "$what" "$work/list" "^#[0-9]* 'distant' sleeps; cancelled; pool 'aside'; in doze_alone"
    expect "$what" "$work/list" "^#[0-9]* 'busy' running on thread [01]; cancelled; pool 'aside'$"
    number=$(sed -n "s/^#\([0-9]*\) 'second'.*/\1/p" "$work/list")
    child=$(sed -n "s/^#\([0-9]*\) 'child'.*/\1/p" "$work/list")
    busy=$(sed -n "s/^#\([0-9]*\) 'busy'.*/\1/p" "$work/list")
    root=$(sed -n "s/^#\([0-9]*\) 'root'.*/\1/p" "$work/list")
    ask "$@" -ex 'strand tree' -ex 'echo SECOND\n' -ex "strand $number bt" -ex 'echo CHILD\n' -ex "strand $child bt" \
        -ex 'echo ROOT\n' -ex "strand $root bt" -ex 'echo BUSY\n' -ex "strand $busy bt" >"$work/all"
    expect "$what" "$work/all" "^    #$child 'child' sleeps"
    ask "$@" -ex 'python SHOWN_MOST = 2' -ex 'strand list' -ex 'strand tree' -ex 'strand tree all' >"$work/some"
    expect "$what, of many the first" "$work/some" "^and 7 more: strand list all"
    expect "$what, of many the first" "$work/some" "^and 7 more: strand tree all"
    expect "$what, all of many" "$work/some" "^    #$child 'child' sleeps"
    sed -n '/^SECOND/,/^CHILD/p' "$work/all" >"$work/second"
    expect "$what, an inactive strand" "$work/second" "^#0 .* in doze_among_others ()"
    expect "$what, an inactive strand" "$work/second" "^#2 .* in doze_among_others ()"
    expect "$what, an inactive strand" "$work/second" "^#3 .* in doze_in_a_frame_of_size ()"
    expect "$what, an inactive strand" "$work/second" "^#4 .* in among_others ()"
    sed -n '/^CHILD/,/^ROOT/p' "$work/all" >"$work/child"
    expect "$what, a suspended strand" "$work/child" "^#0 .* in doze_alone ()"
    expect "$what, a suspended strand" "$work/child" "^#1 .* in alone ()"
    sed -n '/^ROOT/,/^BUSY/p' "$work/all" >"$work/root"
    expect "$what, a running strand" "$work/root" " in stop_here "
    expect "$what, a running strand" "$work/root" " in root "
    sed -n '/^BUSY/,$p' "$work/all" >"$work/busy"
    expect "$what, a strand that runs on another pool" "$work/busy" " compute_there "
}

program=$folder/programs/parked
ask -ex run "$program" >"$work/run"
grep -q 'signal SIGABRT' "$work/run" || {
    echo "gdb: not checked: it can't run a program here: $(grep -m 1 -i 'ptrace\|warning\|error' "$work/run")"
    exit 0
}
check "a live process" -ex run "$program"

# gdb's core files have no mapping with guard pages of the newer kind inside.
(export STRAND_GUARDS=mprotect && ask -ex run -ex "generate-core-file $work/gcore" "$program") >/dev/null
check "a core file of gdb's" "$program" "$work/gcore"

# Without that it says what is missing, if it is.
ask -ex run -ex "generate-core-file $work/gcore-guarded" "$program" >/dev/null
ask "$program" "$work/gcore-guarded" -ex 'strand list' >"$work/list"
child=$(sed -n "s/^#\([0-9]*\) 'child'.*/\1/p" "$work/list")
ask "$program" "$work/gcore-guarded" -ex "strand $child bt" >"$work/guarded" 2>&1
expect "a core file without stacks" "$work/guarded" "in doze_alone ()\|stack of strand #$child is not in this core file.*mprotect"

case $(cat /proc/sys/kernel/core_pattern) in
core | core.%p)
    program=$(realpath "$program")
    sh -c 'cd "$1" && ulimit -c unlimited && "$2"; :' sh "$work" "$program" >/dev/null 2>&1
    core=$(find "$work" -name 'core*' -size +0 | head -n 1)
    [ -z "$core" ] || check "a core file of the system's" "$program" "$core"
    ;;
esac

${CC:-gcc} -g -O2 -fexceptions -Iinclude -Itests/harness tests/programs/parked.c -L"$folder" -lstrand \
    -Wl,-rpath,"$(realpath "$folder")" -o "$work/shared" || status=1
check "a program with the shared library" -ex run "$work/shared"
(export STRAND_GUARDS=mprotect && ask -ex run -ex "generate-core-file $work/gcore-shared" "$work/shared") >/dev/null
check "a core file of a program with the shared library" "$work/shared" "$work/gcore-shared"
[ $status -ne 0 ] || echo "gdb: ok"
exit $status
