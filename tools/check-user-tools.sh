#!/bin/sh
# usage: tools/check-user-tools.sh BUILD [WAY...]
#
# The library as it is installed, of BUILD, under sanitizers that only the program is compiled with: the specification
# runs without a report, and bugs of tests/planted are found. A WAY is COMPILER:SANITIZER:LIBRARY:STACKS, where LIBRARY
# is a or so, and STACKS private or shared. TESTS="scope chan" takes these files only; without it each way takes every
# file of the specification whose number is its own, so that the ways take them all together: ALL=1, and each takes all.
set -u
export LC_ALL=C

# compile OUT SOURCE: one object
if [ "${1-}" = --compile ]; then
    case $2 in *.cc) compiler="$USER_CXX -std=c++17" ;; *) compiler="$USER_CC -std=gnu11" ;; esac
    object=$USER_WORK/$(echo "$2" | tr '/' '_').o
    # shellcheck disable=SC2086
    exec $compiler -O1 -g -fno-omit-frame-pointer -fexceptions -D_GNU_SOURCE= -w -fsanitize="$USER_SANITIZER" -DTEST_PLAIN \
        -DTEST_PROGRAMS="\"$USER_BUILD/programs\"" -DTEST_EXAMPLES="\"$USER_BUILD/examples\"" -Iinclude -Itests/harness \
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
    exec $compiler -g -Wl,-z,now -fsanitize="$USER_SANITIZER" $objects $library -pthread -ldl -o "$USER_WORK/$2"
fi

build=$(cd "$1" && pwd) || exit 1
shift
USER_BUILD=$build
export USER_BUILD USER_WORK USER_CC USER_CXX USER_SANITIZER USER_LIBRARY USER_HARNESS
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
jobs=${JOBS:-2} status=0 ways=$# number=0

# spec: the files that this way takes
spec()
{
    if [ -n "${TESTS-}" ]; then
        for name in $TESTS; do ls tests/spec/"$name".c tests/spec/"$name".cc 2>/dev/null; done
    elif [ -n "${ALL-}" ]; then
        ls tests/spec/*.c tests/spec/*.cc
    else
        ls tests/spec/*.c tests/spec/*.cc | awk -v ways="$ways" -v number="$number" 'NR % ways == number'
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

for way; do
    compiler=${way%%:*}
    USER_CC=$compiler USER_CXX=$(echo "$compiler" | sed 's/^gcc/g++/; s/^clang/clang++/')
    if ! command -v "$USER_CXX" >/dev/null; then
        echo "user-tools: $way left out: there is no $USER_CXX"
        continue
    fi
    rest=${way#*:}
    USER_SANITIZER=${rest%%:*} rest=${rest#*:}
    USER_LIBRARY=${rest%%:*} stacks=${rest#*:}
    USER_WORK=$work/$number
    mkdir -p "$USER_WORK"
    case $USER_SANITIZER in address) mode=asan ;; *) mode=tsan ;; esac
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
    # Some builds of TSan have no more than 8128 fibers.
    # shellcheck disable=SC2046
    MODE=$mode STACKS=$stacks SCHED=stealing THREADS=2 SEEDS=${SEEDS:-0} SCALE=${SCALE:-5} JOBS=$jobs \
        tools/run-tests.sh $(names $tests | sed "s|^|$USER_WORK/|") >"$USER_WORK/log" || { status=1 && grep -v '^ok ' "$USER_WORK/log"; }
    tail -1 "$USER_WORK/log"
    # shellcheck disable=SC2046
    tools/check-planted.sh $(names $planted | sed "s|^|$USER_WORK/|") || status=1
done
exit $status
