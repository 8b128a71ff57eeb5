/* expect: the list names every operation of the table */
/* flags: -fexceptions */
/* compiler: both */
/* */
#include "strand/limit.h"

struct kv;
struct kv_ops {
    int (*get)(struct kv *self, int key);
    void (*flush)(struct kv *self);
    int (*added_later)(struct kv *self);
};
struct kv {
    const struct kv_ops *ops;
};

#define KV_OPERATIONS(value, nothing)                                                                                  \
    value(kv, int, get, (struct kv * self, int key), (inner, key)) nothing(kv, flush, (struct kv * self), (inner))
STRAND_DELEGATE(kv, KV_OPERATIONS)
