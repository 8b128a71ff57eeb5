#!/bin/sh
# usage: tools/check-user-tools.sh BUILD [WAY...]
#
# The library as it is installed, of BUILD, under tools that only the program is made for: the specification runs without
# a report, and bugs of tests/planted are found. A WAY is COMPILER:TOOL:LIBRARY:STACKS, where TOOL is address, thread or
# valgrind, LIBRARY a or so, and STACKS private or shared. A way whose compiler is not there is left out. TESTS="scope
# chan" takes these files only; without it each way takes every file of the specification whose number is its own, so
# that the ways with a sanitizer take them all together. ALL=1: each takes all. SHORT=1: each takes a third of its own,
# others after each commit.
#
# For valgrind the environment has its command (VALGRIND), and which files the ways with valgrind take together
# (VALGRIND_PART), as each test takes seconds there.
set -u
export LC_ALL=C
# The compilers themselves: what a compiler is called by decides where its sanitizers look for their symbolizer.
PATH=$(printf %s "$PATH" | tr : '\n' | grep -v ccache | paste -s -d :)
export PATH

# compile OUT SOURCE: one object
if [ "${1-}" = --compile ]; then
    case $2 in *.cc) compiler="$USER_CXX -std=c++17" ;; *) compiler="$USER_CC -std=gnu11" ;; esac
    object=$USER_WORK/$(echo "$2" | tr '/' '_').o
    # shellcheck disable=SC2086
    exec $compiler -O1 -g -fno-omit-frame-pointer -fexceptions -D_GNU_SOURCE= -w $USER_FLAGS -DTEST_PLAIN \
        -DTEST_PROGRAMS="\"$USER_BUILD/programs\"" -DTEST_EXAMPLES="\"$USER_BUILD/examples\"" -DTEST_DOCS="\"$PWD/docs\"" \
        -Iinclude -Itests/harness \
        -c "$2" -o "$object"
fi
# link KIND/NAME
if [ "${1-}" = --link ]; then
    source=$(ls tests/"$2".c tests/"$2".cc 2>/dev/null)
    case $source in *.cc) compiler=$USER_CXX ;; *) compiler=$USER_CC ;; esac
    objects=$USER_WORK/$(echo "$source" | tr '/' '_').o
    case $2 in spec/*) objects="$objects $USER_HARNESS" ;; esac
    library=$USER_BUILD/libstrand.a
    [ "$USER_LIBRARY" = a ] || library="-L$USER_BUILD -lstrand -Wl,-rpath,$USER_BUILD"
    mkdir -p "$(dirname "$USER_WORK/$2")"
    # shellcheck disable=SC2086
    exec $compiler -g -Wl,-z,now $USER_FLAGS $objects $library -pthread -ldl -o "$USER_WORK/$2"
fi

build=$(cd "$1" && pwd) || exit 1
shift
USER_BUILD=$build
export USER_BUILD USER_WORK USER_CC USER_CXX USER_FLAGS USER_LIBRARY USER_HARNESS
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
jobs=${JOBS:-2} status=0 number=0 turn=0 step=1
[ -z "${SHORT-}" ] || turn=$(git rev-list --count HEAD 2>/dev/null || echo 0) step=3

# every COUNT WHICH: prints that part of the input's lines
every()
{
    awk -v count="$1" -v which="$2" 'NR % count == which % count'
}

# cxx_of WAY: its compiler of C++
cxx_of()
{
    echo "${1%%:*}" | sed 's/^gcc/g++/; s/^clang/clang++/'
}

# core: without the tests of satellites, which need their foreign libraries
core()
{
    grep -Ev "^tests/spec/($(awk '/^[a-z]/ { print $1 }' tools/satellites | paste -s -d '|'))_"
}

# spec: the files that this way takes
spec()
{
    if [ -n "${TESTS-}" ]; then
        for name in $TESTS; do ls tests/spec/"$name".c tests/spec/"$name".cc 2>/dev/null; done
    elif [ -n "${ALL-}" ]; then
        ls tests/spec/*.c tests/spec/*.cc | core
    elif [ "$tool" = valgrind ]; then
        for name in $VALGRIND_PART; do echo "tests/spec/$name.c"; done | every "$alike" "$place" | every "$step" "$turn"
    else
        ls tests/spec/*.c tests/spec/*.cc | core | every "$alike" "$place" | every "$step" "$turn"
    fi
}

# names FILE...: without folder tests and suffix
names()
{
    for file; do
        file=${file#tests/}
        echo "${file%.*}"
    done
}

here=$(for way; do ! command -v "$(cxx_of "$way")" >/dev/null || echo "$way"; done)
count_valgrind=$(echo "$here" | grep -c ':valgrind:') place_valgrind=0
count_sanitizer=$(echo "$here" | grep -vc ':valgrind:') place_sanitizer=0

for way; do
    compiler=${way%%:*}
    USER_CC=$compiler USER_CXX=$(cxx_of "$way")
    if ! command -v "$USER_CXX" >/dev/null; then
        echo "user-tools: $way left out: there is no $USER_CXX"
        continue
    fi
    rest=${way#*:}
    tool=${rest%%:*} rest=${rest#*:}
    USER_LIBRARY=${rest%%:*} stacks=${rest#*:}
    USER_WORK=$work/$number
    mkdir -p "$USER_WORK"
    case $tool in
    address) mode=asan USER_FLAGS=-fsanitize=address ;;
    thread) mode=tsan USER_FLAGS=-fsanitize=thread ;;
    valgrind) mode=memcheck USER_FLAGS=-O0 ;;
    esac
    case $tool in
    valgrind) alike=$count_valgrind place=$place_valgrind place_valgrind=$((place_valgrind + 1)) ;;
    *) alike=$count_sanitizer place=$place_sanitizer place_sanitizer=$((place_sanitizer + 1)) ;;
    esac
    harness=$(ls tests/harness/*.c | grep -v coverage)
    tests=$(spec)
    planted=$(ls tests/planted/${mode}_*.c | grep -v undefined)
    number=$((number + 1))
    USER_HARNESS=$(for source in $harness; do echo "$USER_WORK/$(echo "$source" | tr '/' '_').o"; done | tr '\n' ' ')
    echo "user-tools: $way"
    # shellcheck disable=SC2086
    printf '%s\n' $harness $tests $planted | xargs -P "$jobs" -n 1 "$0" --compile || { status=1 && continue; }
    # shellcheck disable=SC2086
    names $tests $planted | xargs -P "$jobs" -n 1 "$0" --link || { status=1 && continue; }
    [ "$stacks" = shared ] || stacks=
    # shellcheck disable=SC2046
    if [ "$tool" = valgrind ]; then
        JOBS=$jobs UNDER="$VALGRIND" tools/run-valgrind.sh $(names $tests | sed "s|^|$USER_WORK/|") || status=1
        UNDER="$VALGRIND" tools/check-planted.sh $(names $planted | sed "s|^|$USER_WORK/|") || status=1
        continue
    fi
    # Some builds of TSan have no more than 8128 fibers.
    # shellcheck disable=SC2046
    MODE=$mode STACKS=$stacks SCHED=stealing THREADS=2 SEEDS=${SEEDS:-0} SCALE=${SCALE:-5} JOBS=$jobs \
        tools/run-tests.sh $(names $tests | sed "s|^|$USER_WORK/|") >"$USER_WORK/log" || { status=1 && grep -v '^ok ' "$USER_WORK/log"; }
    tail -1 "$USER_WORK/log"
    # shellcheck disable=SC2046
    tools/check-planted.sh $(names $planted | sed "s|^|$USER_WORK/|") || status=1
done
exit $status
