/*
 * Unwinding and traces by cached rules: a throw, and the trace that it takes first, follow their frames without reading
 * tables again. A rule (unwind_rule.h) is read when a return address is first met. The unwinding ends as libgcc's does:
 * a try block's clean-up jumps (unwind.c). The table has 2048 slots; a new rule takes the place of one of two.
 *
 * PARTIES   strands that throw, on any thread; threads that take traces; threads that load and unload libraries.
 * STATE     a table of slots. A slot has a sequence number, a return address, a generation and a rule. The generation
 *           is the loader's count of unloaded libraries, plus 1. A throw reads it once, at its begin: for its trace, if
 *           it takes one. It uses rules of its own generation only.
 * PROTOCOL  a throw follows frames up to the first one that has a clean-up, and jumps to its landing pad, as libgcc
 *           does. The landing pad ends in a call of _Unwind_Resume. In C files that include strand.h that is the
 *           library's strand_resume_, which continues from that frame. Other files call libgcc's function, which
 *           continues by the forced unwind: the exception carries its stop function. A frame without a rule is left
 *           by the forced unwind, too, up to the next landing pad that ends in strand_resume_. So all ways run the
 *           same clean-ups in the same order, and each can take over from another at every landing pad. Exceptions
 *           that are C++ exceptions as well are always thrown by the C++ runtime's unwinder.
 * OWNERSHIP the thread that holds the table's lock writes; the sequence number of the slot is odd meanwhile. Other
 *           threads read at any time, and drop what they read if the number was odd or has changed.
 * INVARIANTS [UC2] a rule that a throw uses describes the code that is on its stack. All code on a strand's stack is
 *           loaded when the throw begins, and stays loaded until its frame is left. So a rule that was read after the
 *           begin holds for the whole flight, and the generation excludes older ones: code can only have changed
 *           since if a library was unloaded. A clean-up may unload libraries, but not those of the frames above it. A
 *           flight that began before an unloading may write a rule of its old generation. Later throws do not use it,
 *           and another flight of that generation has the same code on its stack.
 * ORDERING  [UC1] a writer makes the number odd before it writes the slot (release fence), and even afterwards
 *           (release). A reader reads the number (acquire), the slot, and the number again (acquire fence between).
 * PROGRESS  a throw waits for nothing but the loader's own lock, for some instructions; while the process forks it
 *           leaves its frames by the forced unwind, and libgcc takes its trace (loader.c). A thread that finds the
 *           table's lock taken uses its rule once and does not keep it. In the child of a fork that lock is free; a
 *           slot that a thread of the parent was writing stays odd until it is written again.
 * NOT DONE  asking the loader for each frame (_dl_find_object): another library may be at the same address, with all
 *           of its tables at the old places. A lock for readers; tables per thread.
 * TESTED BY tests/spec/unwinding.c, tests/unit/arch_unwind_rule.c, tests/unit/arch_trace.c,
 *           tests/programs/unwind_plugin.c
 */
#include "trace.h"

#include <link.h>
#include <string.h>
#include <unwind.h>

/* A struct arch_rule in the words that registers hold. */
struct rule_words {
    uint64_t pad, frame, saved[2];
};
_Static_assert(sizeof(struct arch_rule) == sizeof(struct rule_words) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&
                   offsetof(struct arch_rule, cfa_offset) == 8 && offsetof(struct arch_rule, pushed) == 12 &&
                   offsetof(struct arch_rule, type) == 14 && offsetof(struct arch_rule, cfa_is_rbp) == 15 &&
                   offsetof(struct arch_rule, saved) == 16,
               "as the functions below have it");

static inline enum arch_rule_type type_of(const struct rule_words *rule)
{
    return (enum arch_rule_type)(uint8_t)(rule->frame >> 48);
}

static inline uint64_t pushed_of(const struct rule_words *rule)
{
    return (uint16_t)(rule->frame >> 32);
}

static inline uint64_t cfa_of(const struct rule_words *rule, uint64_t rbp, uint64_t sp)
{
    return (rule->frame >> 56 ? rbp : sp) + (uint64_t)(int64_t)(int32_t)rule->frame;
}

