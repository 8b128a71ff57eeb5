#!/bin/sh
# usage: tools/check-docs.sh
#
# Relative links of the documents lead to existing files, and those with an anchor into a Markdown file to an existing
# heading. The files that docs/coverage.md lists exist. Each picture of docs/pictures has the labels of its source.
# Lines that compile a program have the flags that the installed library requires. The table of the exceptions of
# operations has every function that may wait.
set -u
export LC_ALL=C.UTF-8

status=0

# anchors FILE: prints the anchors of its headings, as the usual renderers make them
anchors()
{
    sed -n 's/^#\{1,6\} *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^[:alnum:]_ -]//g; s/ /-/g'
}

# links FILE: "LINE TARGET", code left out
links()
{
    awk '
        /^(```|    )/ { if (/^```/) code = !code; next }
        code { next }
        {
            gsub(/`[^`]*`/, "")
            while (match($0, /\]\([^)]*\)/)) {
                print FNR, substr($0, RSTART + 2, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' "$1"
}

documents=$(mktemp) || exit 1
trap 'rm -f "$documents"' EXIT
find . -name '*.md' -not -path './build/*' -not -path './.git/*' >"$documents"
while read -r file; do
    while read -r line target; do
        case $target in
        '' | *:*) continue ;;
        esac
        path=${target%%#*}
        full=$file
        [ -z "$path" ] || full=$(dirname "$file")/$path
        if [ ! -e "$full" ]; then
            echo "docs: $file:$line: there is no $target"
            status=1
        elif [ "$path" != "$target" ] && ! anchors "$full" | grep -qxF "${target#*#}"; then
            echo "docs: $file:$line: there is no heading for $target"
            status=1
        fi
    done <<END
$(links "$file")
END
done <"$documents"
# labels: prints the labels of a .dot file on standard input, a line each
labels()
{
    grep -o 'label="[^"]*"' | sed 's/^label="//; s/"$//; s/\\n/\n/g'
}

for picture in docs/pictures/*.dot; do
    labels <"$picture" | while read -r label; do
        grep -qF ">$label<" "${picture%.dot}.svg" || { echo "docs: $picture is newer than its SVG: make pictures" && exit 1; }
    done || status=1
done
# With these flags clean-ups run, and no frame steps over a guard page.
git ls-files '*.md' | xargs grep -nE '^ *(gcc|clang|cc|g\+\+|clang\+\+) .*-Iinclude' |
    grep -vE -e '-fexceptions -fstack-clash-protection' &&
    echo "docs: these lines do not compile with the flags of tools/package/strand.pc.in" && status=1
# A reader looks up there what a function throws that may wait.
table=$(sed -n '/^## What each operation throws/,/^## Out of memory/p' docs/errors.md)
for name in $(sed -n 's/.*STRAND_BLOCKS.* \**\(strand_[a-z_]*[a-z]\)(.*/\1/p' include/strand.h include/strand/*.h); do
    case $table in
    *"\`$name\`"*) ;;
    *) echo "docs: the table of docs/errors.md has no row for $name, which may wait" && status=1 ;;
    esac
done
tools/coverage-report.py docs/coverage.md || status=1
[ $status -ne 0 ] || echo "docs: ok"
exit $status
