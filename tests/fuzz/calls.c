/*
 * Operations that may block, and spawning. Each is caught at once, the model told of what has come of it, and the
 * exception sent on its way.
 */
#include "run.h"

#include <errno.h>

static bool has_first(struct mstrand *s, int i)
{
    return is_mine(s, i) && (model.scopes[i].flags & STRAND_FIRST_WINS) && !model.scopes[i].blurred &&
           anchored_count(i);
}

static bool has_next(struct mstrand *s, int i)
{
    return is_mine(s, i) && (model.scopes[i].flags & (STRAND_COLLECT | STRAND_FIRST_WINS)) && !model.scopes[i].unknown;
}

struct call {
    enum op op;
    uint8_t how;
    strand child;
    strand_scope scope;
    int64_t when;
    const strand_attr *attr;
    strand_fn *fn;
    struct mstrand *spawned;
    strand answer;
    void *result;
    strand_exception *e;
};

static void *make_call(void *arg)
{
    struct call *call = arg;
    switch (call->op) {
    case OP_YIELD:
        strand_yield();
        break;
    case OP_CHECKPOINT:
        strand_checkpoint();
        break;
    case OP_SLEEP:
        strand_sleep_until((strand_time){call->when});
        break;
    case OP_JOIN:
        return strand_join(call->child);
    case OP_WAIT: {
        STRAND_DEADLINE((strand_time){call->when}); /* so that strands that wait for each other do not for ever */
        strand_wait(call->child);
        break;
    }
    case OP_SCOPE_JOIN:
        strand_scope_join(call->scope);
        break;
    case OP_FIRST:
        return strand_scope_join_first(call->scope, &call->answer);
    case OP_NEXT:
        call->answer = strand_scope_wait_next(call->scope);
        break;
    default:
        call->answer = call->attr ? strand_spawn_with(call->scope, call->attr, call->fn, call->spawned, 0)
                                  : strand_spawn(call->scope, call->fn, call->spawned);
        break;
    }
    return NULL;
}

/* An operation may be shielded. In a clean-up that runs because of an exception the sources hold again inside of a try
 * block, unless it is. */
static bool shielded(const struct call *call)
{
    return call->how & 0x80;
}

static void attempt(struct mstrand *s, struct call *call, int target)
{
    if (shielded(call))
        entry_push(s, (struct entry){.kind = IN_SHIELD});
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
    wait_begins(s, call->op, target, call->when);
    if (shielded(call)) {
        STRAND_SHIELD;
        call->e = strand_try(make_call, call, &call->result);
    } else {
        call->e = strand_try(make_call, call, &call->result);
    }
    s->waits = OP_END;
}

/* The model knows what has come of it. The exception goes on, through all blocks up to the next try. */
static void finish(struct mstrand *s, struct call *call)
{
    entry_pop(s, IN_TRY);
    if (shielded(call))
        entry_pop(s, IN_SHIELD);
    if (!call->e)
        return;
    MUST(s->flight, "strand %d: an exception that the model does not expect: %s", index_of(s),
         strand_exception_text(call->e));
    strand_rethrow(call->e);
}

static bool is_interruption(const strand_exception *e)
{
    return e && strand_exception_kind(e) == &STRAND_INTERRUPTED;
}

/* What can throw nothing but an interruption. */
static void check_simple(struct mstrand *s, struct call *call)
{
    MUST(call->e || !s->must, "strand %d: an operation had to be interrupted", index_of(s));
    MUST(!call->e || is_interruption(call->e), "strand %d: an operation threw %s", index_of(s),
         call->e ? strand_exception_text(call->e) : "");
    if (call->e)
        s->flight = interruption(s, call->e);
}

/* Yields, checkpoints and sleeps. */
static void pause_for(struct mstrand *s, struct call *call)
{
    int64_t began = strand_now().ns;
    if (in_bare_clean_up(s)) { /* what is thrown here would end the program */
        make_call(call);
        return;
    }
    attempt(s, call, NO_ONE);
    check_simple(s, call);
    if (call->op == OP_SLEEP && !call->e) {
        MUST(strand_now().ns >= call->when, "strand %d slept too short a time", index_of(s));
        MUST(!deadline_between(s, began, call->when), "strand %d slept past its deadline", index_of(s));
    }
    finish(s, call);
}

static void join_child(struct mstrand *s, struct call *call)
{
    int i = choose(s, call->how & 0x7f, is_child);
    if (i == NO_ONE)
        return;
    call->child = model.strands[i].handle;
    attempt(s, call, i);
    join_ends(s, &model.strands[i], call->e, call->result);
    finish(s, call);
}

static void wait_for(struct mstrand *s, struct call *call)
{
    int i = choose(s, call->how & 0x7f, is_other);
    if (i == NO_ONE)
        return;
    call->child = model.strands[i].handle;
    call->when = strand_in(STRAND_S).ns;
    attempt(s, call, i);
    if (call->e && strand_exception_kind(call->e) == &STRAND_TIMED_OUT) {
        MUST(strand_now().ns >= call->when && !s->must && !s->ready, "strand %d: the wait for strand %d timed out",
             index_of(s), i);
        s->flight = exc_new(&STRAND_TIMED_OUT, index_of(s));
    } else {
        check_simple(s, call);
        MUST(call->e || model.strands[i].life != RUNNING, "the wait for strand %d is over, but it has not ended", i);
    }
    finish(s, call);
}

