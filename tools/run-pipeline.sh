#!/bin/sh
# usage: tools/run-pipeline.sh FOLDER [SECONDS]
#
# A log made by FOLDER's examples/httpd under wrk, in so many seconds (2) and of at most 200000 requests, through FOLDER's
# examples/pipeline, and through awk. Prints what was asked for most, and both times; fails unless both say the same.
set -u
export LC_ALL=C

cd "$(dirname "$0")/.." || exit 1
folder=$(realpath "$1") seconds=${2:-2}
work=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

"$folder/examples/httpd" --root=docs --log="$work/log" >"$work/out" 2>"$work/err" &
server=$!
until grep -qs '^httpd: listening' "$work/out"; do
    kill -0 $server 2>/dev/null || { cat "$work/err" && exit 1; }
    sleep 0.05
done
url=$(sed -n 's/^httpd: listening on //p' "$work/out")

cat >"$work/load.lua" <<'END'
local paths = {"/hello", "/hello", "/hello", "/tour.md", "/model.md", "/errors.md?from=tour", "/glossary.md", "/nothing"}
local asked, answered = 0, 0
function request()
    asked = asked + 1
    return wrk.format("GET", asked % 1000 == 0 and "/slow?ms=1" or paths[asked % #paths + 1])
end
function response()
    answered = answered + 1
    if answered >= 200000 then wrk.thread:stop() end
end
END
wrk -t1 -c32 -d"$seconds" -s "$work/load.lua" "http://$url/" >"$work/wrk" 2>&1 || { cat "$work/wrk" && exit 1; }
kill -TERM $server
wait $server || { cat "$work/out" "$work/err" && exit 1; }
server=

# timed COMMAND...: its time in ms goes to $ms
timed()
{
    begun=$(date +%s%N)
    "$@" || exit 1
    ms=$((($(date +%s%N) - begun) / 1000000))
}

by_awk()
{
    awk -F'[ ]' -f examples/pipeline/report.awk "$work/log" | sort >"$work/by-awk"
}

by_pipeline()
{
    "$folder/examples/pipeline" "$work/log" >"$work/by-pipeline"
}

lines=$(wc -l <"$work/log")
timed by_awk && awk_ms=$ms
timed by_pipeline
printf '%-28s %6s %10s %14s\n' path status requests bytes
sed -n 's/^path //p' "$work/by-pipeline" | sort -k3,3nr | head -n 10 | while read -r path code requests bytes; do
    printf '%-28s %6s %10s %14s\n' "$path" "$code" "$requests" "$bytes"
done
printf '\n%-28s %6s %10s %14s\n' minute '' requests bytes
sed -n 's/^minute //p' "$work/by-pipeline" | while read -r minute requests bytes; do
    printf '%-28s %6s %10s %14s\n' "$minute" '' "$requests" "$bytes"
done
echo
cmp "$work/by-awk" "$work/by-pipeline" || exit 1
echo "pipeline: $lines lines in $ms ms, awk in $awk_ms ms; both say the same"
