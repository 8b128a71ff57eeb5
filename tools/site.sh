#!/bin/sh
# usage: tools/site.sh FOLDER
#
# Makes the site in FOLDER/html by mkdocs: README.md, docs/, and a page for each public header. A link that leads nowhere
# is a failure, and so is a script, a style or a picture that is missing or would come from the Internet.
set -eu

[ $# -eq 1 ] || { echo "site: usage: tools/site.sh FOLDER" >&2 && exit 1; }
folder=$1
rm -rf "$folder"
mkdir -p "$folder"
{
    cat tools/package/Doxyfile
    echo "OUTPUT_DIRECTORY = \"$folder\""
} | doxygen -
python3 -B tools/make-site.py "$folder/xml" "$folder/source"
cp docs/site.yml "$folder/mkdocs.yml"
cp -R tools/package/site "$folder/theme"
(cd "$folder" && mkdocs build --strict --quiet)
rm -rf "$folder/xml" "$folder/theme"
python3 -B tools/check-site.py "$folder/html"
echo "site: $folder/html/index.html"
