#!/bin/sh
# usage: tools/check-planted.sh PROGRAM...
#
# A sanitizer that finds nothing may be blind. Each program, of tests/planted, has a bug that must be reported, in the words
# of each line `/* expect: PATTERN */` of its source, one of which names the function at fault, and in none of those of
# `/* never: PATTERN */`. UNDER: what the programs are run by, valgrind for example, with its options.
set -u
symbols="external_symbolizer_path=$(command -v addr2line)"
export ASAN_OPTIONS="detect_leaks=1:intercept_tls_get_addr=0:$symbols"
export UBSAN_OPTIONS="print_stacktrace=1"
export TSAN_OPTIONS="$symbols"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

# wrong TEXT: complains about the program that runs
wrong()
{
    echo "planted: $name $1:"
    cat "$work/output"
    status=1
}

# patterns WORD: prints the patterns of the source's lines that begin with it
patterns()
{
    sed -n "s|^/\* $1: \(.*\) \*/$|\1|p" "tests/planted/$name.c" >"$work/patterns"
}

for program; do
    name=$(basename "$program")
    # shellcheck disable=SC2086
    if timeout 600 ${UNDER-} "$program" >"$work/output" 2>&1 </dev/null; then
        wrong "was not noticed"
        continue
    fi
    patterns expect
    [ "$(wc -l <"$work/patterns")" -ge 2 ] || wrong "does not expect what is reported and where"
    while read -r pattern; do
        grep -Eq -- "$pattern" "$work/output" || wrong "has failed, but not by '$pattern'"
    done <"$work/patterns"
    patterns never
    while read -r pattern; do
        grep -Eq -- "$pattern" "$work/output" && wrong "has failed, but also by '$pattern'"
    done <"$work/patterns"
done
[ $status -ne 0 ] || echo "planted: $# bugs found"
exit $status
