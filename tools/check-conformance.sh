#!/bin/sh
# usage: tools/check-conformance.sh
#
# Every test that docs/conformance.md or docs/misuse.md names, as `tests/...: name`, exists: as a TEST of that file, or
# in tests/unit as a function of it. So does every file of this repository that these pages name.
set -u
export LC_ALL=C

pages="docs/conformance.md docs/misuse.md" status=0 count=0
# shellcheck disable=SC2016
# shellcheck disable=SC2086
named=$(grep -ohE '`(docs|include|src|tests|tools)/[^` ]*(: [^`]*)?`' $pages | tr -d '`' | sort -u)
while IFS=: read -r file name; do
    name=${name# }
    case $file in
    tests/unit/*) definition="^static void $name\\(" ;;
    *) definition="^TEST[A-Z_]*\\($name\\)" ;;
    esac
    if [ ! -e "${file:-$0}" ]; then
        echo "conformance: $file is named, which does not exist"
        status=1
    elif [ -n "$name" ] && ! grep -Eq -- "$definition" "$file"; then
        echo "conformance: the test $name is named, which is not in $file"
        status=1
    fi
    [ -z "$name" ] || count=$((count + 1))
done <<END
$named
END
[ "$count" -gt 0 ] || { echo "conformance: no tests are named" && status=1; }
[ $status -eq 0 ] && echo "conformance: ok ($count tests named)"; exit $status
