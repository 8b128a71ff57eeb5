#!/bin/sh
# usage: tools/check-globals.sh OBJECT...
#
# No mutable variables of file scope outside of src/arch/process.c: several runs in one process share nothing. Constants
# that the loader relocates are none. A satellite, whose objects may belong to no run, has them in src/NAME/NAME_process.c.
#
# V-01, contract 1.2, 9.7
set -u
export LC_ALL=C

satellites=$(awk '/^[a-z]/ { print $1 }' tools/satellites)
status=0
for object; do
    for satellite in $satellites; do
        case $object in
        */src/$satellite/${satellite}_process.o) continue 2 ;;
        esac
    done
    case $object in
    */src/arch/process.o) continue ;;
    esac
    # The flags and the section of a symbol: objects, and thread-locals, which have no such flag.
    variables=$(objdump -t "$object" | awk '
        / d / || /\.data\.rel\.ro/ || $NF ~ /^DW\.ref\./ { next }
        /[ \t]\.t(bss|data)[^ \t]*[ \t]/ || (/ O / && /[ \t](\.bss|\.data|\*COM\*)[^ \t]*[ \t]/) { print $NF }')
    for variable in $variables; do
        echo "globals: ${object##*/obj/} has the mutable variable $variable"
        status=1
    done
done
[ $status -ne 0 ] || echo "globals: ok"
exit $status