/* Where a register was saved, relative to the CFA. */
static inline uint64_t saved_of(const struct rule_words *rule, int reg)
{
    return (uint64_t)(int64_t)(int16_t)(rule->saved[reg / 4] >> reg % 4 * 16);
}

/* The generation of the loaded libraries. 0: not known, and a flight without it uses no rules. */
static int take_generation(struct dl_phdr_info *info, size_t size, void *generation)
{
    (void)size;
    *(uint32_t *)generation = (uint32_t)info->dlpi_subs + 1;
    return 1;
}

static uint32_t read_generation(void)
{
    uint32_t generation = 0;
    if (UNLIKELY(!arch_loader_enter()))
        return 0;
    (void)dl_iterate_phdr(take_generation, &generation); /* [UC2] */
    arch_loader_leave();
    return generation;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static inline struct arch_rule_slot *slot_of(uintptr_t ip)
{
    return &arch_state.rules.slots[ip * UINT64_C(0x9E3779B97F4A7C15) >> (64 - ARCH_RULE_BITS)];
}

/* The other slot that the rule may be in. */
static struct arch_rule_slot *neighbour_of(const struct arch_rule_slot *slot)
{
    return &arch_state.rules.slots[(slot - arch_state.rules.slots) ^ 1];
}

static inline uint64_t word_of(const struct arch_rule_slot *slot, int word)
{
    return atomic_load_explicit(&slot->words[word], memory_order_relaxed);
}

/* What a trace needs is read in any case, the rest if `all`. */
static inline __attribute__((always_inline)) bool read_slot(const struct arch_rule_slot *slot, uintptr_t ip,
                                                            uint32_t generation, struct rule_words *rule, bool all)
{
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire); /* [UC1] */
    if (atomic_load_explicit(&slot->ip, memory_order_relaxed) != ip ||
        atomic_load_explicit(&slot->generation, memory_order_relaxed) != generation)
        return false;
    rule->frame = word_of(slot, 1);
    rule->saved[0] = word_of(slot, 2);
    if (all) {
        rule->pad = word_of(slot, 0);
        rule->saved[1] = word_of(slot, 3);
    }
    atomic_thread_fence(memory_order_acquire); /* [UC1] */
    return !(sequence & 1) && atomic_load_explicit(&slot->sequence, memory_order_relaxed) == sequence;
}

static void write_slot(struct arch_rule_slot *slot, uintptr_t ip, uint32_t generation, const struct rule_words *rule)
{
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed) | 1; /* odd: cut off by a fork */
    atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* [UC1] */
    atomic_store_explicit(&slot->ip, ip, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, generation, memory_order_relaxed);
    atomic_store_explicit(&slot->words[0], rule->pad, memory_order_relaxed);
    atomic_store_explicit(&slot->words[1], rule->frame, memory_order_relaxed);
    atomic_store_explicit(&slot->words[2], rule->saved[0], memory_order_relaxed);
    atomic_store_explicit(&slot->words[3], rule->saved[1], memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release); /* [UC1] */
}

static void keep_rule(uintptr_t ip, uint32_t generation, const struct rule_words *rule)
{
    struct arch_rules *rules = &arch_state.rules;
    struct arch_rule_slot *slot = slot_of(ip);
    if (atomic_flag_test_and_set_explicit(&rules->writing, memory_order_acquire)) /* [LK1] */
        return;
    if (atomic_load_explicit(&slot->ip, memory_order_relaxed) &&
        atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation)
        slot = neighbour_of(slot);
    write_slot(slot, ip, generation, rule);
    atomic_flag_clear_explicit(&rules->writing, memory_order_release); /* [LK1] */
}

