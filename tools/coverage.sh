#!/bin/sh
# usage: tools/coverage.sh OUT [--all]
#
# Says how much of src/ was run by the processes that counted for the objects in OUT/obj: a line for each file and folder,
# and OUT/html with every line. docs/testing.md says what is counted, and docs/coverage.md what is left; --all wants all of that to
# be there. GCOV names the compiler's gcov.
set -eu
export LC_ALL=C.UTF-8

out=$1
shift

# A call has a second way out, by a throw, which most can't take. The other way of an assertion can't be taken either.
impossible='.*\b(ASSERT|ASSERT_SLOW|UNREACHABLE)\('

rm -rf "$out/html"
mkdir -p "$out/html"
# What is left in the middle, by a switch for good or by the end of the process, has been entered more often than left: gcov
# then tells of some branches that they were taken less often than never. Such lines are skipped, and named.
gcovr --gcov-executable "${GCOV:-gcov}" --gcov-ignore-parse-errors --root . --filter src/ --exclude-throw-branches \
    --exclude-branches-by-pattern "$impossible" --exclude-lines-by-pattern '.*\bUNREACHABLE\(' \
    --json "$out/coverage.json" --html-details "$out/html/index.html" --html-title libstrand "$out/obj"
tools/coverage-report.py "$@" "$out/coverage.json" docs/coverage.md
echo "coverage: every line is in $out/html/index.html"
