#!/bin/sh
# usage: tools/check-httpd.sh FOLDER
#
# Asks FOLDER's examples/httpd by curl, as a user does: whole files and parts of them, conditions, HEAD, the generated
# pages, several URLs over one connection. tests/httpd has what curl can't say.
set -u
export LC_ALL=C

folder=$(realpath "$1")
work=$(mktemp -d) || exit 1
server=
trap 'kill -9 $server 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
status=0 count=0

complain()
{
    echo "httpd: $*"
    status=1
}

# ask WANTED FORMAT ARGUMENT...: what curl says by -w FORMAT is what is wanted; the body goes to $work/body
ask()
{
    wanted=$1 format=$2
    shift 2
    count=$((count + 1))
    said=$(curl -sS -m 10 -o "$work/body" -w "$format" "$@" 2>&1)
    [ "$said" = "$wanted" ] || complain "curl $*: '$said' instead of '$wanted'"
}

# same FILE: the last body is the file's bytes
same()
{
    cmp -s "$1" "$work/body" || complain "other bytes came than those of $1"
}

mkdir "$work/root" "$work/root/sub"
echo "a file" >"$work/root/file.txt"
echo "an index" >"$work/root/sub/index.html"
head -c 3000000 /dev/urandom >"$work/root/large"
dd if="$work/root/large" of="$work/part" bs=1000 skip=1 count=2000 2>/dev/null

"$folder/examples/httpd" --root="$work/root" --log="$work/log" >"$work/out" 2>&1 &
server=$!
until grep -qs '^httpd: listening' "$work/out"; do
    kill -0 $server 2>/dev/null || { cat "$work/out" && exit 1; }
    sleep 0.05
done
url=http://$(sed -n 's/^httpd: listening on //p' "$work/out")

ask "200 text/plain; charset=utf-8" '%{http_code} %{content_type}' "$url/file.txt"
same "$work/root/file.txt"
ask 200 '%{http_code}' "$url/large"
same "$work/root/large"
ask 206 '%{http_code}' -r 1000-2000999 "$url/large"
same "$work/part"
ask "206 5" '%{http_code} %{size_download}' -r -5 "$url/large"
ask 416 '%{http_code}' -r 3000000- "$url/large"
ask 200 '%{http_code}' --etag-save "$work/tag" "$url/file.txt"
ask 304 '%{http_code}' --etag-compare "$work/tag" "$url/file.txt"
ask 304 '%{http_code}' -z "$work/root/file.txt" "$url/file.txt"
ask 200 '%{http_code}' -z "1 Jan 2000" "$url/file.txt"
ask 200 '%{http_code}' -I "$url/large"
grep -qi '^content-length: 3000000' "$work/body" || complain "HEAD has no length"
ask 404 '%{http_code}' "$url/nothing"
ask 404 '%{http_code}' --path-as-is "$url/../log"
ask 405 '%{http_code}' -d body "$url/file.txt"
ask "200 1" '%{http_code} %{num_redirects}' -L "$url/sub"
same "$work/root/sub/index.html"
ask 200 '%{http_code}' "$url/hello"
[ "$(cat "$work/body")" = "Hello, world!" ] || complain "/hello says: $(cat "$work/body")"
ask 200 '%{http_code}' "$url/slow?ms=100&strands=3"
ask 200 '%{http_code}' "$url/strands"
grep -q "strand 'connection'" "$work/body" || complain "/strands shows no connection"
ask "1 0 0 " '%{num_connects} ' "$url/hello" -o "$work/body" "$url/file.txt" -o "$work/body" "$url/large"
same "$work/root/large"

kill -TERM $server
wait $server || complain "the server ended with $?"
grep -q "^httpd: served=$((count + 3)) cut=0 lost=0 .* live=0" "$work/out" || complain "its last words: $(tail -n 1 "$work/out")"
[ "$(wc -l <"$work/log")" -eq $((count + 3)) ] || complain "$(wc -l <"$work/log") lines in its log"
server=
[ $status -ne 0 ] || echo "httpd: ok ($count answers to curl)"
exit $status
