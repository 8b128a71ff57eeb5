#!/bin/sh
# usage: tools/setup.sh [--check] GROUP...
#
# Installs the Debian packages that the groups need and that are missing; does nothing if all are there. --check installs
# none: it says which are missing, and fails. The groups:
# build, examples, profileprocess, turtle, ledger, test, check, man, pictures, site, tsan, models, fuzz, valgrind, coverage, bench, soak,
# peers, and each satellite of tools/satellites; all is every one of them but pictures, whose results are committed, and peers, the runtimes that make bench-peers
# compares with and the plotting program of its report.
set -eu

satellites()
{
    awk '/^[a-z]/ { print $1 }' tools/satellites
}

packages_of()
{
    case $1 in
    build) echo gcc libc6-dev binutils libboost-context-dev libunwind-dev ;;
    examples) echo libhttp-parser-dev ;;
    profileprocess) echo strace sysstat ;;
    turtle) echo libsdl2-dev libx11-dev xvfb ;;
    ledger) echo libsqlite3-dev sqlite3 ;;
    test) echo g++ libcriterion-dev pkgconf curl gdb libdw1 netcat-openbsd openssl python3 ;;
    check) echo python3 g++ clang-19 clang-format-14 abigail-tools ;;
    man) echo doxygen python3 mandoc ;;
    pictures) echo graphviz ;;
    site) echo doxygen python3 mkdocs python3-pygments ;;
    tsan) echo clang-19 libclang-rt-19-dev ;;
    models) echo spin ;;
    fuzz) echo g++ clang-19 libclang-rt-19-dev libhttp-parser-dev ;;
    valgrind) echo valgrind ;;
    coverage) echo gcovr ;;
    bench) echo g++ libhttp-parser-dev wrk ;;
    soak) echo wrk ;;
    peers) echo python3 gnuplot-nox g++ libgomp1 libtbb-dev libboost-fiber-dev libcaf-dev erlang-base golang-go cargo librust-tokio-dev nginx-light openssl liburing-dev libuv1-dev ;;
    all) packages_of build && for group in $(satellites) examples profileprocess turtle ledger test check man site tsan models fuzz valgrind coverage bench soak; do packages_of "$group"; done ;;
    *)
        satellites | grep -qx "$1" || { echo "setup: there is no group '$1'" >&2 && return 1; }
        awk -v name="$1" '$1 == name { gsub(",", " ", $4); print $4 }' tools/satellites
        ;;
    esac
}

# Those of the packages that are not installed. One that dpkg-query does not know at all has no line in its answer.
missing_of()
{
    installed=$(dpkg-query -W -f '<${db:Status-Status} ${Package}>\n' "$@" 2>/dev/null || true)
    for package; do
        case "$installed" in
        *"<installed $package>"*) ;;
        *) echo "$package" ;;
        esac
    done
}

# As root, or with sudo where it asks for no password.
as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

install()
{
    as_root apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
}

check=''
[ "${1-}" != --check ] || { check=yes && shift; }
wanted=$(for group; do packages_of "$group" || exit 1; done)
if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is not a Debian system; what is needed is called there:" $wanted >&2
    exit 0
fi
missing=$(missing_of $(printf '%s\n' $wanted | sort -u))
[ -n "$missing" ] || exit 0
if [ -n "$check" ]; then
    echo "setup: these packages are missing:" $missing >&2
    echo "setup: make setup installs them, and those of all other targets; make setup GROUPS=\"$*\" these alone" >&2
    exit 1
fi
echo "setup: installing" $missing >&2
if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
    echo "setup: that takes rights you lack. Have it done by:" >&2
    echo "    sudo apt-get update && sudo apt-get install --no-install-recommends" $missing >&2
    exit 1
fi
install $missing >&2 && exit 0
echo "setup: trying again with a fresh list of packages" >&2
as_root apt-get update -qq >&2
install $missing >&2
