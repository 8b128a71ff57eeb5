#!/bin/sh
# usage: tools/check-programs.sh FOLDER
#
# The programs in the documents do what is said there. In a document they stand between the lines `<!-- program -->` and
# `<!-- end of program -->`: all blocks of C or C++ between these, one after the other, are a program, which is compiled
# without a warning and with FOLDER's libstrand.a, and run; what it prints is the block there that is of neither.
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

for document in README.md docs/*.md; do
    rm -f "$work"/*
    split "$document"
    for program in "$work"/*.c "$work"/*.cc; do
        [ -e "$program" ] || continue
        count=$((count + 1))
        case $program in
        *.cc) compiler=${CXX:-g++} ;;
        *) compiler=${CC:-gcc} ;;
        esac
        $compiler -Wall -Wextra -Werror -O2 -fexceptions -Iinclude "$program" "$folder/libstrand.a" -o "$work/program" ||
            { echo "programs: $document: one is not compiled" && status=1 && continue; }
        timeout 600 "$work/program" >"$work/printed" 2>&1
        result=$?
        [ $result -eq 0 ] || { echo "programs: $document: one ended with $result" && status=1; }
        diff "${program%.c*}.out" "$work/printed" >&2 ||
            { echo "programs: $document: one does not print what the document says" && status=1; }
    done
done
[ $count -gt 1 ] || { echo "programs: the documents have only $count" && status=1; }
[ $status -ne 0 ] || echo "programs: ok ($count)"
exit $status
