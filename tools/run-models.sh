#!/bin/sh
# usage: tools/run-models.sh FOLDER MODEL...
#
# Checks Promela models with spin, JOBS at a time; FOLDER is for what that makes. The head of a model says what is
# expected:
#
#   /* must hold */              as it is; /* must hold: -DNAME */ with that macro
#   /* must hold in states: -DNAME */
#                                cycles are not searched for: that would take too long
#   /* must fail: -DNAME */      with that macro something happens that must not: an assertion fails
#   /* must stall: -DNAME */     with that macro somebody never goes on: there is a state without end that is not meant
#                                to be one, or the model can run for ever without passing a progress label
#   /* fair */                   everybody who can go on does at some time (weak fairness); without it, cycles in which
#                                somebody who can go on never does must not be there either
#   /* large */                  its verifiers are worth the compiler's time
#   /* depth: 100000 */          the longest path of the search; without it 1000000
#   /* cc: -DVECTORSZ=2048 */    further flags for the verifier's compilation
#
# The environment: JOBS; SHORT=1, a third of the checks only, others after each commit; the others have to be taken by spin.
#
# A model holds if searches of all states find none of these. Each has to have lines removed for safety and for progress:
# a model that can't fail proves nothing.
set -u
export LC_ALL=C

# word_of MODEL WORD: what stands behind it in the head
word_of()
{
    sed -n "s|^/\* $2: \(.*\) \*/\$|\1|p" "$1" | head -n 1
}

# build NAME CC_FLAGS: a verifier
# shellcheck disable=SC2086
build()
{
    (cd "$work" && gcc -w -DNOCLAIM -DCOLLAPSE $2 $cc -o "$1" pan.c) >"$work/report" 2>&1
}

# search NAME PAN_FLAGS: whether it finds an error, "holds" or "fails"; the verifier's report goes to $work/report
# shellcheck disable=SC2086
search()
{
    (cd "$work" && timeout 600 "./$1" "-m${depth:-1000000}" $2) >"$work/report" 2>&1
    if ! grep -q 'errors:' "$work/report"; then
        echo BROKEN
    elif ! grep -q 'errors: 0' "$work/report"; then
        # A depth that does not suffice counts as an error there.
        if grep -q 'assertion violated\|invalid end state\|non-progress cycle (' "$work/report"; then
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

# verify MODEL MUST MACROS: the verdict
# shellcheck disable=SC2086
verify()
{
    model=$(realpath "$1") cc=$(word_of "$1" cc) depth=$(word_of "$1" depth) round=-DNOFAIR cycles=-l
    grep -q '^/\* fair \*/$' "$1" && round=-DNFAIR=4 cycles='-l -f'
    rm -rf "$work"
    mkdir -p "$work" || exit 1
    if ! (cd "$work" && spin $3 -a "$model") >"$work/report" 2>&1; then
        echo BROKEN
        return
    fi
    # A search for an error ends soon.
    optimised=-O0 first=''
    case $2 in
    hold*) grep -q '^/\* large \*/$' "$1" && optimised=-O2 ;;
    fail) first=-E ;;
    stall) first=-A ;;
    esac
    verdict=BROKEN
    build states "$optimised -DSAFETY" && verdict=$(search states "$first")
    case $2-$verdict in
    hold-holds | stall-holds)
        verdict=BROKEN
        build cycles "$optimised -DNP $round" && verdict=$(search cycles "$cycles -A -E")
        ;;
    esac
    echo "$verdict"
}

# check_one "MODEL|hold|MACROS": a line
check_one()
{
    IFS='|' read -r model must macros <<END
$1
END
    work=$FOLDER/$(basename "$model" .pml)$(echo "$macros" | tr -d ' ')
    verdict=$(verify "$model" "$must" "$macros")
    case $must-$verdict in
    hold*-holds | fail-fails | stall-fails) expected=ok ;;
    *) expected=FAILED ;;
    esac
    states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/report" 2>/dev/null | head -n 1)
    [ $expected = ok ] || echo "$1" >>"$FOLDER/failed"
    {
        flock 9
        printf '%-6s %-16s %-28s must %s: %s (%s states)\n' "$expected" "$(basename "$model")" "$macros" "$must" \
            "$verdict" "${states:-?}"
        [ $expected = ok ] || sed 's/^/       /' "$work/report" 2>/dev/null
    } 9>"$FOLDER/lock"
}

# take_one "MODEL|hold|MACROS": a line, if spin does not take it
# shellcheck disable=SC2086
take_one()
{
    IFS='|' read -r model must macros <<END
$1
END
    path=$(realpath "$model") work=$FOLDER/$(basename "$model" .pml)$(echo "$macros" | tr -d ' ')
    rm -rf "$work"
    mkdir -p "$work" && (cd "$work" && spin $macros -a "$path") >"$work/report" 2>&1 && return
    echo "$1" >>"$FOLDER/failed"
    echo "FAILED $(basename "$model") $macros, which must $must, is not taken by spin: $(tail -n 1 "$work/report")"
}

# checks MODEL...: "MODEL|hold|MACROS" of all, the long ones first
checks()
{
    for must in 'hold in states' hold stall fail; do
        for model; do
            sed -n "s#^/\* must $must\(: \(.*\)\)\{0,1\} \*/\$#$model|$must|\2#p" "$model"
        done
    done
}

case ${1-} in
--one)
    check_one "$2"
    exit 0
    ;;
--take)
    take_one "$2"
    exit 0
    ;;
esac

FOLDER=$1 status=0
export FOLDER
shift
mkdir -p "$FOLDER" || exit 1
rm -f "$FOLDER/failed"
turn=0 step=1
[ -z "${SHORT-}" ] || turn=$(git rev-list --count HEAD 2>/dev/null || echo 0) step=3
checks "$@" | awk -v step=$step -v turn="$turn" 'NR % step == turn % step' |
    xargs -r -d '\n' -P "${JOBS:-1}" -n 1 "$0" --one
checks "$@" | awk -v step=$step -v turn="$turn" 'NR % step != turn % step' |
    xargs -r -d '\n' -P "${JOBS:-1}" -n 1 "$0" --take
for model; do
    for must in hold fail stall; do
        checks "$model" | grep -q "|$must|" || { echo "FAILED $model does not say what must $must" && status=1; }
    done
done
count=$(checks "$@" | wc -l) failed=0
[ ! -e "$FOLDER/failed" ] || failed=$(wc -l <"$FOLDER/failed") status=1
echo "models: $count checks, $failed failed"
[ "$count" -gt 0 ] || status=1
exit $status
