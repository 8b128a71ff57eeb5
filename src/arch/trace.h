/*
 * What the files of traces share: access to libunwind, selection of frames, reading of a suspended context. For
 * trace.c, alike.c and unwind_cached.c only.
 */
#ifndef ARCH_TRACE_H
#define ARCH_TRACE_H

#include "state.h"

#include <libunwind.h>

struct arch_tracer {
    struct {
        __typeof__(&unw_init_local2) init;
        __typeof__(&unw_step) step;
        __typeof__(&unw_get_reg) reg;
        __typeof__(&unw_get_proc_name) name;
    } local;
    struct {
        __typeof__(&unw_init_remote) init;
        __typeof__(&unw_step) step;
        __typeof__(&unw_get_reg) reg;
        __typeof__(&unw_get_save_loc) saved;
        unw_accessors_t *process; /* accessors for this process's own memory */
        unw_addr_space_t process_space, space;
    } remote;
};

/* Frame by frame, from the innermost. */
struct taken {
    void **ips;
    size_t max, count;
};

/* The section that contains all of the library's code; the linker defines its ends. */
extern const char trace_own_start[] __asm__("__start_strand_text") HIDDEN;
extern const char trace_own_stop[] __asm__("__stop_strand_text") HIDDEN;

/* A return address may be the end of its function, if the last instruction is a call that does not return. */
static inline bool trace_is_own(void *ip)
{
    return (uintptr_t)ip - 1 - (uintptr_t)trace_own_start < (uintptr_t)trace_own_stop - (uintptr_t)trace_own_start;
}

/* Add a frame. Returns false if no more are wanted. Leaves out the library's own frames in front. */
static inline bool trace_take(struct taken *taken, void *ip)
{
    if (!ip || taken->count == taken->max)
        return false;
    if (taken->count > 0 || !trace_is_own(ip))
        taken->ips[taken->count++] = ip;
    return true;
}
/* How many of the frames remain without those that have led to the user's first one. */
size_t trace_without_entry(void **ips, size_t count);

/* unwind_cached.c: takes the frames of the caller and of its callers. Returns the generation of the loaded libraries; 0
 * if it can't find all frames, and what it has taken is of no use then. */
uint32_t arch_unwind_trace(struct taken *taken);

/* A suspended context, and where its stack is read. */
struct remains {
    uintptr_t frame; /* where the context was saved */
    const char *saved;
    uintptr_t saved_base;
    size_t saved_size;
    uintptr_t hidden;          /* [the end of `saved`, hidden) is not read: it changes */
    const uint64_t *registers; /* if they are not those of a saved context */
    uintptr_t readable;        /* a page known to be readable */
};

/* A word of the context, as libunwind asks for one; arg is a struct remains. */
int trace_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *arg);

#endif
