#!/bin/sh
# usage: tools/check-mutants.sh
#
# Each patch of tests/mutants and of bench/variants applies, and what it changes compiles: make mutants runs only some
# of them for a commit. JOBS of them at a time.
set -u
export LC_ALL=C

if [ "${1-}" = --some ]; then # of JOBS parts the one of this number, in a copy of its own
    copy=$(mktemp -d) root=$PWD || exit 1
    trap 'rm -rf "$copy"' EXIT
    export GIT_CEILING_DIRECTORIES="${copy%/*}"
    cp -a include src "$copy"
    number=0 status=0
    for mutant in tests/mutants/*.patch bench/variants/*.patch; do
        number=$((number + 1))
        [ $((number % JOBS)) -eq "$2" ] || continue
        if ! (cd "$copy" && git apply "$root/$mutant") 2>/dev/null; then
            echo "mutants: $mutant does not apply"
            exit 1
        fi
        for file in $(sed -n 's|^+++ b/||p' "$mutant"); do
            unit=$file
            case $file in
            *.h) unit=$(grep -l "[\"/]${file##*/}\"" "$copy"/src/*/*.c | head -n 1) unit=${unit#"$copy/"} ;;
            *.c) ;;
            *) continue ;;
            esac
            (cd "$copy" && gcc -std=gnu11 -fexceptions -D_GNU_SOURCE= -w -Werror=implicit-function-declaration -Iinclude \
                -include "$root/tools/public.h" -fsyntax-only "${unit:-$file}") 2>"$copy/errors" ||
                { echo "mutants: $mutant does not compile: $(grep -m 1 error "$copy/errors")" && status=1; }
        done
        (cd "$copy" && git apply -R "$root/$mutant") || exit 1
    done
    exit $status
fi
export JOBS="${JOBS:-2}"
seq 0 $((JOBS - 1)) | xargs -P "$JOBS" -n 1 "$0" --some || exit 1
echo "mutants: ok ($(find tests/mutants bench/variants -name '*.patch' | wc -l) apply and compile)"
