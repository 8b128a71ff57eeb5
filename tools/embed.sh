#!/bin/sh
# usage: tools/embed.sh OUT.o IN.o...
#
# Merges objects, and those members of the packaged Boost.Context that they need, into one relocatable object. Of its
# symbols only those stay global that IN.o... define themselves, so what is embedded is not seen from outside and can't
# clash with another copy in the program. With KEEP='strand*' only those of them stay global that match this pattern.
#
# libunwind is not embedded: its packaged static libraries are not position independent, and the shared one is loaded by
# name (src/arch/trace.c). CC, LD, OBJCOPY and NM name the tools.
set -eu
export LC_ALL=C

fail()
{
    echo "embed: $*" >&2
    exit 1
}

[ $# -ge 2 ] || fail "usage: tools/embed.sh OUT.o IN.o..."
out=$1
shift
archive=$("${CC:-cc}" -print-file-name=libboost_context.a)
[ -f "$archive" ] || fail "there is no libboost_context.a (Debian: libboost-context-dev)"
own=$out.own
merged=$out.merged
trap 'rm -f "$own" "$merged"' EXIT

"${NM:-nm}" -g --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u >"$own"
"${LD:-ld}" -r -o "$merged" "$@" "$archive"
if [ -n "${KEEP:-}" ]; then
    "${OBJCOPY:-objcopy}" --wildcard --keep-global-symbol="$KEEP" "$merged" "$out"
else
    "${OBJCOPY:-objcopy}" --keep-global-symbols="$own" "$merged" "$out"
fi
