#!/bin/sh
# usage: tools/check-link.sh FOLDER
#
# Links programs with FOLDER's libstrand.a and with its libstrand.so, by -lstrand alone, and runs them:
#
#   a C and a C++ program, in which libgcc_s has to provide all _Unwind_* functions for the library, the program and the
#   C++ library
#   try blocks under -fcf-protection and -flto; nothing asks for a shadow stack
#   traces, by every linker that there is
#   C++ exceptions in programs, static ones too, and in plug-ins, with shared runtimes and with runtimes of their own
#   plug-ins that are loaded one after the other at one address, and throw
#   static objects that are constructed before the first run, under ThreadSanitizer
#   destructors and noexcept functions that are compiled with various options
#
# CC, CXX and CLANGXX name the compilers.
#
# contract 9.8
set -u
export LC_ALL=C

folder=$(realpath "$1")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/static" "$work/shared"
cp "$folder/libstrand.a" "$work/static/"
cp "$folder/libstrand.so" "$work/shared/"
ln -s libstrand.so "$work/shared/libstrand.so.0"
status=0

complain()
{
    echo "link: $*"
    status=1
}

# bindings PREFIX: "SYMBOL LIBRARY" of each _Unwind_* that the loader bound for somebody else than libgcc_s
bindings()
{
    grep -v 'binding file [^ ]*/libgcc_s' "$1".* |
        sed -n 's|.*binding file .* to \([^ ]*\) \[[0-9]*\]: normal symbol .\(_Unwind_[A-Za-z_]*\).*|\2 \1|p'
}

# try HOW SOURCE COMPILER FLAG...
try()
{
    how=$1 source=$2 program=$work/$1/$(basename "$2" | tr . _)
    shift 2
    if ! "$@" -O2 -fexceptions -Iinclude "$source" -o "$program" "-L$work/$how" "-Wl,-rpath,$work/$how" -lstrand; then
        complain "$source does not link ($how)"
        return
    fi
    LD_BIND_NOW=1 LD_DEBUG=bindings LD_DEBUG_OUTPUT="$program.bindings" timeout 600 "$program" >"$program.out" 2>&1 ||
        complain "$source ($how) has failed with exit status $?: $(cat "$program.out")"
    bound=$(bindings "$program.bindings")
    others=$(echo "$bound" | grep -v '/libgcc_s\.so\.1$')
    [ -n "$bound" ] || complain "$source ($how): no unwinding was bound at all"
    [ -z "$others" ] || complain "$source ($how): not served by libgcc_s: $others"
    for symbol in _Unwind_ForcedUnwind $expected; do
        echo "$bound" | grep -q "^$symbol " || complain "$source ($how): nobody asked for $symbol"
    done
    needed=$(ldd "$program" | grep -E 'unwind|lzma|boost')
    [ -z "$needed" ] || complain "$source ($how) needs $needed"
}

for how in static shared; do
    expected=''
    try "$how" tests/programs/link_c.c ${CC:-gcc} -std=gnu11
    expected='_Unwind_RaiseException _Unwind_Resume'
    try "$how" tests/programs/link_cxx.cc ${CXX:-g++} -std=c++17
done

# protected HOW "COMPILER'S FLAGS" "LINKER'S FLAGS": a try block catches
protected()
{
    program=$work/$1/protected
    if ! ${CC:-gcc} -std=gnu11 -O2 -fexceptions -Iinclude $2 -c tests/programs/link_c.c -o "$program.o" ||
        ! ${CC:-gcc} -O2 $3 "$program.o" -o "$program" "-L$work/$1" "-Wl,-rpath,$work/$1" -lstrand; then
        complain "tests/programs/link_c.c does not link ($1, $2, $3)"
        return
    fi
    timeout 600 "$program" >/dev/null 2>&1 || complain "a try block does not catch ($1, compiled with $2, linked with $3)"
}
for how in static shared; do
    protected "$how" -fcf-protection=full ''
    protected "$how" -fcf-protection=return ''
    case $(${CC:-gcc} --version) in
    *clang*) ;; # its try blocks have one layout
    *) protected "$how" '-flto -fcf-protection=none' '-flto -fcf-protection=full' ;;
    esac
