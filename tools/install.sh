#!/bin/sh
# usage: tools/install.sh install FOLDER VERSION HEADER...
#        tools/install.sh uninstall
#
# Installs what was built in FOLDER, without building anything, or removes what was installed. PREFIX, LIBDIR,
# INCLUDEDIR, MANDIR, DOCDIR and GDBDIR say where to; DESTDIR, which may be empty, is put in front of them. MAN=no leaves the
# manual out. A satellite (tools/satellites) that was not built is left out, with its header.
#
# DOCDIR/installed lists the files and folders that were put there: a line "file PATH" or "folder PATH" each, without
# DESTDIR. Installing again adds to it, and removing goes by nothing else. So what others put into the same folders
# stays, and so do folders that were there before.
set -eu
export LC_ALL=C
umask 022

fail()
{
    echo "$action: $*" >&2
    exit 1
}

# clean PATH: absolute, without .. and doubled slashes
clean()
{
    case $1 in
    /*) realpath -ms -- "$1" ;;
    *) fail "PREFIX and the folders below it are absolute paths, not '$1'" ;;
    esac
}

action=$1
shift
# shellcheck disable=SC2153
prefix=$(clean "$PREFIX")
libdir=$(clean "${LIBDIR:-}")
includedir=$(clean "${INCLUDEDIR:-}")
mandir=$(clean "${MANDIR:-}")
docdir=$(clean "${DOCDIR:-}")
gdbdir=$(clean "${GDBDIR:-}")
cmakedir=$libdir/cmake/strand
root=${DESTDIR:+$(realpath -ms -- "$DESTDIR")}
root=${root%/}
list=$docdir/installed

# The loader's cache is of this system, not of one below DESTDIR.
refresh_loader()
{
    if [ -z "$root" ] && [ "$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then
        ldconfig || true
    fi
}

if [ "$action" = uninstall ]; then
    [ -f "$root$list" ] || fail "there is no $root$list: nothing is installed there"
    copy=$(mktemp)
    trap 'rm -f "$copy"' EXIT
    cat "$root$list" >"$copy"
    sed -n 's/^file //p' "$copy" | while IFS= read -r path; do
        rm -f -- "$root$path" || exit 1
    done || fail "some files could not be removed, and $root$list is kept"
    rm -f -- "$root$list" || fail "$root$list could not be removed"
    # The deepest first. Those that hold something of others stay.
    sed -n 's/^folder //p' "$copy" | sort -r | while IFS= read -r path; do
        rmdir -- "$root$path" 2>/dev/null || true
    done
    refresh_loader
    echo "uninstall: removed from $root$prefix"
    exit
fi

folder=$1 version=$2
shift 2
for file in libstrand.a libstrand.so; do
    [ -e "$folder/$file" ] || fail "there is no $folder/$file: make it first"
done
changed=$(find src include tools/exports*.map tools/satellites tools/public.h tools/embed.sh tools/own-text.sh -type f -newer "$folder/libstrand.so")
if [ -n "$changed" ]; then
    count=$(printf '%s\n' "$changed" | wc -l) first=$(printf '%s\n' "$changed" | head -n 1)
    [ "$count" -eq 1 ] && others= || others=" and $((count - 1)) more"
    fail "make it first: since it was made, $first$others changed"
fi
[ "${MAN:-}" = no ] || [ -e "$folder/man/man7/strand.7" ] ||
    fail "there is no manual yet: make man makes it, and MAN=no installs without it"
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
soname=libstrand.so.$major
realname=libstrand.so.$version

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- what goes where: files as "MODE SOURCE<tab>PATH", links as "link TARGET<tab>PATH" -------------------------------

tab=$(printf '\t')
plan=$work/plan
put()
{
    printf '%s %s\t%s\n' "$1" "$2" "$3" >>"$plan"
}

# below FOLDER: as pkg-config writes it, by its prefix if it lies below that
below()
{
    case $1 in
    "$prefix"/*) echo "\${prefix}/${1#"$prefix"/}" ;;
    *) echo "$1" ;;
    esac
}

# for pkg-config, which takes words apart
quoted()
{
    printf '%s\n' "$1" | sed 's/ /\\ /g'
}

# word TEXT: as it stands in the replacement of sed's s|||
word()
{
    printf '%s\n' "$1" | sed 's/[\\&|]/\\&/g'
}

# filled TEMPLATE OUT
filled()
{
    sed -e "s|@VERSION@|$version|g; s|@MAJOR@|$major|g; s|@MINOR@|$minor|g; s|@POINTER@|$(($(getconf LONG_BIT) / 8))|g" \
        -e "s|@SONAME@|$soname|g; s|@REALNAME@|$realname|g" \
        -e "s|@PREFIX@|$(word "$(quoted "$prefix")")|g" \
        -e "s|@PC_LIBDIR@|$(word "$(quoted "$(below "$libdir")")")|g" \
        -e "s|@PC_INCLUDEDIR@|$(word "$(quoted "$(below "$includedir")")")|g" \
        -e "s|@CMAKE_TO_LIBDIR@|$(word "$(realpath -ms --relative-to="$cmakedir" -- "$libdir")")|g" \
        -e "s|@CMAKE_TO_INCLUDEDIR@|$(word "$(realpath -ms --relative-to="$cmakedir" -- "$includedir")")|g" \
        -e "s|@LIBDIR@|$(word "$libdir")|g; s|@INCLUDEDIR@|$(word "$includedir")|g; s|@DOCDIR@|$(word "$docdir")|g" \
        "$1" >"$2"
}

satellites=$(awk '/^[a-z]/ { print $1 }' tools/satellites)
for header; do
    name=${header#include/strand/}
    name=${name%.h}
    if ! echo "$satellites" | grep -qx "$name" || [ -e "$folder/libstrand-$name.so" ]; then
        put 644 "$header" "$includedir/${header#include/}"
    fi
done
for name in $satellites; do
    [ -e "$folder/libstrand-$name.so" ] || continue
    put 644 "$folder/libstrand-$name.a" "$libdir/libstrand-$name.a"
    put 755 "$folder/libstrand-$name.so" "$libdir/libstrand-$name.so.$version"
    put link "libstrand-$name.so.$version" "$libdir/libstrand-$name.so.$major"
    put link "libstrand-$name.so.$major" "$libdir/libstrand-$name.so"
    filled tools/package/satellite.pc.in "$work/any.pc"
    sed "s|@NAME@|$name|g; s|@FOREIGN@|$(awk -v name="$name" '$1 == name { print $3 }' tools/satellites)|g" \
        "$work/any.pc" >"$work/strand-$name.pc"
    put 644 "$work/strand-$name.pc" "$libdir/pkgconfig/strand-$name.pc"
done
put 644 "$folder/libstrand.a" "$libdir/libstrand.a"
put 755 "$folder/libstrand.so" "$libdir/$realname"
put link "$realname" "$libdir/$soname"
put link "$soname" "$libdir/libstrand.so"
filled tools/package/strand.pc.in "$work/strand.pc"
put 644 "$work/strand.pc" "$libdir/pkgconfig/strand.pc"
for file in strandConfig.cmake strandConfigVersion.cmake; do
    filled tools/package/$file.in "$work/$file"
    put 644 "$work/$file" "$cmakedir/$file"
done
if [ "${MAN:-yes}" != no ]; then
    filled "$folder/man/man7/strand.7" "$work/strand.7"
    put 644 "$work/strand.7" "$mandir/man7/strand.7"
    for page in "$folder"/man/man3/*.3; do
        put 644 "$page" "$mandir/man3/${page##*/}"
    done
