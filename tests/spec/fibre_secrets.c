/*
 * Strands on shared fibres that wipe: nothing that they had on the stack, in registers, or in copies that the library
 * made stays in memory that others get.
 */
#define SUITE fibre_secrets
#include "test.h"

#include "strand/chan.h"
#include "strand/select.h"

#include <fcntl.h>
#include <unistd.h>

/* The secret is never in memory but where it is meant to be: everything else knows it in another form. */
enum { SECRET_WORDS = 24 };
#define SECRET_KEY UINT64_C(0x5bd1e995a7c3f10b)
static volatile uint64_t secret_coded = UINT64_C(0x6c1f0a94d27be835) ^ SECRET_KEY;

static _Atomic int holding;

static NOINLINE void keep_secret(int depth)
{
    volatile uint64_t secret[SECRET_WORDS];
    for (int i = 0; i < SECRET_WORDS; i++)
        secret[i] = secret_coded ^ SECRET_KEY;
    if (depth)
        keep_secret(depth - 1);
    else
        atomic_store(&holding, 1);
    test_yield_until(&holding, 2);
    strand_yield();
    CHECK(secret[0] == (secret_coded ^ SECRET_KEY));
}

static void *knows_a_secret(void *arg)
{
    (void)arg;
    keep_secret(20); /* its saved stacks have several sizes */
    strand_yield();
    return NULL;
}

/* To the end, so that the fibre does not rest. */
static void *gives_way_often(void *arg)
{
    for (int i = 0; i < 40; i++)
        strand_yield();
    while (atomic_load(&holding) != 3)
        strand_sleep(5 * STRAND_MS);
    return arg;
}

/* In all writable memory of the process, but for mappings so large that they can't be what is looked for. */
static NOINLINE size_t times_in_memory(void)
{
    static uint64_t page[4096 / 8];
    size_t found = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    CHECK(maps && memory >= 0);
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) != 3 || mode[1] != 'w' || end - begin > (512UL << 20))
            continue;
        for (; begin < end; begin += sizeof page) {
            if (pread(memory, page, sizeof page, (off_t)begin) != sizeof page)
                continue; /* a guard */
            for (size_t i = 0; i < sizeof page / sizeof *page; i++)
                found += (page[i] ^ SECRET_KEY) == secret_coded;
            memset(page, 0, sizeof page);
        }
    }
    close(memory);
    fclose(maps);
    return found;
}

/* When its thread has left the stack, or soon after. Before the fibre is trimmed for resting: what was left would go
 * with that. */
static size_t times_left_in_memory(strand_fibre fibre, strand of)
{
    strand_fibre_info info = {.size = sizeof info};
    do {
        strand_sleep(STRAND_MS);
        strand_fibre_info_get(fibre, 0, &info);
    } while (info.active == strand_id(of));
    strand_time end = strand_in(200 * STRAND_MS);
    size_t left = times_in_memory();
    while (left && strand_now().ns < end.ns) {
        strand_sleep(10 * STRAND_MS);
        left = times_in_memory();
    }
    return left;
}

static size_t left_of_a_secret(size_t *held)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    strand other = test_spawn_on_fibre(scope, fibre, gives_way_often, NULL);
    strand knows = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), knows_a_secret, NULL, 0);
    test_yield_until(&holding, 1);
    while (*held < SECRET_WORDS) /* its frames may be moved while they are looked for */
        *held = times_in_memory();
    atomic_store(&holding, 2);
    strand_join(knows);
    size_t left = times_left_in_memory(fibre, knows);
    atomic_store(&holding, 3);
    strand_join(other);
    return left;
}

TEST_REAL_INSIDE(a_strand_that_wipes_leaves_nothing_of_its_frames_behind)
{
    size_t held = 0;
    atomic_store(&holding, 0);
    CHECK_EQ(left_of_a_secret(&held), 0);
    CHECK(held >= SECRET_WORDS); /* it would be found */
}

struct secrets {
    uint64_t words[2 * SECRET_WORDS];
};
typedef STRAND_CHAN(struct secrets) secrets;

static NOINLINE void tell(struct secrets *to)
{
    volatile uint64_t *words = to->words;
    for (size_t i = 0; i < sizeof to->words / sizeof *to->words; i++)
        words[i] = secret_coded ^ SECRET_KEY;
}

static void *sends_a_secret(void *arg)
{
    struct secrets value;
    tell(&value);
    STRAND_IGNORE(STRAND_SEND(*(const secrets *)arg, &value)); /* nobody receives it */
    return NULL;
}

static void *selects_with_a_secret(void *arg)
{
    struct secrets value;
    tell(&value);
    strand_case cases[] = {STRAND_ON_SEND(*(const secrets *)arg, &value)};
    strand_select(cases, 1, 0);
    return NULL;
}

static void *receives_a_secret(void *arg)
{
    struct secrets value;
    STRAND_IGNORE(STRAND_RECEIVE(*(const secrets *)arg, &value));
    return NULL;
}

