#!/bin/sh
# usage: tools/run-models.sh FOLDER MODEL...
#
# Checks Promela models with spin; FOLDER is for what that makes. The head of a model says what is expected:
#
#   /* must hold */              as it is; /* must hold: -DNAME */ with that macro
#   /* must fail: -DNAME */      with that macro: a model that can't fail proves nothing
#   /* cc: ... */                flags for the verifier's compilation; without it -DSAFETY -DCOLLAPSE
#   /* pan: ... */               flags for the verifier; without it -m1000000
set -u

folder=$1
shift
status=0 count=0

# told MODEL WORD
told()
{
    sed -n "s|^/\* $2: \(.*\) \*/\$|\1|p" "$1" | head -n 1
}

# verify MODEL MACROS: the verifier's report goes to $work/report. The macros and flags are words.
# shellcheck disable=SC2086
verify()
{
    model=$(realpath "$1") cc=$(told "$1" cc) pan=$(told "$1" pan)
    work=$folder/$(basename "$1" .pml)$(echo "$2" | tr -d ' ')
    rm -rf "$work"
    mkdir -p "$work" || return 1
    (cd "$work" && spin $2 -a "$model" && gcc -O2 -w ${cc:--DSAFETY -DCOLLAPSE} -o pan pan.c) >"$work/build" 2>&1 || return 1
    (cd "$work" && timeout 600 ./pan ${pan:--m1000000}) >"$work/report" 2>&1
    grep -q 'errors:' "$work/report"
}

# The search has to be complete for "no errors" to mean something.
holds()
{
    grep -q 'errors: 0' "$work/report" && ! grep -Eq 'Search not completed|max search depth too small' "$work/report"
}

# check MODEL hold|fail MACROS
check()
{
    count=$((count + 1))
    if ! verify "$1" "$3"; then
        verdict=BROKEN
    elif holds; then
        verdict=holds
    elif grep -q 'errors: 0' "$work/report"; then
        verdict=INCOMPLETE
    else
        verdict=fails
    fi
    case $2-$verdict in
    hold-holds | fail-fails) expected=ok ;;
    *) expected=FAILED status=1 ;;
    esac
    states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/report" 2>/dev/null | head -n 1)
    printf '%-6s %-28s %-16s must %s: %s (%s states)\n' "$expected" "$(basename "$1")" "$3" "$2" "$verdict" "${states:-?}"
    [ $expected = ok ] || sed 's/^/       /' "$work/build" "$work/report" 2>/dev/null
}

for model; do
    expectations=$(sed -n 's|^/\* must \(hold\|fail\):\{0,1\} *\(.*[^ ]\)\{0,1\} *\*/$|\1 \2|p' "$model")
    if [ -z "$expectations" ]; then
        echo "FAILED $model does not say what must hold"
        status=1
    fi
    while read -r must macros; do
        [ -z "$must" ] || check "$model" "$must" "$macros"
    done <<END
$expectations
END
done
echo "models: $count checks"
[ "$count" -gt 0 ] || status=1
exit $status