fi
put 644 tools/gdb/strand.py "$gdbdir$libdir/$realname-gdb.py" # which gdb loads with the library of that path
for file in LICENSE NOTICE; do
    put 644 $file "$docdir/$file"
done

# ---- doing it: the folders, then the list, then the files ------------------------------------------------------------

# refuse MESSAGE: before anything was installed; takes the folders away again
refuse()
{
    sort -r "$work/made" | while IFS= read -r path; do
        rmdir -- "$root$path" || true
    done
    fail "$*"
}

# make_folder PATH: and those above it that are missing, each of which is noted
make_folder()
{
    [ ! -d "$root$1" ] || return 0
    make_folder "$(dirname "$1")"
    mkdir -- "$root$1" || refuse "the folder $root$1 cannot be made"
    printf '%s\n' "$1" >>"$work/made"
}

[ -z "$root" ] || mkdir -p -- "$root" || fail "the folder $root cannot be made"
: >"$work/made"
cut -f 2 "$plan" | sed 's|/[^/]*$||' | sort -u >"$work/folders"
while IFS= read -r path; do
    make_folder "$path"
    [ -w "$root$path" ] || refuse "the folder $root$path cannot be written to"
done <"$work/folders"

{
    [ ! -f "$root$list" ] || cat "$root$list"
    sed 's/^/folder /' "$work/made"
    sed "s/^[^$tab]*$tab/file /" "$plan"
} | sort -u >"$work/list"
install -T -m 644 "$work/list" "$root$list" || fail "$root$list cannot be written"
while IFS=$tab read -r what path; do
    case $what in
    link\ *) ln -sfT -- "${what#* }" "$root$path" || fail "$root$path cannot be written" ;;
    *) install -T -m "${what%% *}" -- "${what#* }" "$root$path" || fail "$root$path cannot be written" ;;
    esac
done <"$plan"
refresh_loader
echo "install: $(wc -l <"$plan") files below $root$prefix"
