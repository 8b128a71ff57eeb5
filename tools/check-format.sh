#!/bin/sh
# usage: tools/check-format.sh FILE...
#
# The files are as clang-format would leave them (make format does it), and no line has more than 120 columns. Each label
# of a protocol block begins a line: clang-format joins the lines of a block in which one line was too long.
set -u
export LC_ALL=C.UTF-8

formatter=${FORMAT:-clang-format-14}
status=0
# One process for all files: starting it costs more than a file.
if ! said=$("$formatter" --dry-run -Werror "$@" 2>&1); then
    echo "$said" | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: .*/format: \1 is not formatted: make format/p' | sort -u |
        grep . || echo "format: $formatter: $said"
    status=1
fi
if grep -HnE '^.{121,}' "$@" | sed 's|^\([^:]*:[0-9]*\):.*|format: \1: more than 120 columns|' | grep .; then
    status=1
fi
labels='PARTIES|STATE|OWNERSHIP|PROTOCOL|INVARIANTS?|ORDERING|PROGRESS|NOT DONE|TESTED BY'
if grep -HnE "^ \*.*[^ *] +($labels)  ?[^ ]" "$@" |
    sed 's|^\([^:]*:[0-9]*\):.*|format: \1: the label of a protocol block in the middle of a line|' | grep .; then
    status=1
fi
[ $status -ne 0 ] || echo "format: ok"
exit $status
