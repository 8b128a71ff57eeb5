#!/bin/sh
# usage: tools/check-sizes.sh PROGRAM
#
# What the program of tests/sizes prints is what tests/sizes/expected says. A size that changes on purpose is changed there
# in the same commit.
set -u

actual=$("$1") || exit 1
if ! changes=$(echo "$actual" | diff tests/sizes/expected -); then
    echo "sizes: not as tests/sizes/expected has them (<: expected, >: now):"
    echo "$changes" | grep '^[<>]'
    exit 1
fi
echo "sizes: ok"
