#!/bin/sh
# usage: tools/man.sh FOLDER VERSION
#
# Makes the manual in FOLDER: man3, a page for each public name, from the headers' comments as doxygen reads them; and
# man7/strand.7 from docs/man. Reports public names without a comment. With STRICT set such a name is a failure, and so
# is a warning of doxygen. The pages have the date of today or of SOURCE_DATE_EPOCH.
set -eu

fail()
{
    echo "man: $*" >&2
    exit 1
}

[ $# -eq 2 ] || fail "usage: tools/man.sh FOLDER VERSION"
folder=$1 version=$2
for tool in doxygen python3; do
    command -v $tool >/dev/null ||
        fail "there is no $tool, which the manual is made with; MAN=no leaves the manual out"
done

work=$folder.new
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
{
    cat tools/package/Doxyfile
    echo "OUTPUT_DIRECTORY = \"$work\""
} | doxygen - 2>"$work/warnings" || fail "doxygen has failed: $(cat "$work/warnings")"
cat "$work/warnings" >&2
[ -z "${STRICT:-}" ] || [ ! -s "$work/warnings" ] || fail "doxygen has warned"
date=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)
python3 -B tools/make-man.py ${STRICT:+--strict} "$work/xml" docs/man/strand.7 "$work" "$version" "$date"
rm -rf "$work/xml" "$work/warnings" "$folder"
mv "$work" "$folder"