/* Waits on the fibre, is copied out, and is cancelled. */
static size_t left_of_one_that(strand_fn *fn, bool told)
{
    size_t left;
    static secrets channel;
    struct secrets value;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    channel = STRAND_CHAN_OPEN(secrets, scope, 0);
    strand child = strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), fn, &channel, 0);
    test_spawn_on_fibre(scope, fibre, test_return, NULL);
    strand_sleep(5 * STRAND_MS);
    if (told) {
        tell(&value);
        STRAND_IGNORE(STRAND_SEND(channel, &value));
        __asm__ volatile("rep stosb" : : "D"(&value), "c"(sizeof value), "a"(0) : "memory");
    } else {
        strand_cancel(child, NULL);
    }
    strand_wait(child);
    left = times_left_in_memory(fibre, child);
    strand_scope_cancel(scope, NULL);
    return left;
}

TEST_REAL_INSIDE(values_that_a_strand_that_wipes_waits_with_are_not_left_behind)
{
    CHECK_EQ(left_of_one_that(sends_a_secret, false), 0);
    CHECK_EQ(left_of_one_that(selects_with_a_secret, false), 0);
    CHECK_EQ(left_of_one_that(receives_a_secret, true), 0);
}

TEST_REAL_INSIDE(copied_arguments_of_a_strand_that_wipes_are_not_left_behind)
{
    struct secrets value;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    tell(&value);
    strand child =
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), test_return, &value, sizeof value);
    __asm__ volatile("rep stosb" : : "D"(&value), "c"(sizeof value), "a"(0) : "memory");
    strand_join(child);
    CHECK_EQ(times_left_in_memory(fibre, child), 0);
}

enum { VECTORS = 8 };

static void *computes_in_vectors(void *arg)
{
    uint64_t secret = secret_coded ^ SECRET_KEY;
    __asm__ volatile("movq %0, %%xmm8\n\tmovq %0, %%xmm9\n\tmovq %0, %%xmm10\n\tmovq %0, %%xmm11\n\t"
                     "movq %0, %%xmm12\n\tmovq %0, %%xmm13\n\tmovq %0, %%xmm14\n\tmovq %0, %%xmm15"
                     :
                     : "r"(secret)
                     : "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    strand_yield();
    return arg;
}

static void *looks_into_vectors(void *arg)
{
    uint64_t there[VECTORS];
    __asm__ volatile("movq %%xmm8, 0(%0)\n\tmovq %%xmm9, 8(%0)\n\tmovq %%xmm10, 16(%0)\n\tmovq %%xmm11, 24(%0)\n\t"
                     "movq %%xmm12, 32(%0)\n\tmovq %%xmm13, 40(%0)\n\tmovq %%xmm14, 48(%0)\n\tmovq %%xmm15, 56(%0)"
                     :
                     : "r"(there)
                     : "memory");
    for (int i = 0; i < VECTORS; i++)
        *(int *)arg += (there[i] ^ SECRET_KEY) == secret_coded;
    return NULL;
}

TEST_REAL_INSIDE(what_a_strand_that_wipes_had_in_registers_is_not_seen_by_the_next)
{
    static int seen;
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, NULL);
    for (int i = 0; i < 10; i++) {
        strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), computes_in_vectors, NULL, 0);
        test_spawn_on_fibre(scope, fibre, looks_into_vectors, &seen);
        strand_scope_join(scope);
    }
    CHECK_EQ(seen, 0);
}

static char *lowest_secret;

static void *goes_to_the_lowest_page(void *arg)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    size_t below = here - ((here & ~(uintptr_t)(16 * 1024 - 1)) + 2048);
    volatile uint64_t *room = __builtin_alloca(below);
    room[0] = secret_coded ^ SECRET_KEY;
    lowest_secret = (char *)(uintptr_t)room;
    return arg;
}

static void *wipe_the_lowest_page(void *arg)
{
    STRAND_SCOPE(scope);
    strand_fibre fibre = strand_fibre_open(scope, STRAND_FIBRE_ATTR(.stack_size = 16 * 1024));
    strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = fibre, .wipe = true), goes_to_the_lowest_page, NULL, 0));
    strand_join(test_spawn_on_fibre(scope, fibre, test_return, NULL)); /* its thread has left the stack of the other */
    CHECK((*(volatile uint64_t *)(void *)lowest_secret ^ SECRET_KEY) != secret_coded);
    return arg;
}

static void say_nothing(const char *message, void *arg)
{
    (void)message, (void)arg;
}

/* Without guard pages, strands use the lowest page too. */
TEST_REAL(without_guards_the_lowest_page_of_a_strand_that_wipes_is_wiped_too)
{
    setenv("STRAND_GUARDS", "none", 1);
    strand_options options = test_options();
    options.on_log = say_nothing;
    strand_run(&options, wipe_the_lowest_page, NULL);
}
