/*
 * Unwinding by cached rules (src/arch/unwind_cached.c) and by libgcc run the same clean-ups in the same order, with the
 * same registers and stack. Random trees of calls are run both ways, and in a mixture, and what their clean-ups see is
 * compared.
 *
 * The library finds the tables of functions by dl_iterate_phdr. This program has one of its own, which can hide them:
 * then no rule can be read, and libgcc unwinds. (libgcc finds them by _dl_find_object, which glibc has since 2.35.)
 */
#define SUITE unwinding
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <unwind.h>

/* ---- what the library sees ----------------------------------------------------------------------------------------
 */

static _Atomic bool hidden;       /* the tables */
static _Atomic unsigned unloaded; /* how many libraries more than there were */

/* ASan calls these before it has set itself up. TSan has a dl_iterate_phdr of its own, so nothing is hidden there. */
#define NOT_INSTRUMENTED __attribute__((no_sanitize("address")))

#if !TEST_TSAN
struct real {
    int (*callback)(struct dl_phdr_info *info, size_t size, void *arg);
    void *arg;
};

static NOT_INSTRUMENTED int show(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct real *real = arg;
    struct dl_phdr_info shown = *info;
    shown.dlpi_subs += unloaded;
    if (hidden)
        shown.dlpi_phnum = 0;
    return real->callback(&shown, size, real->arg);
}

NOT_INSTRUMENTED int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *info, size_t size, void *arg), void *arg)
{
    static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return real(show, &(struct real){callback, arg});
}
#endif

static _Atomic unsigned long forced; /* how often libgcc unwound */

NOT_INSTRUMENTED _Unwind_Reason_Code _Unwind_ForcedUnwind(struct _Unwind_Exception *exception, _Unwind_Stop_Fn stop,
                                                          void *arg)
{
    static __typeof__(&_Unwind_ForcedUnwind) real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "_Unwind_ForcedUnwind");
    forced++;
    return real(exception, stop, arg);
}

/* Forget all rules, and hide the tables or not. */
static void show_tables(bool shown)
{
    unloaded++;
    hidden = !shown;
}

/* ---- random trees of calls ----------------------------------------------------------------------------------------
 */

static const strand_kind ODD = STRAND_KIND("odd", &STRAND_ERROR);
static const strand_kind EVEN = STRAND_KIND("even", &STRAND_ERROR);

static struct {
    uint64_t random, seen;
    unsigned cleaned, work;
    uint64_t flips; /* the random numbers by which the tables are hidden meanwhile; 0: they are not */
} tree;

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static unsigned pick(unsigned count)
{
    return (unsigned)((next_random(&tree.random) >> 20) % count);
}

static NOINLINE void note(uint64_t what)
{
    tree.seen = (tree.seen ^ what) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    tree.seen ^= tree.seen >> 29;
}

struct call {
    int depth;
    uint64_t a;
};

struct guard {
    uint64_t id, value;
};

static uint64_t other_level(int depth, uint64_t a);

/* Some throw and catch, too. */
static NOINLINE void closed(uint64_t id, uint64_t value)
{
    note(id * 31 + value);
    tree.cleaned++;
    if (tree.flips && next_random(&tree.flips) >> 62 == 0)
        hidden = !hidden;
    if (tree.work && !pick(6)) {
        tree.work--;
        STRAND_TRY {
            note(other_level(2, value));
        }
        STRAND_CATCH(&STRAND_ERROR, e) {
            note((uint64_t)strand_exception_code(e));
        }
        STRAND_END
    }
}

static void close_guard(struct guard *g)
{
    closed(g->id, g->value);
}

static inline __attribute__((always_inline)) void close_inline(struct guard *g)
{
    closed(g->id, g->value);
}

struct buffer {
    unsigned char *bytes;
    size_t size;
    unsigned char value;
};

static void check_buffer(struct buffer *buffer)
{
    for (size_t i = 0; i < buffer->size; i++)
        CHECK_EQ(buffer->bytes[i], buffer->value);
    closed(20, buffer->size);
}

struct aligned_guard {
    _Alignas(64) uint64_t value;
};

static void check_aligned(struct aligned_guard *g)
{
    CHECK_EQ((uintptr_t)g % 64, 0);
    closed(21, g->value);
}

#define FRAMES(name) usual_##name
#include "unwinding_frames.h"
#undef FRAMES

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O0")
#define FRAMES(name) plain_##name
#include "unwinding_frames.h"
#undef FRAMES
#pragma GCC optimize("Os", "no-omit-frame-pointer")
#define FRAMES(name) small_##name
#include "unwinding_frames.h"
#undef FRAMES
#pragma GCC optimize("O3", "omit-frame-pointer")
#define FRAMES(name) fast_##name
#include "unwinding_frames.h"
#undef FRAMES
#pragma GCC pop_options

static uint64_t other_level(int depth, uint64_t a)
{
    static uint64_t (*const levels[])(int, uint64_t) = {usual_go, plain_go, small_go, fast_go};
    return levels[pick(4)](depth, a);
}
#else
static uint64_t other_level(int depth, uint64_t a)
{
    return usual_go(depth, a);
}
#endif

