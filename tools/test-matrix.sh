#!/bin/sh
# usage: tools/test-matrix.sh [pairs]
#
# Tests all combinations of modes, schedulers and numbers of threads; with `pairs`, so few that each two of the choices
# still meet once.
set -u

all()
{
    for mode in release debug asan tsan; do
        for sched in stealing global; do
            for threads in 1 2 4 8; do
                echo $mode $sched $threads
            done
        done
    done
}

pairs()
{
    cat <<END
release stealing 1
release global 2
release stealing 4
release global 8
debug global 1
debug stealing 2
debug global 4
debug stealing 8
asan stealing 1
asan global 2
asan stealing 4
asan global 8
tsan global 1
tsan stealing 2
tsan global 4
tsan stealing 8
END
}

status=0
while read -r mode sched threads; do
    echo "==== MODE=$mode SCHED=$sched THREADS=$threads"
    "${MAKE:-make}" --no-print-directory test MODE="$mode" SCHED="$sched" THREADS="$threads" SEEDS="${SEEDS-}" </dev/null && continue
    failed="${failed-} $mode/$sched/$threads"
    status=1
done <<END
$(if [ "${1-}" = pairs ]; then pairs; else all; fi)
END
echo "matrix: ${failed:-all passed}"
exit $status
