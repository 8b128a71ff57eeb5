#!/bin/sh
# usage: tools/check-conformance.sh
#
# Every test that docs/conformance.md names, as `tests/...: name`, exists: as a TEST of that file, or in tests/unit as a
# function of it. So does every file of this repository that the page names.
set -u
export LC_ALL=C

page=docs/conformance.md status=0 count=0
# shellcheck disable=SC2016
named=$(grep -oE '`(docs|include|src|tests|tools)/[^` ]*(: [^`]*)?`' "$page" | tr -d '`' | sort -u)
while IFS=: read -r file name; do
    name=${name# }
    case $file in
    tests/unit/*) definition="^static void $name\\(" ;;
    *) definition="^TEST[A-Z_]*\\($name\\)" ;;
    esac
    if [ ! -e "${file:-$page}" ]; then
        echo "conformance: $page names $file, which does not exist"
        status=1
    elif [ -n "$name" ] && ! grep -Eq -- "$definition" "$file"; then
        echo "conformance: $page names the test $name, which is not in $file"
        status=1
    fi
    [ -z "$name" ] || count=$((count + 1))
done <<END
$named
END
[ "$count" -gt 0 ] || { echo "conformance: $page names no tests" && status=1; }
[ $status -eq 0 ] && echo "conformance: ok ($count tests named)"; exit $status
