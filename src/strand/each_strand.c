/*
 * All strands of a run, found in its slabs. See each_strand.h.
 */
#include "each_strand.h"

/* Whether the record is a strand. Sets its id. */
static bool is_live(struct cb *c, uint64_t *id)
{
    uint64_t word = atomic_load_explicit(&c->word, memory_order_acquire); /* pairs with cb_publish_ [HN2] */
    *id = word_serial(word);
    return *id && !(word & (WORD_DEAD | WORD_FREE));
}

struct visit {
    void (*visit)(struct cb *c, uint64_t id, void *arg);
    void *arg;
};

static void visit(struct cb *c, const struct visit *visit)
{
    uint64_t id;
    if (is_live(c, &id))
        visit->visit(c, id, visit->arg);
}

static void visit_own(void *object, void *arg)
{
    visit(cb_in(object), arg);
}

static void visit_guest(void *object, void *arg)
{
    visit(guest_in(object), arg);
}

void each_strand(struct runtime *runtime, void (*fn)(struct cb *c, uint64_t id, void *arg), void *arg)
{
    struct visit visit = {fn, arg};
    slab_each(&runtime->cbs, visit_own, &visit);
    slab_each(&runtime->guests, visit_guest, &visit);
}
