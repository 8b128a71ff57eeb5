#!/bin/sh
# usage: tools/accept.sh FILE...
#
# What the library has to accept: each file compiles without a warning, by each compiler that there is, optimised and not.
# CC, CXX, CLANG and CLANGXX name the compilers. A file may name more options:
#
#   /* flags: ... */       of all compilers
#   /* g++ flags: ... */   of g++ only
set -u

status=0 compiled=0
for file; do
    flags=$(sed -n 's|^/\* flags: \(.*\) \*/$|\1|p' "$file")
    gxx_flags=$(sed -n 's|^/\* g++ flags: \(.*\) \*/$|\1|p' "$file")
    case $file in
    *.cc) compilers="${CXX:-g++} ${CLANGXX:-clang++-19}" standards="gnu++14 gnu++17 c++20" ;;
    *) compilers="${CC:-gcc} ${CLANG:-clang-19}" standards=gnu11 ;;
    esac
    for compiler in $compilers; do
        command -v "$compiler" >/dev/null || continue
        case $compiler in
        *clang*) own= ;;
        *) own=$gxx_flags ;;
        esac
        for standard in $standards; do
            for level in -O0 -O2 -O3; do
                # The flags are words.
                # shellcheck disable=SC2086
                "$compiler" "-std=$standard" $level -g -Wall -Wextra -Werror $flags $own -fexceptions -Iinclude -c "$file" -o /dev/null ||
                    { echo "accept: $compiler -std=$standard $level warns of $file"; status=1; }
                compiled=$((compiled + 1))
            done
        done
    done
done
[ $# -gt 0 ] || status=1
[ $status -ne 0 ] || echo "accept: $compiled compilations without a warning"
exit $status
