#!/bin/sh
# usage: tools/reject.sh KIND COMPILER FILE...
#
# What the library has to refuse at compile time: each file must not compile with COMPILER, which is of KIND gcc or clang,
# and must be refused for the reason that its head states:
#
#   /* expect: regex */          of the message (extended, as grep -E); required
#   /* flags: ... */             of the compiler; without it -fexceptions -Werror
#   /* compiler: clang */        or gcc; without it both
#   /* case: text */             the file must not compile with CASE defined as this text; for each such line
set -u

kind=$1 compiler=$2
shift 2
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

# word_of FILE WORD: what the comments of the file say, or nothing
word_of()
{
    sed -n "s|^/\* $2: \(.*\) \*/\$|\1|p" "$1"
}

# refuse FILE CASE: one compilation, with the file's $standard, $flags and $expected
refuse()
{
    # The flags are words.
    # shellcheck disable=SC2086
    if "$compiler" -std=$standard -Iinclude ${flags:--fexceptions -Werror} ${2:+"-DCASE=$2"} -fsyntax-only "$1" \
        >"$output" 2>&1; then
        echo "reject: $1 compiles with $compiler${2:+, case $2}"
        status=1
    elif [ -z "$expected" ] || ! grep -Eq -- "$expected" "$output"; then
        echo "reject: $1${2:+, case $2,} is refused, but not for '$expected':"
        cat "$output"
        status=1
    else
        refused=$((refused + 1))
    fi
}

refused=0 status=0
for file; do
    only=$(word_of "$file" compiler) expected=$(word_of "$file" expect) flags=$(word_of "$file" flags)
    case ${only:-both} in
    both | "$kind") ;;
    *) continue ;;
    esac
    case $file in
    *.cc) standard=gnu++11 ;;
    *) standard=gnu11 ;;
    esac
    cases=$(word_of "$file" case)
    while IFS= read -r one; do
        refuse "$file" "$one"
    done <<EOF
$cases
EOF
done
echo "reject: $refused mistakes refused by $compiler as expected"
exit $status