done
# Where a context switch goes back to is not on the shadow stack.
for file in "$work/static/protected" "$work/shared/libstrand.so"; do
    ! readelf -n "$file" | grep -q SHSTK || complain "$file asks for a shadow stack"
done

# A trace begins with the program's function under each linker, also if the library's code lies elsewhere.
# traced HOW LINKER
traced()
{
    program=$work/$1/traced
    if ! ${CC:-gcc} -std=gnu11 -O2 -fexceptions -Iinclude "-fuse-ld=$2" -Wl,--gc-sections tests/programs/uncaught.c \
        -o "$program" "-L$work/$1" "-Wl,-rpath,$work/$1" -lstrand; then
        complain "tests/programs/uncaught.c does not link ($1, $2)"
        return
    fi
    frames=$(timeout 600 "$program" live 2>&1 | sed -n '/thrown in/,/left strand/p' | grep -c '^ *at')
    [ "$frames" -eq 1 ] || complain "a trace has $frames frames ($1, $2), of which the program's are 1"
}
for linker in bfd gold lld; do
    command -v "ld.$linker" >/dev/null || continue
    traced static "$linker"
    traced shared "$linker"
done

# ---- where the C++ runtime is ----------------------------------------------------------------------------------------

expected='0 wrong, typed, 1 uncaught, kept, ours'
own_runtime='-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL'

# printed WHAT FILE: the program has found the runtime of its strands
printed()
{
    [ "$(cat "$2")" = "$expected" ] || complain "tests/programs/cxx_runtime.cc ($1) prints: $(cat "$2")"
}

# runtime HOW FLAG...: a program in C++
runtime()
{
    how=$1 program=$work/$1/runtime
    shift
    # -static gets a warning of each function that loads libraries.
    if ! ${CXX:-g++} -std=c++17 -O2 -Iinclude tests/programs/cxx_runtime.cc -o "$program" "$@" "-L$work/$how" \
        "-Wl,-rpath,$work/$how" -lstrand >"$program.said" 2>&1; then
        complain "tests/programs/cxx_runtime.cc does not link ($how, $*): $(cat "$program.said")"
        return
    fi
    timeout 600 "$program" >"$program.out" 2>&1
    printed "$how, $*" "$program.out"
}
runtime static -static
runtime static -static -fno-rtti
for how in static shared; do
    runtime "$how"
    runtime "$how" $own_runtime
    runtime "$how" $own_runtime -fno-pie -no-pie
done

# A static program in C with a function in C++ that does not know the library.
lacking=$work/static/lacking
echo 'extern "C" void *fail(void *); void *fail(void *) { throw 1; }' | ${CXX:-g++} -x c++ -c - -o "$lacking.cc.o"
printf '#include <strand.h>\nvoid *fail(void *);\nint main(void) { strand_run(NULL, fail, NULL); }\n' |
    ${CC:-gcc} -fexceptions -Iinclude -x c -c - -o "$lacking.c.o"
${CXX:-g++} -static "$lacking.c.o" "$lacking.cc.o" -o "$lacking" "-L$work/static" -lstrand >"$work/said" 2>&1 ||
    complain "a static program in C and C++ does not link: $(cat "$work/said")"
timeout 600 "$lacking" >"$work/out" 2>"$work/err"
grep -q 'Include strand.h in a file in C++' "$work/err" || complain "what is not linked is not reported: $(cat "$work/err")"

# Plug-ins of a program in C, with the shared runtime, and with one of their own each.
host=$work/shared/host
${CC:-gcc} -std=gnu11 -fexceptions -Iinclude tests/programs/cxx_host.c -o "$host" "-L$work/shared" \
    "-Wl,-rpath,$work/shared" -lstrand || complain "tests/programs/cxx_host.c does not link"
for name in common own other; do
    case $name in common) flags='' ;; *) flags=$own_runtime ;; esac
    # shellcheck disable=SC2086
    ${CXX:-g++} -std=c++17 -O2 -fPIC -shared -DPLUGIN -Iinclude tests/programs/cxx_runtime.cc -o "$work/$name.so" $flags \
        "-L$work/shared" "-Wl,-rpath,$work/shared" -lstrand || complain "a plug-in does not link ($name)"
