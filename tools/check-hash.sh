#!/bin/sh
# usage: tools/check-hash.sh SEEDS FOLDER...
#
# The same seeds give the same schedules whatever compiler made a program: runs the workloads in each FOLDER's sim/ under
# the seeds 1 to SEEDS and compares their hashes with those of the first folder.
set -u
export LC_ALL=C

seeds=$1
shift
status=0 count=0
for program in "$1"/sim/*; do
    [ -x "$program" ] || continue
    name=$(basename "$program") first=
    for folder; do
        hash=$("$folder/sim/$name" --hash --seeds "1-$seeds" 2>&1 | awk '{ print $NF }')
        [ -n "$first" ] || first=$hash
        if [ ${#hash} -ne 16 ] || [ "$hash" != "$first" ]; then
            echo "hash: $name: $hash in $folder, but $first in $1"
            status=1
        fi
    done
    count=$((count + 1))
done
[ $count -gt 0 ] || { echo "hash: there are no workloads in $1/sim" && exit 1; }
[ $status -ne 0 ] || echo "hash: $count workloads, $seeds seeds each, $# ways to compile: the same schedules"
exit $status
