#!/bin/sh
# usage: tools/check-fault.sh FOLDER
#
# Every symbol that FOLDER's libstrand.a needs from elsewhere stands in tests/fault/calls.def, as one that `make fault`
# makes fail or as one that can't; and nothing else stands there.
set -u
export LC_ALL=C

table=tests/fault/calls.def library=$1/libstrand.a status=0
needed=$(nm -u "$library" | awk 'NF == 2 { print $2 }' | sort -u)
listed=$(sed -n 's/^\(FAILS\|WATCHED\|SAME\|SURE\)(\([A-Za-z0-9_]*\),.*/\2/p' "$table" | sort -u)
twice=$(sed -n 's/^SURE(\([A-Za-z0-9_]*\),.*/\1/p; s/^\(FAILS\|WATCHED\|SAME\)(\([A-Za-z0-9_]*\),.*/\2 made/p' "$table" | sort -u |
    awk '{ print $1 }' | uniq -d)

# complain WHAT SYMBOLS
complain()
{
    [ -n "$2" ] || return
    echo "fault: $1:" $2
    status=1
}

complain "$library calls, and $table does not say whether it can fail" \
    "$(printf '%s\n%s\n%s\n' "$needed" "$listed" "$listed" | sort | uniq -u)"
complain "$library does not call what $table lists" "$(printf '%s\n%s\n%s\n' "$listed" "$needed" "$needed" | sort | uniq -u)"
complain "$table says both of" "$twice"
[ -n "$needed" ] || complain "nm finds nothing" "$library"
[ $status -ne 0 ] || echo "fault: ok ($(echo "$needed" | wc -l) symbols)"
exit $status