done
for plugin in common own; do
    for before in 0 1; do
        timeout 600 "$host" $before "$work/$plugin.so" >"$work/out" 2>&1
        printed "$plugin, $before before the run" "$work/out"
    done
done
for before in 0 1 2; do
    timeout 600 "$host" $before "$work/own.so" "$work/other.so" >"$work/out" 2>"$work/err"
    printed "own and other, $before before the run" "$work/out"
    grep -q 'has a C++ runtime of its own.*without -static-libstdc++' "$work/err" ||
        complain "a second C++ runtime is not reported ($before before the run): $(cat "$work/err")"
done

# ---- plug-ins at one address -----------------------------------------------------------------------------------------

# swapped FLAG...: each exception passes through the plug-in that is loaded, not through the one before it
swapped()
{
    program=$work/shared/swap
    for size in '' 200 300; do
        [ -z "$size" ] && kind='' name=$program || kind="-fPIC -shared -DPLUGIN=$size" name=$program.$size.so
        # shellcheck disable=SC2086
        ${CC:-gcc} -std=gnu11 -fexceptions "$@" $kind -Iinclude tests/programs/unwind_plugin.c -o "$name" \
            "-L$work/shared" "-Wl,-rpath,$work/shared" -lstrand || complain "tests/programs/unwind_plugin.c does not link"
    done
    said=$(timeout 600 "$program" "$program.200.so" "$program.300.so" 2>&1)
    [ "$said" = '20 cleaned, 20 passed, one place' ] || complain "tests/programs/unwind_plugin.c ($*) prints: $said"
}
swapped -O2

# ---- static objects before the first run -----------------------------------------------------------------------------

early=$work/static/early
if ${CXX:-g++} -std=c++17 -g -fsanitize=thread -Iinclude tests/programs/static_early.cc -o "$early" "-L$work/static" \
    -lstrand >"$early.said" 2>&1; then
    said=$(timeout 600 "$early" 2>&1)
    [ "$said" = 6 ] || complain "tests/programs/static_early.cc prints: $said"
else
    complain "tests/programs/static_early.cc does not link: $(cat "$early.said")"
fi

# ---- how a noexcept function looks -----------------------------------------------------------------------------------

# closes HOW COMPILER FLAG...: the interruption waits for the destructor
closes()
{
    how=$1 program=$work/$1/close
    shift
    if ! "$@" -std=c++17 -Iinclude tests/programs/cxx_close.cc -o "$program" "-L$work/$how" "-Wl,-rpath,$work/$how" \
        -lstrand >"$program.said" 2>&1; then
        complain "tests/programs/cxx_close.cc does not link ($how, $*): $(cat "$program.said")"
        return
    fi
    said=$(cd "$work" && ASAN_OPTIONS=$asan timeout 600 "$program" 2>&1)
    [ "$said" = "111 111" ] || complain "tests/programs/cxx_close.cc ($how, $*) prints: $said"
}
asan=
g=${CXX:-g++} clang=${CLANGXX:-clang++-19}
for how in static shared; do
    for level in -O0 -O1 -O2 -Os; do
        closes "$how" "$g" $level
        closes "$how" "$clang" $level
    done
done
for flags in -finstrument-functions -fno-plt -Wl,-z,now -fcf-protection=full -static; do
    closes static "$g" -O2 $flags
    closes static "$clang" -O2 $flags
done
for flags in -fbasic-block-sections=all -mspeculative-load-hardening -ftrapv; do
    closes static "$clang" -O2 $flags
done
closes static "$g" -O2 --coverage -fprofile-update=atomic
# The locals of a function on its stack, and elsewhere.
for asan in detect_stack_use_after_return=0 detect_stack_use_after_return=1; do
    for level in -O0 -O1 -O2; do
        closes static "$clang" $level -fsanitize=address
        closes static "$g" $level -fsanitize=address
    done
done
[ $status -ne 0 ] || echo "link: ok"
exit $status
