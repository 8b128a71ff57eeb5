#!/bin/sh
# usage: tools/check-abi.sh LIBRARY [--renew]
#
# Compares the names that LIBRARY, a libstrand.so, exports, and the types that they use, with the description of the last
# release in tests/abi/libstrand.abi: what programs that are linked rely on has not changed. New names are allowed, and new
# members at the end of structs that begin with their size (tests/abi/allowed). --renew writes a new description; that
# belongs to a release, whose changes CHANGELOG.md lists.
#
# contract 9.15
set -eu
export LC_ALL=C

library=$1 description=tests/abi/libstrand.abi
found=$(mktemp)
trap 'rm -f "$found"' EXIT

abidw --headers-dir include --drop-private-types --exported-interfaces-only --no-show-locs --no-corpus-path \
    --no-comp-dir-path --type-id-style hash "$library" >"$found"
if [ "${2:-}" = --renew ]; then
    cp "$found" "$description"
    echo "abi: $description is renewed"
elif abidiff --no-added-syms --suppressions tests/abi/allowed "$description" "$found"; then
    echo "abi: ok ($(grep -c '<function-decl .*elf-symbol-id' "$description") functions)"
else
    echo "abi: programs that are linked with the last release would break"
    exit 1
fi
