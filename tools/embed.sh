#!/bin/sh
# usage: tools/embed.sh OUT.o IN.o...
#
# Merges objects, and those members of the packaged Boost.Context that they need, into one relocatable object. With
# KEEP='strand*' only the symbols of that pattern stay global: nothing else is seen from outside or can clash with the
# program's own, another copy of what is embedded included. Without it all stay, for tests of the inside.
#
# libunwind is not embedded: its packaged static libraries are not position independent, and the shared one is loaded by
# name (src/arch/trace.c). CC, LD, OBJCOPY and READELF name the tools.
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

if [ -z "${KEEP:-}" ]; then
    "${LD:-ld}" -r -o "$out" "$@" "$archive"
    exit
fi
merged=$out.merged
trap 'rm -f "$merged"' EXIT
"${LD:-ld}" -r -o "$merged" "$@" "$archive"
"$(dirname "$0")/own-text.sh" "$merged" # the contexts too
"${OBJCOPY:-objcopy}" --wildcard --keep-global-symbol="$KEEP" "$merged" "$out"
