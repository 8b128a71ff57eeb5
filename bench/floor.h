/*
 * The raw context switch of the packaged Boost.Context, for the floor programs: what no runtime on top can go below.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stddef.h>

struct floor_transfer {
    void *from; /* the context that jumped here */
    void *data;
};
struct floor_transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *top, size_t size, void (*entry)(struct floor_transfer));

#endif
