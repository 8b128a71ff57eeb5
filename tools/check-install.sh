#!/bin/sh
# usage: tools/check-install.sh FOLDER
#
# Installs the build of FOLDER into empty roots, by make install and DESTDIR, and uses it: it builds the programs of
# tests/outside by pkg-config and by CMake (if installed), shared, static and wholly static, and runs them, one of them
# with strand/check.h included first; it builds the example of strand(7) as that page says; every header compiles; every
# export has a page, and groff and mandoc (if installed) accept the pages. Uninstalling leaves a root as it was before.
# MODE, CC and CXX say how FOLDER was built.
set -u
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL GNUMAKEFLAGS PREFIX LIBDIR INCLUDEDIR MANDIR DOCDIR GDBDIR DESTDIR MAN
unset PKG_CONFIG_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH STRAND_SEED

folder=$1
CC=${CC:-gcc} CXX=${CXX:-g++}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

complain()
{
    echo "install: $*"
    status=1
}

# try WHAT COMMAND...: complains of a command that fails, with what it has said
try()
{
    what=$1
    shift
    "$@" >"$work/said" 2>&1 && return
    complain "$what: $(cat "$work/said")"
    return 1
}

# made TARGET VARIABLE...
made()
{
    make --no-print-directory "MODE=${MODE:-release}" "OUT=$folder" "CC=$CC" "CXX=$CXX" "$@"
}

# everything in a folder, with kinds, rights, sizes and targets of links
snapshot()
{
    (cd "$1" && find . -printf '%p %y %m %l ' \( -type f -printf '%s\n' -o -printf '\n' \) | sort)
}

# ---- two roots: one with a space in its name and with things of others in it, one of a package -----------------------

root="$work/a root" packaged=$work/packaged
mkdir -p "$root/usr/local/include/strand" "$root/usr/local/lib/pkgconfig" "$root/usr/local/share/man/man3"
echo of somebody else >"$root/usr/local/include/strand/other.h"
snapshot "$root" >"$work/before"
built=$(cksum "$folder/libstrand.a" "$folder/libstrand.so" "$folder/flags")
touch "$work/start"
sleep 0.01

try "make install" made install "DESTDIR=$root" || exit 1
snapshot "$root" >"$work/first"
try "make -j2 install, once more" made -j2 install "DESTDIR=$root" CFLAGS=-DANOTHER
snapshot "$root" | cmp -s - "$work/first" || complain "installing twice is not the same as once"
try "make install PREFIX=/usr" made install "DESTDIR=$packaged" PREFIX=/usr LIBDIR=/usr/lib/multi \
    INCLUDEDIR=/usr/include/multi || exit 1
[ "$built" = "$(cksum "$folder/libstrand.a" "$folder/libstrand.so" "$folder/flags")" ] ||
    complain "make install has built the library again"
written=$(find . "$folder" -path ./.git -prune -o -path ./build -prune -o -newer "$work/start" -print)
[ -z "$written" ] || complain "make install has written to" $written
# install is not another way to build
if made install "OUT=$work/nothing" "DESTDIR=$work/never" >"$work/said" 2>&1; then
    complain "make install has not failed without a library"
elif ! grep -q "make it first" "$work/said" || [ -e "$work/nothing" ]; then
    complain "make install does not say that nothing was built, or has built: $(cat "$work/said")"
fi
# a library that is older than its sources
mkdir "$work/old"
touch -d 2000-01-01 "$work/old/libstrand.a" "$work/old/libstrand.so"
if made install "OUT=$work/old" "DESTDIR=$work/never" >"$work/said" 2>&1; then
    complain "make install has not failed for a library that is older than its sources"
elif ! grep -q "make it first: since it was made, [^ ]* and [0-9]* more changed" "$work/said" ||
    [ "$(wc -c <"$work/said")" -gt 500 ]; then
    complain "make install does not say in short that the library is old: $(head -c 500 "$work/said")"
fi

# a place that cannot be written to
echo >"$work/file"
if made install "DESTDIR=$work/file" >"$work/said" 2>&1; then
    complain "make install into $work/file has not failed"
elif ! grep -q "^install: .*$work/file" "$work/said"; then
    complain "make install into $work/file does not say why it fails: $(cat "$work/said")"
fi

# ---- headers ---------------------------------------------------------------------------------------------------------

# flags_of ROOT LIBDIR OPTION...: prints the package's flags, as words for eval. A root with a space in its name is
# taken for a place that the package was moved to, because pkgconf puts such a sysroot twice in front.
flags_of()
{
    installed=$1 libdir=$2
    shift 2
    case $installed in
    *\ *) PKG_CONFIG_LIBDIR=$installed$libdir/pkgconfig pkg-config --define-prefix "$@" strand ;;
    *) PKG_CONFIG_SYSROOT_DIR=$installed PKG_CONFIG_LIBDIR=$installed$libdir/pkgconfig pkg-config "$@" strand ;;
    esac
}