/* The rule is not in its first slot. */
static COLD NOINLINE struct rule_words find_slowly(uintptr_t ip, uint32_t generation)
{
    struct rule_words words = {0}; /* ARCH_RULE_NONE */
    if (read_slot(neighbour_of(slot_of(ip)), ip, generation, &words, true))
        return words;
    if (!arch_loader_enter())
        return words;
    struct arch_rule rule = arch_rule_read(ip);
    arch_loader_leave();
    memcpy(&words, &rule, sizeof words);
    keep_rule(ip, generation, &words);
    return words;
}

static inline __attribute__((always_inline)) struct rule_words find(uintptr_t ip, uint32_t generation, bool all)
{
    struct rule_words rule;
    return LIKELY(read_slot(slot_of(ip), ip, generation, &rule, all)) ? rule : find_slowly(ip, generation);
}

void arch_unwind_after_fork(void)
{
    atomic_flag_clear_explicit(&arch_state.rules.writing, memory_order_relaxed);
}

/* The first calls of a process bind the loader's functions, which takes much stack: not on a strand's. */
void arch_unwind_warm(void)
{
    (void)find_slowly((uintptr_t)__builtin_return_address(0), read_generation());
}

/* ---- following frames ------------------------------------------------------------------------------------------- */

static inline uint64_t load(uint64_t address)
{
    return *(const uint64_t *)address; /* NOLINT: an address in a stack */
}

/* Goes on from the frame. Returns if it can't follow: then the forced unwind goes on from there. */
static void follow(struct arch_frame *frame, struct _Unwind_Exception *exception, uint32_t generation)
{
    if (UNLIKELY(!generation))
        return;
    for (;;) {
        struct rule_words rule = find(frame->ip, generation, true);
        if (UNLIKELY(type_of(&rule) < ARCH_RULE_FOLLOW))
            return;
        if (type_of(&rule) == ARCH_RULE_LAND) {
            frame->sp += pushed_of(&rule);
            arch_unwind_land_(frame, exception, rule.pad);
        }
        uint64_t cfa = cfa_of(&rule, frame->saved[ARCH_RULE_RBP], frame->sp);
#pragma GCC unroll 6
        for (int i = 0; i < ARCH_RULE_SAVED; i++)
            if (saved_of(&rule, i))
                frame->saved[i] = load(cfa + saved_of(&rule, i));
        frame->ip = load(cfa - 8);
        frame->sp = cfa;
    }
}

void arch_unwind_begin_(struct arch_flight *flight, struct arch_frame *frame)
{
    arch_san_throw();
    if (flight->thrown)
        return;
    uint32_t generation = (uint32_t)flight->unwind_exception[ARCH_FLIGHT_GENERATION];
    if (!generation)
        generation = read_generation();
    follow(frame, arch_flight_exception_(flight, generation), generation);
}

void arch_unwind_resume_(struct _Unwind_Exception *exception, struct arch_frame *frame)
{
    follow(frame, exception, arch_flight_generation_(exception));
}

/* ---- traces ----------------------------------------------------------------------------------------------------- */

/* A trace needs the frame pointer and the stack pointer only. */
uint32_t arch_unwind_trace(struct taken *taken)
{
    enum { FRAME_MOST = 16 << 20 }; /* more is a wrong table, which must not make this read anywhere */
    struct arch_frame frame;
    uint32_t generation = read_generation();
    if (UNLIKELY(!generation))
        return 0;
    arch_frame_here_(&frame);
    uint64_t rbp = frame.saved[ARCH_RULE_RBP], sp = frame.sp, ip = frame.ip;
    while (trace_take(taken, (void *)ip)) { /* NOLINT: an address of code */
        struct rule_words rule = find(ip, generation, false);
        if (UNLIKELY(type_of(&rule) < ARCH_RULE_TRACE))
            return type_of(&rule) == ARCH_RULE_END ? generation : 0;
        uint64_t cfa = cfa_of(&rule, rbp, sp);
        if (UNLIKELY(cfa - sp - 1 >= FRAME_MOST || cfa % 8))
            return 0;
        if (saved_of(&rule, ARCH_RULE_RBP))
            rbp = load(cfa + saved_of(&rule, ARCH_RULE_RBP));
        ip = load(cfa - 8);
        sp = cfa;
    }
    return generation;
}
