#!/bin/sh
# usage: tools/check-exports.sh FOLDER SATELLITE...
#
# What FOLDER's libstrand.a and libstrand.so show to a program: strand* and STRAND* only, and of these just what
# tools/exports.map lists, in a version of its own. They leave _Unwind_* to libgcc_s, because a second unwinder takes over
# all C++ exceptions of a program; no other library is needed; nothing asks for an executable stack, and relocations are
# read-only before main. Likewise for libstrand-SATELLITE, which has tools/exports-SATELLITE.map, and may need libstrand
# and the libraries of tools/satellites.
#
# contract 9.8
set -u
export LC_ALL=C

folder=$1
shift
status=0

complain()
{
    echo "exports: $*"
    status=1
}

# check_names LIBRARY NAMES
check_names()
{
    [ -n "$2" ] || complain "$1 exports nothing; are the public headers between visibility pragmas?"
    others=$(echo "$2" | grep -Ev '^(strand|STRAND)_')
    [ -z "$others" ] || complain "$1 exports" $others
}

# check LIBRARIES MAP SATELLITE NEEDS: a library in both forms; NEEDS: patterns of what it may need beside the usual
check()
{
    archive=$1.a shared=$1.so map=$2 satellite=$3 needs=$4
    in_archive=$(nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | sort)
    in_shared=$(nm -D --defined-only --without-symbol-versions "$shared" | awk 'NF == 3 && $2 != "A" { print $3 }' | sort)
    listed=$(sed -n 's/^    \([A-Za-z]\w*\);$/\1/p' "$map" | sort)
    check_names "$archive" "$in_archive"
    check_names "$shared" "$in_shared"
    [ "$in_archive" = "$in_shared" ] || complain "the two libraries export different names:" \
        $(printf '%s\n%s\n' "$in_archive" "$in_shared" | sort | uniq -u)
    # The linker says nothing of a listed name that is not defined, and hides a defined one that is not listed.
    [ "$in_archive" = "$listed" ] || complain "$map and the sources differ:" \
        $(printf '%s\n%s\n' "$in_archive" "$listed" | sort | uniq -u)
    nm -D --defined-only "$shared" | grep -q '@@STRAND_' || complain "$shared has no versions of its symbols"

    # Handles outlive runs, so their addresses stay reserved for as long as the process lives: each time that the library was
    # unloaded and loaded again would take another TiB.
    readelf -dW "$shared" | grep -q NODELETE || complain "$shared can be unloaded"

    # Local definitions count too: calls from inside would go to them.
    for library in "$archive" "$shared"; do
        taken=$(nm "$library" | awk '$2 ~ /^[^Uwv]$/ && $3 ~ /^(__libunwind)?_Unwind_/ { print $3 }')
        [ -z "$taken" ] || complain "$library defines" $taken
        [ -n "$satellite" ] || nm "$library" | grep -q ' U _Unwind_' || complain "$library does not use libgcc_s for unwinding"
        ! readelf -SW "$library" | grep -q 'GNU-stack.*X' || complain "$library asks for an executable stack"
    done

    dynamic=$(readelf -dW "$shared")
    echo "$dynamic" | grep -q "SONAME.*\[libstrand$satellite\.so\.0\]" || complain "$shared has no soname libstrand$satellite.so.0"
    echo "$dynamic" | grep -q 'BIND_NOW\|FLAGS_1.*NOW' || complain "$shared binds lazily"
    ! echo "$dynamic" | grep -q TEXTREL || complain "$shared has relocations in its code"
    readelf -lW "$shared" | grep -q GNU_RELRO || complain "$shared has no read-only relocations"
    readelf -lW "$shared" | grep -q 'GNU_STACK.* RW ' || complain "$shared asks for an executable stack"
    others=$(echo "$dynamic" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v "^libgcc_s\.so\|^libc\.so\|^ld-linux$needs")
    [ -z "$others" ] || complain "$shared needs" $others
    counts="$counts$(echo "$in_shared" | wc -l) names of ${shared##*/}, "
}

counts=
check "$folder/libstrand" tools/exports.map '' ''
for satellite; do
    needs=$(awk -v name="$satellite" '$1 == name { for (i = 5; i <= NF; i++) print substr($i, 3) }' tools/satellites |
        sed 's/.*/\\|^lib&\\.so/' | tr -d '\n')
    check "$folder/libstrand-$satellite" "tools/exports-$satellite.map" "-$satellite" "\|^libstrand\.so$needs"
done
[ $status -ne 0 ] || echo "exports: ok (${counts%, })"
exit $status
