#!/bin/sh
# usage: tools/check-system.sh OBJECT...
#
# The system is called in src/arch only, by wrappers that return a negated errno code. So outside of it there are no
# headers of system calls, no errno, and no other function of the C library than those named here. OBJECTs are those of
# src, optimised, under .../src/LAYER/.
#
# contract 2.18, 3.7, 9.11
set -u
export LC_ALL=C

# Memory, text, numbers, the program's end. Nothing that waits, reads a clock, makes a thread or touches a descriptor.
# The contexts' functions stand behind inlines of src/arch.
allowed="malloc calloc realloc free aligned_alloc abort exit
memcpy memmove memset memcmp memchr
strlen strnlen strcmp strncmp strcasecmp strchr strrchr strspn strcspn strstr strcpy strncpy strdup strtol strtoul strtoll strtoull
snprintf vsnprintf strerror_r strerrorname_np strerrordesc_np qsort
__memcpy_chk __memmove_chk __memset_chk __strcpy_chk __strncpy_chk __snprintf_chk __vsnprintf_chk
__popcountdi2 __stack_chk_fail __gcc_personality_v0 _Unwind_Resume _GLOBAL_OFFSET_TABLE_
make_fcontext jump_fcontext"
# A satellite (tools/satellites) calls its foreign library and the core.
# If it needs the system, too, all of that is in src/NAME/NAME_system.c.
satellites=$(awk '/^[a-z]/ { print $1 }' tools/satellites | paste -s -d '|')
foreign=$(mktemp)
trap 'rm -f "$foreign"' EXIT
{
    sed -n 's/^ *\([A-Za-z_]*\);$/\1/p' tools/exports.map
    for library in $(awk '/^[a-z]/ { for (i = 5; i <= NF; i++) print substr($i, 3) }' tools/satellites | sort -u); do
        nm -D --defined-only --without-symbol-versions "$("${CC:-gcc}" -print-file-name="lib$library.so")" 2>/dev/null |
            awk 'NF == 3 { print $3 }'
    done
} >"$foreign"
headers='sys/|linux/|asm/|unistd\.h|pthread\.h|fcntl\.h|signal\.h|poll\.h|sched\.h|time\.h|dlfcn\.h|threads\.h|netdb\.h|'
headers=$headers'spawn\.h|semaphore\.h|ucontext\.h|netinet/|arpa/|libunwind|unwind\.h|x86intrin\.h|immintrin\.h'
status=0

complain()
{
    echo "system: $*"
    status=1
}

found=$(grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<($headers)" src/*/*.[chS] |
    grep -vE '^src/(arch/|([a-z]*)/\2_system\.c)')
[ -z "$found" ] || complain "headers of the system outside of src/arch:
$found"

# A seeded run must not see the real time. The platform may, and a caller outside of every run.
found=$(grep -nE 'arch_(clock_ns|ticks|ticks_per_ms)\(' src/*/*.[chS] |
    grep -vE '^src/(arch/|sched/platform\.[ch]:|strand/time\.c:)')
[ -z "$found" ] || complain "time that does not come through src/sched/platform.h:
$found"

found=$(nm -A --undefined-only "$@" 2>/dev/null | sed -n 's|^.*\(src/[a-z]*/[^:]*\): *[Uwv] \(.*\)$|\1 \2|p' |
    grep -vE '^src/(arch/|([a-z]*)/\2_system\.o)' |
    awk -v foreign="$foreign" -v satellites="^src/($satellites)/" -v allowed="$(echo "$allowed" | tr '\n' ' ')" -v own="$(nm --defined-only -g "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | tr '\n' ' ')" '
        BEGIN {
            count = split(allowed " " own, names, " ")
            for (i = 1; i <= count; i++) known[names[i]] = 1
            while ((getline name <foreign) > 0) known_there[name] = 1
        }
        $2 == "__errno_location" { print $1 ": errno"; next }
        $1 ~ satellites && $2 in known_there { next }
        !($2 in known) { print $1 ": " $2 }')
[ -z "$found" ] || complain "used outside of src/arch, and neither a function of ours nor named in tools/check-system.sh:
$found"
[ $status -ne 0 ] || echo "system: ok"
exit $status