/* Returns what the clean-ups of a tree saw. */
static uint64_t run_tree(uint64_t seed, uint64_t flips)
{
    tree.random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    tree.seen = tree.cleaned = 0;
    tree.work = 4;
    tree.flips = flips;
    STRAND_TRY {
        note(other_level(1 + (int)(seed % 9), seed));
    }
    STRAND_CATCH(&STRAND_ERROR, e) {
        note((uint64_t)strand_exception_code(e));
    }
    STRAND_END
    return tree.seen;
}

/* contract 9.1, 9.9 */
TEST_INSIDE(both_ways_of_unwinding_run_the_same_clean_ups_in_the_same_order)
{
    enum { FEW = 100 };
    unsigned long cleaned = 0, forced_hidden = 0, forced_shown = 0;
    for (long first = 0; first < test_scale(20000); first += FEW) {
        uint64_t seen[FEW], seed = (uint64_t)(test_seed() * 1000000 + first);
        show_tables(false);
        forced = 0;
        for (unsigned i = 0; i < FEW; i++)
            seen[i] = run_tree(seed + i, 0);
        forced_hidden += forced;
        show_tables(true);
        forced = 0;
        for (unsigned i = 0; i < FEW; i++)
            CHECK_EQ(run_tree(seed + i, 0), seen[i]);
        forced_shown += forced;
        for (unsigned i = 0; i < FEW; i++) {
            CHECK_EQ(run_tree(seed + i, seed + i + 1), seen[i]);
            cleaned += tree.cleaned;
        }
        show_tables(true);
    }
    CHECK(cleaned > 0);
    CHECK(TEST_TSAN || TEST_ASAN || forced_shown < forced_hidden); /* ASan realigns the stacks of most frames */
}

/* ---- many threads ----------------------------------------------------------------------------------------------- */

struct hops {
    uint64_t random;
    int cleaned;
};

static void count_hop(struct hops **hops)
{
    (*hops)->cleaned++;
}

static void hop(struct hops *hops, int left);

/* More return addresses than there are rules, in frames of eight sizes. */
#define CALL(n)                                                                                                        \
    case n:                                                                                                            \
        hop(hops, left - 1);                                                                                           \
        __asm__ volatile("" ::"i"(n)); /* or the compiler would merge the calls */                                     \
        break;
#define CALL4(n) CALL(n) CALL(n + 1) CALL(n + 2) CALL(n + 3)
#define CALL16(n) CALL4(n) CALL4(n + 4) CALL4(n + 8) CALL4(n + 12)
#define CALL64(n) CALL16(n) CALL16(n + 16) CALL16(n + 32) CALL16(n + 48)
#define CALL256(n) CALL64(n) CALL64(n + 64) CALL64(n + 128) CALL64(n + 192)
#define HOP(number)                                                                                                    \
    static NOINLINE void hop_##number(struct hops *hops, int left, unsigned call)                                      \
    {                                                                                                                  \
        struct hops *counted __attribute__((cleanup(count_hop), unused)) = hops;                                       \
        volatile char room[40 * (number) + 8] __attribute__((unused));                                                 \
        room[0] = 1;                                                                                                   \
        switch (call) {                                                                                                \
            CALL256(0)                                                                                                 \
            CALL256(256)                                                                                               \
        }                                                                                                              \
        room[1] = 1;                                                                                                   \
    }
HOP(0)
HOP(1)
HOP(2)
HOP(3)
HOP(4)
HOP(5)
HOP(6)
HOP(7)

static void hop(struct hops *hops, int left)
{
    static void (*const hop_on[])(struct hops *, int, unsigned) = {hop_0, hop_1, hop_2, hop_3,
                                                                   hop_4, hop_5, hop_6, hop_7};
    uint64_t random = next_random(&hops->random);
    if (!left)
        strand_throw(&EVEN, "far enough");
    hop_on[random >> 61](hops, left, random >> 40 & 511);
}

static _Atomic bool over;

static void *hop_often(void *arg)
{
    enum { HOPS = 20 };
    struct hops hops = {(uint64_t)(uintptr_t)arg, 0};
    for (long i = 0; i < test_scale(5000); i++) {
        hops.cleaned = 0;
        STRAND_TRY {
            hop(&hops, HOPS);
        }
        STRAND_CATCH(&EVEN, e) {
            (void)e;
        }
        STRAND_END
        CHECK_EQ(hops.cleaned, HOPS);
        if (i % 50 == 49)
            strand_yield();
    }
    return NULL;
}

/* So the others write the same rules again and again, while others read them. */
static void *forget_rules(void *arg)
{
    for (; !over; strand_yield())
        unloaded++;
    return arg;
}

/* contract 9.9 */
TEST_RACE(rules_are_read_while_other_threads_write_them)
{
    enum { STRANDS = 3 };
    strand hoppers[STRANDS];
    unsigned before = unloaded;
    over = false;
    STRAND_SCOPE(scope);
    strand forgetter = strand_spawn(scope, forget_rules, NULL);
    while (unloaded == before)
        strand_yield();
    for (int i = 0; i < STRANDS; i++)
        hoppers[i] = strand_spawn(scope, hop_often, TEST_PTR(i + 1));
    for (int i = 0; i < STRANDS; i++)
        strand_join(hoppers[i]);
    over = true;
    strand_join(forgetter);
}
