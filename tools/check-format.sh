#!/bin/sh
# usage: tools/check-format.sh FILE...
#
# The files are as clang-format would leave them (make format does it), and no line has more than 120 columns.
set -u
export LC_ALL=C.UTF-8

status=0
for file; do
    # The style of clang-format's own report is a line per changed token; the first says enough.
    "${FORMAT:-clang-format-14}" --dry-run -Werror --ferror-limit=1 "$file" 2>&1 | sed -n '1s/^/format: /p' | grep . && status=1
    grep -nE '^.{121,}' "$file" | sed "s|^\([0-9]*\):.*|format: $file:\1: more than 120 columns|" | grep . && status=1
done
[ $status -ne 0 ] || echo "format: ok"
exit $status
