#!/bin/sh
# usage: tools/check-programs.sh FOLDER
#
# The programs in the documents do what is said there. In a document they stand between the lines `<!-- program -->` and
# `<!-- end of program -->`: all blocks of C or C++ between these, one after the other, are a program, which is compiled
# without a warning and with FOLDER's libstrand.a, and run; what it prints is the block there that is of neither. It does
# the same when it is compiled with strand/check.h.
set -u
export LC_ALL=C

folder=$1 status=0 count=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# split DOCUMENT: $work/N.c (or .cc) and $work/N.out for the N-th program in it, from 1 on
split()
{
    awk -v work="$work" '
        /^<!-- program -->$/ { at = ++n }
        /^<!-- end of program -->$/ { at = 0 }
        !at { next }
        /^```/ { code = /^```c(pp)?$/; if (code) name = at (/pp/ ? ".cc" : ".c"); text = !inside && !code; inside = !inside
                 if (inside && text) printf "" >(work "/" at ".out")
                 next }
        inside && !text { print >(work "/" name) }
        inside && text { print >>(work "/" at ".out") }' "$1"
}

# run_as_it_says DOCUMENT FLAGS: $program, compiled by $compiler
run_as_it_says()
{
    of=$1
    shift
    $compiler -Wall -Wextra -Werror -fexceptions -Iinclude "$@" "$program" "$folder/libstrand.a" -o "$work/program" ||
        { echo "programs: $of: one is not compiled with $*" && status=1 && return; }
    timeout 600 "$work/program" >"$work/printed" 2>&1
    result=$?
    [ $result -eq 0 ] || { echo "programs: $of: one that is compiled with $* ended with $result" && status=1; }
    diff "${program%.c*}.out" "$work/printed" >&2 ||
        { echo "programs: $of: one does not print what the document says" && status=1; }
}

for document in README.md docs/*.md; do
    rm -f "$work"/*
    split "$document"
    for program in "$work"/*.c "$work"/*.cc; do
        [ -e "$program" ] || continue
        count=$((count + 1))
        case $program in
        *.cc) compiler=${CXX:-g++} extensions= ;; # on by default
        *) compiler=${CC:-gcc} extensions=-D_GNU_SOURCE= ;;
        esac
        run_as_it_says "$document" -O2
        run_as_it_says "$document" -O0 $extensions -include strand/check.h
    done
done
[ $count -gt 1 ] || { echo "programs: the documents have only $count" && status=1; }
[ $status -ne 0 ] || echo "programs: ok ($count)"
exit $status
