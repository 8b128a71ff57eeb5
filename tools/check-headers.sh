#!/bin/sh
# usage: tools/check-headers.sh HEADER...
#
# Every public header compiles alone, twice in one file too, in C and in C++, without a warning, and in strict C11; and
# without -fexceptions, which only the macros that open blocks need. Its comments state callers, suspension and cost
# (tools/check-comments.py).
# CC, CXX, CLANG and CLANGXX name the compilers.
set -u

status=0
warnings="-Wall -Wextra -Wshadow -Wpedantic -Wundef -Wstrict-prototypes"

# try HEADER COMPILER FLAG...
try()
{
    header=${1#include/} compiler=$2
    shift 2
    # The flags are words.
    # shellcheck disable=SC2086
    printf '#include <%s>\n#include <%s>\ntypedef int something;\n' "$header" "$header" |
        "$compiler" "$@" -Werror -Iinclude -fsyntax-only - && return
    echo "headers: $header fails with $compiler $*"
    status=1
}

for header; do
    for c in "${CC:-gcc}" "${CLANG:-clang-19}"; do
        # shellcheck disable=SC2086
        try "$header" "$c" -x c -std=c11 -fexceptions $warnings
        # shellcheck disable=SC2086
        try "$header" "$c" -x c -std=c11 -fno-exceptions $warnings
    done
    for cxx in "${CXX:-g++}" "${CLANGXX:-clang++-19}"; do
        # shellcheck disable=SC2086
        try "$header" "$cxx" -x c++ -std=c++17 -fexceptions ${warnings% *}
    done
done
tools/check-comments.py "$@" || status=1
[ $# -gt 0 ] || status=1
[ $status -ne 0 ] || echo "headers: ok"
exit $status
