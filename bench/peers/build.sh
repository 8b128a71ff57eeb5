# Functions that the `build` of a peer reads in. Each peer has a folder, and its `build FOLDER` makes the programs there:
#
#   FOLDER/NAME         the program, with the arguments of bench/NAME.c
#   FOLDER/NAME.unfair  why its comparison with libstrand is unfair; there is none where it is fair
#   FOLDER/about        version and flags, one line
#
# A `build` that lacks its runtime writes the name of the Debian package to standard error and ends by 77.

# peer_lacks PACKAGE
peer_lacks()
{
    echo "package: $1" >&2
    exit 77
}

# peer_includes HEADER PACKAGE: the compiler finds this header
peer_includes()
{
    echo "#include <$1>" | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1 || peer_lacks "$2"
}

# peer_version PACKAGE: its version without Debian's own part
peer_version()
{
    dpkg-query -W -f '${Version}' "$1" 2>/dev/null | sed 's/^[0-9]*://; s/[-+].*//'
}

# peer_unfair SOURCE: prints the paragraph of its first comment that begins with "Unfair:", as one line
peer_unfair()
{
    awk '
        !/^ *(\/?\*|\/\/|%%)/ { exit }
        { sub(/^ *(\/?\*|\/\/|%%)\/? */, "") }
        /^Unfair: / { found = 1; sub(/^Unfair: /, "") }
        found && /^\/?$/ { exit }
        found { printf "%s%s", space, $0; space = " " }' "$1"
}

# peer_mark SOURCE PROGRAM
peer_mark()
{
    peer_unfair "$1" >"$2.unfair"
    [ -s "$2.unfair" ] || rm "$2.unfair"
}

# peer_older FILE SOURCE...: the file is missing, or older than one of these
peer_older()
{
    older=$1
    shift
    [ -e "$older" ] || return 0
    for newer; do
        [ ! "$newer" -nt "$older" ] || return 0
    done
    return 1
}

# peer_compile FOLDER ABOUT FLAG...: each .c and .cc file beside the `build` to a program
peer_compile()
{
    mkdir -p "$1"
    out=$(cd "$1" && pwd) about=$2
    shift 2
    cd "$here"
    failed=
    flags='-O3 -DNDEBUG -g -Wall -Wextra -Wshadow -Wpedantic'
    for source in *.c *.cc; do
        [ -e "$source" ] || continue
        program=$out/${source%.*}
        case $source in
        *.c) compiler="gcc -std=gnu11 -D_GNU_SOURCE" ;;
        *) compiler="g++ -std=c++17" ;;
        esac
        peer_mark "$source" "$program"
        if peer_older "$program" "$source" build ../build.sh ../../*.h $(ls ./*.h* 2>/dev/null); then
            $compiler $flags "$source" -o "$program" "$@" || { rm -f "$program" && failed="$failed $source"; }
        fi
    done
    echo "$about; $(gcc -dumpfullversion | sed 's/^/gcc /') $flags $*" >"$out/about"
    [ -z "$failed" ] || { echo "these do not compile:$failed" >&2 && exit 1; }
}
