#!/bin/sh
# usage: tools/check-planted.sh PROGRAM...
#
# A sanitizer that finds nothing may be blind. Each program, of tests/planted, has a bug that must be reported in the words
# that its source expects.
set -u
export ASAN_OPTIONS="detect_leaks=1"
TSAN_OPTIONS="external_symbolizer_path=$(command -v addr2line)"
export TSAN_OPTIONS

output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
status=0
for program; do
    name=$(basename "$program")
    expected=$(sed -n 's|^/\* expect: \(.*\) \*/$|\1|p' "tests/planted/$name.c" | head -n 1)
    if timeout 120 "$program" >"$output" 2>&1; then
        echo "planted: nobody has noticed $name"
        status=1
    elif [ -z "$expected" ] || ! grep -Eq -- "$expected" "$output"; then
        echo "planted: $name has failed, but not by '$expected':"
        cat "$output"
        status=1
    fi
done
[ $status -ne 0 ] || echo "planted: $# bugs found"
exit $status
