#!/bin/sh
# usage: tools/reject.sh KIND COMPILER FILE...
#
# What the library has to refuse at compile time: each file must not compile with COMPILER, which is of KIND gcc or clang,
# and must be refused for the reason that its head states:
#
#   /* expect: regex */          of the message (extended, as grep -E); required
#   /* flags: ... */             of the compiler; without it -fexceptions -Werror
#   /* compiler: clang */        or gcc; without it both
set -u

kind=$1 compiler=$2
shift 2
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT

# told FILE WORD: what the comment of the file says, or nothing
told()
{
    sed -n "s|^/\* $2: \(.*\) \*/\$|\1|p" "$1" | head -n 1
}

refused=0 status=0
for file; do
    only=$(told "$file" compiler) expected=$(told "$file" expect) flags=$(told "$file" flags)
    case ${only:-both} in
    both | "$kind") ;;
    *) continue ;;
    esac
    case $file in
    *.cc) standard=gnu++11 ;;
    *) standard=gnu11 ;;
    esac
    # The flags are words.
    # shellcheck disable=SC2086
    if "$compiler" -std=$standard -Iinclude ${flags:--fexceptions -Werror} -fsyntax-only "$file" >"$output" 2>&1; then
        echo "reject: $file compiles with $compiler"
        status=1
    elif [ -z "$expected" ] || ! grep -Eq -- "$expected" "$output"; then
        echo "reject: $file is refused, but not for '$expected':"
        cat "$output"
        status=1
    else
        refused=$((refused + 1))
    fi
done
echo "reject: $refused files refused by $compiler as expected"
exit $status
