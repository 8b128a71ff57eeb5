#!/bin/sh
# usage: tools/run-turtle.sh FOLDER [OPTION...]
#
# FOLDER's examples/turtle with these options: in a window where there is a display, else in a virtual one, which nobody
# sees; then the picture is saved as FOLDER/turtle.bmp.
set -u

folder=$1
shift
[ -z "${DISPLAY-}${WAYLAND_DISPLAY-}" ] || exec "$folder/examples/turtle" "$@"
work=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill $server 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkfifo "$work/display"
Xvfb -displayfd 3 -screen 0 1024x1024x24 -nolisten tcp 3>"$work/display" 2>"$work/err" &
server=$!
read -r display <"$work/display" || { echo "turtle: Xvfb does not start: $(tail -n 1 "$work/err")" >&2 && exit 1; }
echo "turtle: there is no display to show it on: it is drawn in a virtual one, and saved as $folder/turtle.bmp"
DISPLAY=:$display "$folder/examples/turtle" --once --save="$folder/turtle.bmp" "$@"