cflags=$(flags_of "$root" /usr/local/lib --cflags) || complain "pkg-config does not find strand"
for flag in -fexceptions -fstack-clash-protection; do
    case " $cflags " in *" $flag "*) ;; *) complain "pkg-config --cflags has no $flag" ;; esac
done
for header in $(cd include && find . -name '*.h'); do
    echo "#include <${header#./}>" >"$work/header.c"
    eval "try '${header#./}' $CC -std=c11 -Wall -Wextra -Wpedantic -Werror $cflags -fsyntax-only \"\$work/header.c\""
done
more=$(cd "$root/usr/local/include" && find . -type f | sort)
[ "$more" = "$( (cd include && find . -type f && echo ./strand/other.h) | sort)" ] ||
    complain "other headers are installed than those of include/:" "$more"

# ---- programs by pkg-config ------------------------------------------------------------------------------------------

expected=$work/expected
printf '%s\n' 'version as in the headers' 'joined 42' 'offloaded 8' 'caught: on purpose, cleaned 1' \
    'cancelled: enough, cleaned 11' 'spawned 3' >"$expected.c"
(cat "$expected.c" && echo 'caught: of C++, cleaned 111') >"$expected.cc"

# runs PROGRAM LANGUAGE KIND LIBDIR: its output is what it should be, and it needs the shared library or does not
runs()
{
    LD_LIBRARY_PATH=$4 timeout 600 "$1" >"$work/out" 2>"$work/err" ||
        complain "$1 has failed with exit status $?: $(cat "$work/err")"
    diff "$expected.$2" "$work/out" >"$work/said" || complain "$1 prints something else: $(cat "$work/said")"
    needed=$(readelf -dW "$1" | grep -c 'NEEDED.*libstrand\.so')
    case $3$needed in
    shared1 | static0 | whole0) ;;
    *) complain "$1 is not linked as $3" ;;
    esac
}

# outside ROOT LIBDIR: both programs: with the shared library, with the static one, and wholly static
outside()
{
    cflags=$(flags_of "$1" "$2" --cflags)
    shared=$(flags_of "$1" "$2" --libs)
    static="-Wl,-Bstatic $shared -Wl,-Bdynamic"
    whole="-static $(flags_of "$1" "$2" --static --libs)"
    for language in c cc; do
        case $language in
        c) compiler="$CC -std=gnu11" ;;
        cc) compiler="$CXX -std=c++17" ;;
        esac
        for kind in shared static whole; do
            program=$work/$language-$kind
            case $kind in
            shared) libs=$shared ;;
            static) libs=$static ;;
            whole) libs=$whole ;;
            esac
            eval "try 'outside.$language, $kind' $compiler -O2 -Wall -Wextra -Werror $cflags \
                tests/outside/outside.$language -o \"\$program\" $libs" && runs "$program" "$language" "$kind" "$1$2"
        done
    done
}
# checked STANDARD: as strand/check.h says, for files that ask for the system's extensions by themselves
checked()
{
    program=$work/checked-$1
    eval "try 'checked.c, $1' $CC -std=$1 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE= -include strand/check.h $cflags \
        tests/outside/checked.c -o \"\$program\" $static" || return
    timeout 600 "$program" >"$work/out" 2>"$work/err" || complain "$program has failed with exit status $?"
    [ "$(cat "$work/out")" = "strand_sleep: locked in checked.c" ] || complain "$program prints: $(cat "$work/out")"
}

# each satellite that was built: a program outside by its own package
satellites()
{
    for name in $(awk '/^[a-z]/ { print $1 }' tools/satellites); do
        [ -e "$folder/libstrand-$name.so" ] || continue
        program=$work/$name
        line=$(PKG_CONFIG_SYSROOT_DIR=$packaged PKG_CONFIG_LIBDIR=$packaged/usr/lib/multi/pkgconfig:$(pkg-config --variable pc_path pkg-config) \
            pkg-config --cflags --libs "strand-$name") || { complain "pkg-config does not find strand-$name" && continue; }
        try "outside-$name.c" sh -c "$CC -std=gnu11 -O2 -Wall -Wextra -Werror tests/outside/$name.c -o '$program' $line" || continue
        said=$(LD_LIBRARY_PATH=$packaged/usr/lib/multi timeout 600 "$program" 2>&1)
        [ "$said" = ok ] || complain "tests/outside/$name.c prints $said"
    done
}
satellites

outside "$root" /usr/local/lib
for standard in c11 gnu11; do
    checked $standard
done
outside "$packaged" /usr/lib/multi

# moved as a whole
mkdir "$work/moved"
cp -R "$root/usr/local" "$work/moved/there"
moved=$(PKG_CONFIG_LIBDIR=$work/moved/there/lib/pkgconfig pkg-config --define-prefix --variable=libdir strand)
[ "$moved" = "$work/moved/there/lib" ] || complain "pkg-config --define-prefix says $moved, not $work/moved/there/lib"
version=$(PKG_CONFIG_LIBDIR=$work/moved/there/lib/pkgconfig pkg-config --modversion strand)
[ -e "$work/moved/there/lib/libstrand.so.$version" ] || complain "pkg-config takes it for version $version"

