/*
 * Unwinding by cached rules: a throw follows its frames without reading their tables again. A rule (unwind_rule.h) is
 * read when a return address is first met. The unwinding ends as libgcc's does: a try block's clean-up jumps
 * (unwind.c). The table has 2048 slots; a new rule takes the place of one of two.
 *
 * PARTIES   throwing strands, on any thread; threads that load and unload libraries.
 * STATE     a table of slots. A slot has a sequence number, a return address, a generation and a rule. The generation
 *           is the loader's count of unloaded libraries, which a throw reads once, at its begin. A throw uses rules
 *           of its own generation only.
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
 *           and another flight of that generation has the same code on its stack. [UC3] while the process forks, no
 *           other thread is inside dl_iterate_phdr: a child would find the loader's lock taken (loader.c).
 * ORDERING  [UC1] a writer makes the number odd before it writes the slot (release fence), and even afterwards
 *           (release). A reader reads the number (acquire), the slot, and the number again (acquire fence between).
 * PROGRESS  a throw waits for nothing but the loader's own lock, for some instructions; while the process forks it
 *           leaves its frames by the forced unwind [UC3]. A thread that finds the table's lock taken uses its
 *           rule once and does not keep it. In the child of a fork that lock is free; a slot that a thread of the
 *           parent was writing stays odd until it is written again.
 * NOT DONE  asking the loader for each frame (_dl_find_object): another library may be at the same address, with all
 *           of its tables at the old places. A lock for readers; tables per thread.
 * TESTED BY tests/spec/unwinding.c, tests/unit/arch_unwind_rule.c, tests/programs/unwind_plugin.c
 */
#include "state.h"

#include <link.h>
#include <string.h>
#include <unwind.h>

enum { WORDS = sizeof(struct arch_rule) / sizeof(uint64_t) };
_Static_assert(sizeof(struct arch_rule) == 32 && sizeof(struct arch_frame) == 64, "the assembler knows them");

static int take_generation(struct dl_phdr_info *info, size_t size, void *generation)
{
    (void)size;
    *(uint32_t *)generation = (uint32_t)info->dlpi_subs;
    return 1;
}

/* A flight without it uses no rules. */
#define NO_GENERATION UINT32_MAX

static uint32_t read_generation(void)
{
    uint32_t generation = NO_GENERATION;
    if (UNLIKELY(!arch_loader_enter()))
        return NO_GENERATION;
    (void)dl_iterate_phdr(take_generation, &generation); /* [UC2] */
    arch_loader_leave();
    return generation;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static struct arch_rule_slot *slot_of(uintptr_t ip)
{
    return &arch_state.rules.slots[ip * UINT64_C(0x9E3779B97F4A7C15) >> (64 - ARCH_RULE_BITS)];
}

/* The other slot that the rule may be in. */
static struct arch_rule_slot *neighbour_of(const struct arch_rule_slot *slot)
{
    return &arch_state.rules.slots[(slot - arch_state.rules.slots) ^ 1];
}

static inline bool read_slot(const struct arch_rule_slot *slot, uintptr_t ip, uint32_t generation,
                             struct arch_rule *rule)
{
    uint64_t words[WORDS];
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire); /* [UC1] */
    if (atomic_load_explicit(&slot->ip, memory_order_relaxed) != ip ||
        atomic_load_explicit(&slot->generation, memory_order_relaxed) != generation)
        return false;
    for (int i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* [UC1] */
    memcpy(rule, words, sizeof *rule);
    return !(sequence & 1) && atomic_load_explicit(&slot->sequence, memory_order_relaxed) == sequence;
}

static void write_slot(struct arch_rule_slot *slot, uintptr_t ip, uint32_t generation, const struct arch_rule *rule)
{
    uint64_t words[WORDS];
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed) | 1; /* odd: cut off by a fork */
    memcpy(words, rule, sizeof words);
    atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* [UC1] */
    atomic_store_explicit(&slot->ip, ip, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, generation, memory_order_relaxed);
    for (int i = 0; i < WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release); /* [UC1] */
}

static COLD NOINLINE void learn(uintptr_t ip, uint32_t generation, struct arch_rule *rule)
{
    struct arch_rules *rules = &arch_state.rules;
    struct arch_rule_slot *slot = slot_of(ip);
    rule->kind = ARCH_RULE_NONE;
    if (!arch_loader_enter())
        return;
    *rule = arch_rule_read(ip);
    arch_loader_leave();
    if (atomic_flag_test_and_set_explicit(&rules->writing, memory_order_acquire)) /* [LK1] */
        return;
    if (atomic_load_explicit(&slot->ip, memory_order_relaxed) &&
        atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation)
        slot = neighbour_of(slot);
    write_slot(slot, ip, generation, rule);
    atomic_flag_clear_explicit(&rules->writing, memory_order_release); /* [LK1] */
}

static inline void find(uintptr_t ip, uint32_t generation, struct arch_rule *rule)
{
    const struct arch_rule_slot *slot = slot_of(ip);
    if (LIKELY(read_slot(slot, ip, generation, rule)) || read_slot(neighbour_of(slot), ip, generation, rule))
        return;
    learn(ip, generation, rule);
}

void arch_unwind_after_fork(void)
{
    atomic_flag_clear_explicit(&arch_state.rules.writing, memory_order_relaxed);
}

/* The first calls of a process bind the loader's functions, which takes much stack: not on a strand's. */
void arch_unwind_warm(void)
{
    struct arch_rule rule;
    find((uintptr_t)__builtin_return_address(0), read_generation(), &rule);
}

/* ---- following frames ------------------------------------------------------------------------------------------- */

static inline uint64_t load(uint64_t address)
{
    return *(const uint64_t *)address; /* NOLINT: an address in a stack */
}

/* Goes on from the frame. Returns if it can't follow: then the forced unwind goes on from there. */
static void follow(struct arch_frame *frame, struct _Unwind_Exception *exception, uint32_t generation)
{
    struct arch_rule rule;
    if (UNLIKELY(generation == NO_GENERATION))
        return;
    for (;;) {
        find(frame->ip, generation, &rule);
        if (UNLIKELY(rule.kind == ARCH_RULE_NONE))
            return;
        if (rule.kind == ARCH_RULE_LAND) {
            frame->sp += rule.pushed;
            arch_unwind_land_(frame, exception, rule.pad);
        }
        uint64_t cfa = (rule.cfa_is_rbp ? frame->saved[ARCH_RULE_RBP] : frame->sp) + (uint64_t)(int64_t)rule.cfa_offset;
        for (int i = 0; i < ARCH_RULE_SAVED; i++)
            if (rule.saved[i])
                frame->saved[i] = load(cfa + (uint64_t)(int64_t)rule.saved[i]);
        frame->ip = load(cfa - 8);
        frame->sp = cfa;
    }
}

void arch_unwind_begin_(struct arch_flight *flight, struct arch_frame *frame)
{
    arch_san_throw();
    if (flight->thrown)
        return;
    uint32_t generation = read_generation();
    follow(frame, arch_flight_exception_(flight, generation), generation);
}

void arch_unwind_resume_(struct _Unwind_Exception *exception, struct arch_frame *frame)
{
    follow(frame, exception, arch_flight_generation_(exception));
}
