/*
 * Mappings are zero, discarding keeps guards, guards fault, and if one way to make a guard fails the next one is used.
 */
#include "arch_check.h"

#include <errno.h>
#include <setjmp.h>
#include <sys/mman.h>

static sigjmp_buf fault;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(fault, 1);
}

static NOINLINE bool faults(char *at)
{
    struct sigaction action = {.sa_handler = on_fault}, segv, bus;
    sigaction(SIGSEGV, &action, &segv);
    sigaction(SIGBUS, &action, &bus);
    volatile bool faulted = true;
    if (sigsetjmp(fault, 1) == 0) {
        *(volatile char *)at = 1;
        faulted = false;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return faulted;
}

static void memory_is_zero_and_zero_again(void)
{
    enum { SIZE = 1 << 20 };
    void *base;
    CHECK_EQUAL(arch_map(SIZE, &base), 0);
    CHECK_EQUAL((uintptr_t)base % arch_page_size(), 0);
    char *bytes = base;
    for (size_t i = 0; i < SIZE; i += 512)
        CHECK_EQUAL(bytes[i], 0);
    memset(bytes, 1, SIZE);
    arch_discard(bytes, SIZE / 2);
    CHECK_EQUAL(bytes[0], 0);
    CHECK_EQUAL(bytes[SIZE / 2 - 1], 0);
    CHECK_EQUAL(bytes[SIZE / 2], 1);
    arch_unmap(base, SIZE);
}

/* contract 9.11 */
static void too_much_is_refused(void)
{
    void *base = &base;
    CHECK_EQUAL(arch_map((size_t)1 << 62, &base), -ENOMEM);
    CHECK(base == &base);
}

static void check_guard(int expected)
{
    size_t page = arch_page_size();
    void *base;
    CHECK_EQUAL(arch_map(3 * page, &base), 0);
    char *guard = (char *)base + page;
    int kind = arch_guard_install(guard, true);
    CHECK(kind == ARCH_GUARD_PAGE || kind == ARCH_GUARD_MAPPING);
    CHECK(!expected || kind == expected);
    CHECK(!faults(guard - 1) && faults(guard) && faults(guard + page - 1) && !faults(guard + page));
    arch_discard(base, 3 * page);
    CHECK(faults(guard));
    arch_guard_remove(guard, kind);
    CHECK(!faults(guard));
    arch_unmap(base, 3 * page);
}

/* contract 3.10 */
static void a_guard_faults_until_it_is_removed(void)
{
    check_guard(0);
}

/* contract 3.10 */
static void guards_by_mappings(void)
{
    setenv("STRAND_GUARDS", "mprotect", 1);
    check_guard(ARCH_GUARD_MAPPING);
}

static int64_t mappings_most(void)
{
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    long most = 65530;
    if (!file || fscanf(file, "%ld", &most) != 1)
        most = 65530;
    if (file)
        fclose(file);
    return most;
}

/* Guards use at most half of the system's mappings, two each; released ones can be used again. */
/* contract 3.10 */
static void guards_by_mappings_are_limited(void)
{
    setenv("STRAND_GUARDS", "mprotect", 1);
    size_t page = arch_page_size();
    int64_t most = mappings_most() / 4;
    if (most > 100000)
        return;
    void *base;
    size_t bytes = (size_t)(most + 2) * 2 * page;
    CHECK_EQUAL(arch_map(bytes, &base), 0);
    int64_t made = 0;
    while (made < most + 1 && arch_guard_install((char *)base + (size_t)made * 2 * page, true) == ARCH_GUARD_MAPPING)
        made++;
    CHECK_EQUAL(made, most);
    char *next = (char *)base + (size_t)made * 2 * page;
    CHECK_EQUAL(arch_guard_install(next, true), -ENOMEM);
    CHECK_EQUAL(arch_guard_install(next, false), ARCH_GUARD_MAPPING);
    arch_guard_remove(next, ARCH_GUARD_MAPPING);
    arch_guard_remove(base, ARCH_GUARD_MAPPING);
    CHECK_EQUAL(arch_guard_install(base, true), ARCH_GUARD_MAPPING);
    CHECK_EQUAL(arch_guard_install(next, true), -ENOMEM);
    arch_unmap(base, bytes);
    arch_guards_unmapped((size_t)most);
    check_guard(ARCH_GUARD_MAPPING);
}

static void no_guards(void)
{
    setenv("STRAND_GUARDS", "none", 1);
    void *base;
    CHECK_EQUAL(arch_map(arch_page_size(), &base), 0);
    CHECK_EQUAL(arch_guard_install(base, true), -ENOMEM);
    CHECK_EQUAL(arch_guard_install(base, false), -ENOMEM);
    CHECK(!faults(base));
    arch_unmap(base, arch_page_size());
}

static size_t mappings_now(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    size_t lines = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

/* Many regions with guards by guard-install are few mappings. */
static void regions_merge(void)
{
    enum { REGIONS = 100, SIZE = 256 * 1024 };
    void *bases[REGIONS];
    size_t before = mappings_now();
    for (int i = 0; i < REGIONS; i++) {
        CHECK_EQUAL(arch_map(SIZE, &bases[i]), 0);
        if (arch_guard_install(bases[i], true) != ARCH_GUARD_PAGE)
            return;
        *((volatile char *)bases[i] + SIZE - 1) = 1;
    }
    CHECK(mappings_now() < before + REGIONS / 4);
    for (int i = 0; i < REGIONS; i++)
        arch_unmap(bases[i], SIZE);
}

/* The flags of the mapping that contains an address, as the system shows them. */
static void flags_of(const void *address, char *flags, size_t size)
{
    char line[512];
    bool inside = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    *flags = '\0';
    while (file && fgets(line, sizeof line, file)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = (uintptr_t)address >= low && (uintptr_t)address < high;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            snprintf(flags, size, "%s", line + 8);
    }
    if (file)
        fclose(file);
}

static void memory_is_not_in_huge_pages(void)
{
    char flags[512];
    void *base;
    CHECK_EQUAL(arch_map(4 << 20, &base), 0);
    flags_of(base, flags, sizeof flags);
    if (access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0)
        CHECK(strstr(flags, " nh") != NULL);
    CHECK(strstr(flags, " nr") != NULL); /* not reserved */
    arch_unmap(base, 4 << 20);
}

int main(void)
{
    CHECK_CHILD(guards_by_mappings);
    CHECK_CHILD(guards_by_mappings_are_limited);
    CHECK_CHILD(no_guards);
    memory_is_zero_and_zero_again();
    if (!SANITIZED) /* which have limits of their own, and end the program */
        too_much_is_refused();
    a_guard_faults_until_it_is_removed();
    memory_is_not_in_huge_pages();
    if (!SANITIZED)
        regions_merge();
    return failures != 0;
}