# ---- programs by CMake -----------------------------------------------------------------------------------------------

by_cmake()
{
    cp -R tests/outside "$work/cmake"
    try "cmake" cmake -S "$work/cmake" -B "$work/cmake/build" "-DCMAKE_PREFIX_PATH=$1" -DCMAKE_BUILD_TYPE=Release \
        "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" || return
    try "cmake --build" cmake --build "$work/cmake/build" || return
    runs "$work/cmake/build/c-strand" c shared /nowhere
    runs "$work/cmake/build/cxx-strand" cc shared /nowhere
    runs "$work/cmake/build/c-static" c static /nowhere
    runs "$work/cmake/build/cxx-static" cc static /nowhere
}
cmake=''
if command -v cmake >/dev/null; then
    by_cmake "$work/moved/there"
else
    cmake=', but there is no CMake here'
fi

# ---- the manual ------------------------------------------------------------------------------------------------------

man=$packaged/usr/share/man
for name in $(nm -D --defined-only "$packaged"/usr/lib/multi/libstrand*.so | awk '$2 != "A" { sub(/@.*/, "", $3); if ($3 !~ /_$/) print $3 }'); do
    page=$man/man3/$name.3
    [ -f "$page" ] || { complain "$name has no manual page" && continue; }
    page=$man/$(sed -n '1s/^\.so //p' "$page")
    [ "$page" = "$man/" ] || grep -Eq "(^|, )$name(,| |\$)" "$page" || complain "$page does not name $name"
done
try "the comments" env STRICT=1 tools/man.sh "$work/man" "$version"

pages=$(ls "$man"/man3/* "$man"/man7/*)
# shellcheck disable=SC2086
! grep -l '@[A-Z]*@' $pages >"$work/said" || complain "not filled in: $(cat "$work/said")"
if command -v groff >/dev/null; then
    # shellcheck disable=SC2086
    groff -man -ww -z -Tutf8 $pages >"$work/said" 2>&1
    [ ! -s "$work/said" ] || complain "groff on the manual: $(cat "$work/said")"
fi
if command -v mandoc >/dev/null; then
    # shellcheck disable=SC2086
    try "mandoc on the manual" mandoc -T lint $pages
fi
[ ! -f "$man/man3/strand.3" ] || complain "man strand shows a type, not the overview"
# shellcheck disable=SC2086
for section in "RETURN VALUE" ERRORS EXAMPLES "SEE ALSO"; do
    grep -q "^\.SH $section" "$man/man3/strand_join.3" || complain "strand_join(3) has no $section"
done
# Sentences that only have the words of an error stay in the description.
for name in strand_try STRAND_SCOPE; do
    ! sed -n '/^\.SH ERRORS/,/^\.SH EXAMPLES/p' "$man/man3/$name.3" | grep -Eq '^(Call|So) ' ||
        complain "$name(3) has a sentence below ERRORS that is no error"
done
! grep -l '^From .*tests/' "$man"/man3/*.3 >"$work/said" || complain "examples that are tests: $(cat "$work/said")"

# The example of the overview, built by the line of its synopsis.
awk '/^\.SH/ { there = /EXAMPLES/ } /^\.EE/ { text = 0 } there && text { print } /^\.EX/ { text = 1 }' \
    "$man/man7/strand.7" | sed 's/\\e/\\/g; s/\\-/-/g' >"$work/program.c"
line=$(sed -n '/^\.SH SYNOPSIS/,/^\.SH D/s/^\\fB\(cc .*\)\\fP$/\1/p' "$man/man7/strand.7" | sed 's/\\-/-/g')
export PKG_CONFIG_SYSROOT_DIR="$packaged" PKG_CONFIG_LIBDIR="$packaged/usr/lib/multi/pkgconfig"
if try "strand(7): $line" sh -c "cd '$work' && cc() { $CC \"\$@\"; } && ${line:-false}"; then
    said=$(LD_LIBRARY_PATH=$packaged/usr/lib/multi timeout 600 "$work/program" 2>&1 | tr '\n' ' ')
    [ "$said" = "1 4 9 " ] || complain "the example of strand(7) prints $said"
fi

# ---- removing --------------------------------------------------------------------------------------------------------

try "make uninstall" made uninstall "DESTDIR=$root"
snapshot "$root" | diff "$work/before" - >"$work/said" || complain "make uninstall leaves a difference: $(cat "$work/said")"
echo of the user >"$packaged/usr/include/multi/strand/user.h"
try "make uninstall PREFIX=/usr" made uninstall "DESTDIR=$packaged" PREFIX=/usr
left=$(cd "$packaged" && find . -not -type d)
[ "$left" = ./usr/include/multi/strand/user.h ] || complain "make uninstall does not leave the user's file alone:" "$left"
! made uninstall "DESTDIR=$packaged" PREFIX=/usr >/dev/null 2>&1 || complain "it is uninstalled twice"

[ $status -ne 0 ] || echo "install: programs outside, the manual, removing: ok$cmake"
exit $status
