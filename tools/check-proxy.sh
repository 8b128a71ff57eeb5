#!/bin/sh
# usage: tools/check-proxy.sh FOLDER [CASE...]
#
# Checks FOLDER's examples/proxy with raw clients and backends that do what they must not (tests/proxy), also with curl:
# what goes through, what is refused in either direction, failures of each side, limits, draining, WebSockets, TLS.
# Ends within ten minutes. The time limits of the cases are those of the proxy; nothing is expected to happen in time.
set -u
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

folder=$(realpath "$1")
shift
export TSAN_OPTIONS="suppressions=$(realpath "$(dirname "$0")")/tsan.supp:${TSAN_OPTIONS-}"
if ! [ -x "$folder/examples/proxy" ]; then
    echo "proxy: skipped: it is not built, since libstrand-names or libstrand-tls is missing"
    exit 0
fi
command -v python3 >/dev/null || {
    echo "proxy: there is no python3"
    exit 1
}
timeout -s KILL 600 python3 "$(dirname "$0")/../tests/proxy/run.py" "$folder/examples/proxy" "$folder/programs/http_rows" "$@" || {
    echo "proxy: the checks have failed"
    exit 1
}
