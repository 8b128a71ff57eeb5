/*
 * What the files of traces share: how libunwind is reached, which frames are kept, what a suspended context is read
 * from. For trace.c and alike.c only.
 */
#ifndef ARCH_TRACE_H
#define ARCH_TRACE_H

#include "state.h"

#include <libunwind.h>

struct arch_tracer {
    __typeof__(&unw_backtrace) backtrace;
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
        unw_accessors_t *process; /* those of this process's own space */
        unw_addr_space_t process_space, space;
    } remote;
};

/* Frame by frame, from the inside. */
struct taken {
    void **ips;
    size_t max, count;
};

/* False: no more are wanted. Of the library's own frames in front none is kept. */
bool trace_take(struct taken *taken, void *ip);
/* How many of the frames remain without those that have led to the user's first one. */
size_t trace_without_entry(void **ips, size_t count);

/* A suspended context, and where its stack is read. */
struct remains {
    uintptr_t frame; /* where the context was saved */
    const char *image;
    uintptr_t image_base;
    size_t image_size;
    uintptr_t hidden;          /* [the image's end, hidden) is not read: it changes */
    const uint64_t *registers; /* not those of a saved context */
    uintptr_t readable;        /* a page that was found to be */
};

/* A word of it, as libunwind asks for one; arg is a struct remains. */
int trace_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *arg);

#endif
