#!/bin/sh
# usage: tools/run-models.sh FOLDER MODEL...
#
# Checks Promela models with spin; FOLDER is for what that makes. The head of a model says what is expected:
#
#   /* must hold */              as it is; /* must hold: -DNAME */ with that macro
#   /* must fail: -DNAME */      with that macro: a model that can't fail proves nothing
#   /* depth: 100000 */          the longest path of the search; without it 1000000
#   /* cc: -DVECTORSZ=2048 */    further flags for the verifier's compilation
#
# A model holds if a search of all states finds no failed assertion and no invalid end state, and if, under weak
# fairness, each of its named ltl formulas holds. It fails if one of these searches finds an error.
set -u
export LC_ALL=C

folder=$1
shift
status=0 count=0

# told MODEL WORD
told()
{
    sed -n "s|^/\* $2: \(.*\) \*/\$|\1|p" "$1" | head -n 1
}

# search MODEL MACROS CC_FLAGS PAN_FLAGS: the verdict; the verifier's report goes to $work/report. The last three are words.
# shellcheck disable=SC2086
search()
{
    model=$(realpath "$1")
    rm -rf "$work"
    mkdir -p "$work" || exit 1
    if ! (cd "$work" && spin $2 -a "$model" && gcc -O2 -w $3 $cc -o pan pan.c) >"$work/report" 2>&1; then
        echo BROKEN
        return
    fi
    (cd "$work" && timeout 600 ./pan "-m${depth:-1000000}" $4) >"$work/report" 2>&1
    if ! grep -q 'errors:' "$work/report"; then
        echo BROKEN
    elif ! grep -q 'errors: 0' "$work/report"; then
        # A depth that does not suffice counts as an error there.
        if grep -q 'assertion violated\|invalid end state\|acceptance cycle\|non-progress' "$work/report"; then
            echo fails
        else
            echo INCOMPLETE
        fi
    elif grep -q 'Search not completed\|max search depth too small' "$work/report"; then
        echo INCOMPLETE
    else
        echo holds
    fi
}

# verify MODEL MACROS: the first verdict of its searches that is not "holds"
verify()
{
    cc=$(told "$1" cc) depth=$(told "$1" depth)
    verdict=$(search "$1" "$2" "-DSAFETY -DNOCLAIM -DCOLLAPSE" "")
    for formula in $(sed -n 's/^ltl \([A-Za-z0-9_]*\).*/\1/p' "$1"); do
        [ "$verdict" = holds ] || return
        verdict=$(search "$1" "$2" "-DCOLLAPSE -DNFAIR=4" "-a -f -N $formula")
    done
}

# check MODEL hold|fail MACROS
check()
{
    count=$((count + 1)) work=$folder/$(basename "$1" .pml)$(echo "$3" | tr -d ' ')
    verify "$1" "$3"
    case $2-$verdict in
    hold-holds | fail-fails) expected=ok ;;
    *) expected=FAILED status=1 ;;
    esac
    states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/report" 2>/dev/null | head -n 1)
    printf '%-6s %-28s %-16s must %s: %s (%s states)\n' "$expected" "$(basename "$1")" "$3" "$2" "$verdict" "${states:-?}"
    [ $expected = ok ] || sed 's/^/       /' "$work/report" 2>/dev/null
}

for model; do
    expectations=$(sed -n 's#^/\* must \(hold\|fail\):\{0,1\} *\(.*[^ ]\)\{0,1\} *\*/$#\1 \2#p' "$model")
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
