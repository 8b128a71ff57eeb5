#!/bin/sh
# usage: tools/run-proxy.sh FOLDER
#
# FOLDER's examples/proxy in front of two of its examples/httpd, of which one is stopped in the middle: curl sees no
# failure. Prints what the proxy logs.
set -u
folder=$1
work=$(mktemp -d) || exit 1
first='' second='' proxy='' status=0
trap 'for pid in $first $second $proxy; do kill "$pid" 2>/dev/null; done; rm -rf "$work"' EXIT
[ -x "$folder/examples/proxy" ] || {
    echo "proxy: it is not built, since libstrand-names or libstrand-tls is missing (make setup)"
    exit 1
}

# address_in FILE: what a server says it listens on
address_in()
{
    until grep -qs 'listening on' "$1"; do sleep 0.05; done
    sed -n 's/.*listening on //p' "$1"
}

"$folder/examples/httpd" --root=docs >"$work/first" &
first=$!
"$folder/examples/httpd" --root=docs >"$work/second" &
second=$!
"$folder/examples/proxy" --listen=127.0.0.1:0 --backend="$(address_in "$work/first")" \
    --backend="$(address_in "$work/second")" --check=/hello --log=- >"$work/log" &
proxy=$!
url=http://$(address_in "$work/log")
for i in 1 2 3 4 5 6; do
    [ $i != 4 ] || { kill $second && wait $second && second=; }
    curl -sSf -o "$work/page" "$url/tour.md" && cmp "$work/page" docs/tour.md || status=1
done >/dev/null
kill $proxy
wait $proxy || status=1
proxy=
cat "$work/log"
exit $status
