/*
 * Operations that do not block, and throwing.
 */
#include "run.h"

#include <errno.h>

static bool collects(struct mstrand *s, int i)
{
    return is_mine(s, i) && (model.scopes[i].flags & STRAND_COLLECT);
}

/* While its children are being taken in, they are fewer than the model knows. */
static bool can_be_counted(struct mstrand *s, int i)
{
    return is_mine_or_open(s, i) && model.scopes[i].life != LEAVING &&
           (model.scopes[i].life == LEFT || model.strands[model.scopes[i].owner].waits != OP_SCOPE_JOIN);
}

static const char *reason(int16_t index, const struct node *node, char *text, size_t size)
{
    snprintf(text, size, "by node %d", index);
    return node->b & 1 ? text : NULL;
}

static void cancel(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    int i = choose(s, node->a, is_strand);
    struct mstrand *c = &model.strands[i];
    bool owned = c->anchor != NO_ONE && c->life != GONE && model.scopes[c->anchor].owner == index_of(s);
    char why[32];
    cancel_one(c, index_of(s), node->b & 1 ? index : 0, owned);
    strand_cancel(c->handle, reason(index, node, why, sizeof why));
}

static void cancel_all(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    int i = choose(s, node->a, is_mine_or_open);
    char why[32];
    if (i == NO_ONE)
        return;
    if (model.scopes[i].life != LEFT)
        cancel_scope(i, index_of(s), node->b & 1 ? index : 0);
    strand_scope_cancel(model.scopes[i].handle, reason(index, node, why, sizeof why));
}

static void hand_off(struct mstrand *s, const struct node *node)
{
    int i = choose(s, node->a, is_child), to = choose(s, node->b, is_scope);
    if (i == NO_ONE || to == NO_ONE)
        return;
    struct mstrand *c = &model.strands[i];
    bool open = (model.scopes[to].flags & STRAND_OPEN) && model.scopes[to].life != LEFT;
    if (open && to != c->anchor && is_above(c, model.scopes[to].owner))
        return; /* misuse */
    if (open)
        hand_to(c, to);
    int result = strand_hand_off(c->handle, model.scopes[to].handle);
    MUST(result == (open ? 0 : -EINVAL), "the hand-off of strand %d to scope %d returned %d", i, to, result);
}

static void fetch_failure(struct mstrand *s, const struct node *node)
{
    int i = choose(s, node->a & 0x7f, collects);
    if (i == NO_ONE)
        return;
    strand which = {{0, 0}};
    strand_exception *e = strand_scope_failure(model.scopes[i].handle, &which);
    int failed = first_failed(i);
    MUST((e != NULL) == (failed != NO_ONE), "scope %d: the failure that is fetched is %s", i,
         e ? strand_exception_text(e) : "none, but there is one");
    if (!e)
        return;
    struct mstrand *c = &model.strands[failed];
    exc_compare(e, c->exception, "a failure that is fetched");
    MUST(strand_id(which) == strand_id(c->handle), "the failure of another strand than %d is fetched", failed);
    consume(c);
    if (node->a & 0x80) {
        s->flight = c->exception;
        strand_rethrow(e);
    }
    strand_exception_release(e);
}

static void count_children(struct mstrand *s, const struct node *node)
{
    int i = choose(s, node->a, can_be_counted), other = choose(s, node->a, is_strand);
    struct mstrand *c = &model.strands[other];
    MUST(strand_ended(c->handle) == (c->life != RUNNING), "whether strand %d has ended", other);
    if (i == NO_ONE)
        return;
    size_t count = strand_scope_count(model.scopes[i].handle), expected = (size_t)anchored_count(i);
    MUST(count == (model.scopes[i].life == LEFT ? 0 : expected), "scope %d has %zu children, by the model %zu", i,
         count, expected);
}

static int payloads_left;

int payloads(void)
{
    return payloads_left;
}

/* ---- throwing -------------------------------------------------------------------------------------------- */

static void is_freed(void *payload)
{
    MUST(*(int *)payload == 0, "a payload is freed twice");
    *(int *)payload = 1;
    payloads_left--;
}

__attribute__((noreturn)) static void throw(struct mstrand * s, int16_t index)
{
    static const strand_kind *const kinds[] = {
        &kind_a, &kind_b, &STRAND_ERROR, &STRAND_TIMED_OUT, &STRAND_CHILD_CANCELLED, &STRAND_ANY};
    static int payload[NODES];
    const strand_kind *kind = kinds[program.nodes[index].a % 6];
    s->flight = exc_new(kind, index_of(s));
    s->flight->number = index;
    if (program.nodes[index].a & 0x80)
        strand_throw(kind, "thrown by node %d", index);
    payload[index] = 0;
    payloads_left++;
    const strand_throw_info info = {.size = sizeof info, .payload = &payload[index], .payload_free = is_freed};
    strand_throw_with(kind, &info, "thrown by node %d", index);
}

static void throw_kept(struct mstrand *s)
{
    if (!s->kept)
        return;
    s->flight = s->kept;
    strand_rethrow(strand_exception_keep(s->kept_real));
}

static void keep(struct mstrand *s)
{
    if (s->kept || !s->caught)
        return;
    s->kept = s->caught;
    s->kept->kept = true;
    s->kept_real = strand_exception_keep(s->caught_real);
}

static void rethrow(struct mstrand *s)
{
    if (!s->caught)
        return;
    s->flight = s->caught;
    strand_rethrow(strand_exception_keep(s->caught_real));
}

void run_act(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    switch ((enum op)node->op) {
    case OP_FAILURE:
        fetch_failure(s, node);
        break;
    case OP_COUNT:
        count_children(s, node);
        break;
    case OP_CANCEL:
        cancel(s, index);
        break;
    case OP_CANCEL_SCOPE:
        cancel_all(s, index);
        break;
    case OP_HAND_OFF:
        hand_off(s, node);
        break;
    case OP_THROW:
        throw(s, index);
    case OP_RETHROW:
        rethrow(s);
        break;
    case OP_KEEP:
        keep(s);
        break;
    default:
        throw_kept(s);
        break;
    }
}
