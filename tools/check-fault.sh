#!/bin/sh
# usage: tools/check-fault.sh FOLDER SATELLITE...
#
# Every symbol that FOLDER's libstrand.a needs from elsewhere stands in tests/fault/calls.def, as one that `make fault`
# makes fail or as one that can't; and nothing else stands there. So does every symbol that a satellite needs from
# elsewhere than libstrand.a in tests/fault/SATELLITE_calls.def, but for those of the foreign library below it, which
# begin as a line FOREIGN of the table says.
set -u
export LC_ALL=C

folder=$1 status=0 count=0
shift

# complain WHAT SYMBOLS
complain()
{
    [ -n "$2" ] || return
    echo "fault: $1:" $2
    status=1
}

# check LIBRARY TABLE
check()
{
    foreign=$(sed -n 's/^FOREIGN(\([A-Za-z0-9_]*\),.*/\1/p' "$2" | paste -sd '|' | sed 's/^$/-/')
    needed=$(nm -u "$1" | awk 'NF == 2 { print $2 }' | sort -u)
    [ "$1" = "$folder/libstrand.a" ] || needed=$(echo "$needed" | grep -vE "^(strand_|STRAND_|$foreign)")
    listed=$(sed -n 's/^\(FAILS\|WATCHED\|SAME\|SURE\)(\([A-Za-z0-9_]*\),.*/\2/p' "$2" | sort -u)
    twice=$(sed -n 's/^SURE(\([A-Za-z0-9_]*\),.*/\1/p; s/^\(FAILS\|WATCHED\|SAME\)(\([A-Za-z0-9_]*\),.*/\2 made/p' "$2" |
        sort -u | awk '{ print $1 }' | uniq -d)
    complain "$1 calls, and $2 does not say whether it can fail" \
        "$(printf '%s\n%s\n%s\n' "$needed" "$listed" "$listed" | sort | uniq -u)"
    complain "$1 does not call what $2 lists" "$(printf '%s\n%s\n%s\n' "$listed" "$needed" "$needed" | sort | uniq -u)"
    complain "$2 says both of" "$twice"
    [ -n "$needed" ] || complain "nm finds nothing" "$1"
    count=$((count + $(echo "$needed" | wc -l)))
}

check "$folder/libstrand.a" tests/fault/calls.def
for satellite; do
    check "$folder/libstrand-$satellite.a" "tests/fault/${satellite}_calls.def"
done
[ $status -ne 0 ] || echo "fault: ok ($count symbols)"
exit $status
