/*
 * The stack census: for each spawn site, the most stack that its strands have used. Kept in a table of fixed size,
 * which threads fill without a lock: a site takes an entry by compare-and-swap, and numbers only grow.
 */

#include "debug_layer.h"

#include <stdio.h>

enum { ENTRIES = 4096 };    /* further sites are counted together */
#define ROOT ((uintptr_t)1) /* stands for the root, which has no site */

struct spawned {
    _Atomic uintptr_t site; /* return address of the spawn; 0: free */
    _Atomic uintptr_t fn;   /* the function of one of them */
    _Atomic uint64_t used, suspended, strands;
    _Atomic uint64_t stack; /* the largest stack of any of them */
};

struct census {
    struct spawned entries[ENTRIES + 1]; /* the last entry is for all further sites */
};

int census_open(struct runtime *runtime)
{
    void *memory;
    int error = arch_map(sizeof(struct census), &memory);
    if (!error)
        debug_run_of(runtime)->census = memory;
    return error;
}

static struct spawned *entry_of(struct census *census, uintptr_t site)
{
    uint32_t at = (uint32_t)((site * UINT64_C(0x9E3779B97F4A7C15)) >> 52) % ENTRIES;
    for (uint32_t tried = 0; tried < ENTRIES; tried++, at = (at + 1) % ENTRIES) {
        struct spawned *entry = &census->entries[at];
        uintptr_t there = atomic_load_explicit(&entry->site, memory_order_relaxed);
        if (there == site || (!there && atomic_compare_exchange_strong_explicit(
                                            &entry->site, &there, site, memory_order_relaxed, memory_order_relaxed)))
            return entry;
        if (there == site) /* another thread has just taken it for the same site */
            return entry;
    }
    return &census->entries[ENTRIES];
}

static void raise_to(_Atomic uint64_t *most, uint64_t value)
{
    uint64_t now = atomic_load_explicit(most, memory_order_relaxed);
    while (value > now &&
           !atomic_compare_exchange_weak_explicit(most, &now, value, memory_order_relaxed, memory_order_relaxed))
        continue;
}

void census_record(struct thread *thread, struct member *member, size_t used, enum census_what what)
{
    struct cb *c = cb_of(member);
    struct spawned *entry = entry_of(debug_run_of(runtime_of(thread))->census, c->site ? (uintptr_t)c->site : ROOT);
    raise_to(what == CENSUS_SUSPENDS ? &entry->suspended : &entry->used, used);
    if (what != CENSUS_ENDS)
        return;
    atomic_store_explicit(&entry->fn, (uintptr_t)c->fn, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->strands, 1, memory_order_relaxed);
    raise_to(&entry->stack, member->fibre->stack_size);
}

/* ---- printing ----------------------------------------------------------------------------------------------- */

static unsigned long long number(const _Atomic uint64_t *of)
{
    return atomic_load_explicit(of, memory_order_relaxed);
}

static void say_entry(const struct spawned *entry, bool others)
{
    char function[512], spawner[512], where[200] = "the root"; /* a C++ name must not be cut before it is demangled */
    uintptr_t offset, site = entry->site;
    (void)arch_symbol((char *)entry->fn + 1, function, sizeof function, &offset);
    arch_demangle(function, sizeof function);
    if (site > ROOT) {
        (void)arch_symbol((void *)site, spawner, sizeof spawner, &offset);
        arch_demangle(spawner, sizeof spawner);
        snprintf(where, sizeof where, "spawned in %.160s+0x%zx", spawner, (size_t)offset);
    }
    print_text(2, "%10llu %10llu %10llu %10llu  %.160s, %s\n", number(&entry->used), number(&entry->suspended),
               number(&entry->stack), number(&entry->strands), function, others ? "and other sites" : where);
}

/* Returns the entry that has used most and was not printed yet, or NULL. */
static struct spawned *deepest(struct census *census)
{
    struct spawned *deepest = NULL;
    for (int i = 0; i <= ENTRIES; i++) {
        struct spawned *entry = &census->entries[i];
        if (number(&entry->strands) && (!deepest || number(&entry->used) > number(&deepest->used)))
            deepest = entry;
    }
    return deepest;
}

void census_close(struct runtime *runtime)
{
    struct census *census = debug_run_of(runtime)->census;
    struct spawned *entry;
    print_text(2, "libstrand: bytes of stack at most, by spawn site\n");
    print_text(2, "%10s %10s %10s %10s\n", "used", "suspended", "stack", "strands");
    while ((entry = deepest(census))) {
        say_entry(entry, entry == &census->entries[ENTRIES]);
        entry->strands = 0;
    }
    arch_unmap(census, sizeof *census);
    debug_run_of(runtime)->census = NULL;
}