static void join_scope(struct mstrand *s, struct call *call)
{
    int i = choose(s, call->how & 0x7f, is_mine);
    if (i == NO_ONE)
        return;
    call->scope = model.scopes[i].handle;
    attempt(s, call, i);
    scope_join_ends(s, i, call->e, strand_scope_count(call->scope));
    finish(s, call);
}

static void first_of(struct mstrand *s, struct call *call)
{
    int i = choose(s, call->how & 0x7f, has_first);
    if (i == NO_ONE)
        return;
    call->scope = model.scopes[i].handle;
    attempt(s, call, i);
    first_ends(s, i, call->e, call->result);
    finish(s, call);
}

static void next_of(struct mstrand *s, struct call *call)
{
    int i = choose(s, call->how & 0x7f, has_next);
    if (i == NO_ONE)
        return;
    call->scope = model.scopes[i].handle;
    bool none = !anchored_count(i); /* then it yields before it returns, and children may arrive meanwhile */
    attempt(s, call, i);
    check_simple(s, call);
    if (!call->e) {
        struct mstrand *next = none ? NULL : next_by_end(i, 0);
        uint64_t expected = next ? strand_id(next->handle) : 0;
        MUST(next || none, "scope %d has no next child, but one has not ended", i);
        MUST(strand_id(call->answer) == expected, "the next of scope %d is %llu, but it should be %llu", i,
             (unsigned long long)strand_id(call->answer), (unsigned long long)expected);
    }
    finish(s, call);
}

void run_call(struct mstrand *s, const struct node *node)
{
    struct call call = {.op = node->op, .how = node->a};
    switch ((enum op)node->op) {
    case OP_SLEEP:
        call.when = strand_in((int64_t)(node->a & 31) * (node->a & 31) * 300).ns;
        pause_for(s, &call);
        break;
    case OP_JOIN:
        join_child(s, &call);
        break;
    case OP_WAIT:
        wait_for(s, &call);
        break;
    case OP_SCOPE_JOIN:
        join_scope(s, &call);
        break;
    case OP_FIRST:
        first_of(s, &call);
        break;
    case OP_NEXT:
        next_of(s, &call);
        break;
    default:
        pause_for(s, &call);
        break;
    }
}

/* ---- spawning -------------------------------------------------------------------------------------------- */

static void drop(void *result)
{
    struct mstrand *c = &model.strands[(uintptr_t)result - 0x1000];
    MUST(c->drops && c->life != RUNNING && c->dropped == 0, "the result of strand %d is dropped, and may not be",
         index_of(c));
    c->dropped++;
}

static void *run_body(void *arg)
{
    struct mstrand *s = arg;
    run_block(s, program.nodes[s->node].first);
    return value_of(s);
}

static void end_natively(struct mstrand **s)
{
    MUST(strand_unwinding() == unwinding(*s), "strand %d ends otherwise than the model says", index_of(*s));
    strand_ends(*s);
}

/* What it ends by leaves it as it is, or is looked at before. */
void *run_strand(void *arg)
{
    struct mstrand *s = arg;
    MUST(++s->began == 1, "strand %d has begun twice", index_of(s));
    if (program.nodes[s->node].b & 8) {
        struct mstrand *leaving ON_LEAVING(end_natively) = s;
        return run_body(s);
    }
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
    strand_exception *e = strand_try(run_body, s, NULL);
    entry_pop(s, IN_TRY);
    if (e)
        exc_compare(e, s->flight, "the end of a strand");
    MUST(e || !s->flight, "strand %d has returned, but by the model it throws", index_of(s));
    strand_ends(s);
    if (e)
        strand_rethrow(e);
    return value_of(s);
}

void run_spawn(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    struct mstrand *child = &model.strands[index];
    int scope = choose(s, node->a, is_mine_or_open);
    if (scope == NO_ONE)
        return;
    bool left = model.scopes[scope].life == LEFT, with = node->b & 1;
    char name[16];
    snprintf(name, sizeof name, "s%d", index);
    const strand_attr *attr = STRAND_ATTR(.name = node->b & 2 ? name : NULL, .drop = node->b & 4 ? drop : NULL,
                                          .stack_size = node->b & 16 ? 512 * 1024 : 0);
    struct call call = {.op = OP_SPAWN,
                        .scope = model.scopes[scope].handle,
                        .attr = with ? attr : NULL,
                        .fn = run_strand,
                        .spawned = child};
    if (!left) {
        child->named = with && (node->b & 2);
        child->drops = with && (node->b & 4);
        spawn_into(child, index, scope);
    }
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
    call.e = strand_try(make_call, &call, NULL);
    MUST(left == (call.e != NULL), "strand %d: a spawn into scope %d: %s", index_of(s), scope,
         call.e ? strand_exception_text(call.e) : "has happened, but it has been left");
    if (left) {
        s->flight = exc_new(&STRAND_SYSTEM, index_of(s));
        s->flight->code = -ECANCELED;
        exc_compare(call.e, s->flight, "spawn");
    }
    child->handle = call.answer;
    finish(s, &call);
}
