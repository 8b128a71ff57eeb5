/*
 * What the files of traces share: access to libunwind, selection of frames, reading of a suspended context. For trace.c
 * and alike.c only.
 */
#ifndef ARCH_TRACE_H
#define ARCH_TRACE_H

#include "state.h"

#include <libunwind.h>

struct arch_tracer {
    __typeof__(&unw_backtrace) backtrace;
    size_t locals_size; /* of the thread-local variables of libunwind.so */
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

/* Add a frame. Returns false if no more are wanted. Leaves out the library's own frames in front. */
bool trace_take(struct taken *taken, void *ip);
/* How many of the frames remain without those that have led to the user's first one. */
size_t trace_without_entry(void **ips, size_t count);

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
