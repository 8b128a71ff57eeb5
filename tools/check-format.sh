#!/bin/sh
# usage: tools/check-format.sh FILE...
#
# The files are as clang-format would leave them (make format does it), and no line has more than 120 columns.
set -u
export LC_ALL=C.UTF-8

status=0
for file; do
    if ! "${FORMAT:-clang-format-14}" --dry-run -Werror "$file" >/dev/null 2>&1; then
        echo "format: $file is not formatted: make format"
        status=1
    elif grep -nE '^.{121,}' "$file" | sed "s|^\([0-9]*\):.*|format: $file:\1: more than 120 columns|" | grep .; then
        status=1
    fi
done
[ $status -ne 0 ] || echo "format: ok"
exit $status
