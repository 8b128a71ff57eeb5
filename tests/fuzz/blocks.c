/*
 * Blocks: scopes, deadlines, shields, try, clean-ups. A block is left for real, through frames of its own, by falling
 * off its end, by return, or by an exception that nothing stops in between; clean-ups around the library's own tell the
 * model of it.
 */
#include "run.h"

static int run_node(struct mstrand *s, int16_t index);

struct inside {
    struct mstrand *s;
    int index;
};

static void before_leaving(struct inside *in)
{
    MUST(strand_unwinding() == unwinding(in->s), "strand %d leaves scope %d otherwise than the model says",
         index_of(in->s), in->index);
    leaving_begins(in->index);
}

static void after_leaving(struct inside *in)
{
    bool thrown = strand_unwinding();
    entry_pop(in->s, IN_SCOPE);
    leaving_ends(in->index, thrown);
    MUST(thrown == unwinding(in->s), "leaving scope %d %s", in->index,
         thrown ? "throws, and should not" : "throws nothing, and should");
}

static int in_scope(struct mstrand *s, int16_t index)
{
    static const unsigned policies[] = {0, STRAND_TOGETHER, STRAND_COLLECT, STRAND_FIRST_WINS};
    const struct node *node = &program.nodes[index];
    struct mscope *scope = &model.scopes[index];
    *scope = (struct mscope){.life = OPEN, .owner = index_of(s), .note.who = NO_ONE};
    scope->flags = (node->a & 1 ? STRAND_OPEN : 0) | (node->a & 2 ? policies[node->a >> 2 & 3] : 0);
    struct inside outer ON_LEAVING(after_leaving) = {s, index};
    entry_push(s, (struct entry){.kind = IN_SCOPE, .index = index});
    STRAND_SCOPE_WITH(handle, scope->flags);
    scope->handle = handle;
    struct inside inner ON_LEAVING(before_leaving) = {s, index};
    return run_block(s, node->first);
}

static void leave_deadline(struct inside *in)
{
    entry_pop(in->s, IN_DEADLINE);
}

struct body {
    struct mstrand *s;
    int16_t index;
    int number, flow;
};

static void *in_deadline(void *arg)
{
    struct body *body = arg;
    const struct node *node = &program.nodes[body->index];
    int64_t ns = node->a < 16 ? -1 : node->a < 32 ? STRAND_S : (int64_t)(node->a & 31) * (node->a & 31) * 300;
    strand_time when = strand_in(ns);
    struct inside in ON_LEAVING(leave_deadline) = {body->s, 0};
    entry_push(body->s, (struct entry){.kind = IN_DEADLINE, .index = body->number, .when = when.ns, .holds = ns < 0});
    STRAND_DEADLINE(when);
    body->flow = run_block(body->s, node->first);
    return NULL;
}

/* Only where an interruption becomes timed-out can the model see which deadline it is by, so it checks that there. */
static int deadline(struct mstrand *s, int16_t index)
{
    struct body body = {s, index, ++model.deadlines, FALL};
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
    strand_exception *e = strand_try(in_deadline, &body, NULL);
    entry_pop(s, IN_TRY);
    if (e) {
        deadline_ends(s, body.number, e);
        exc_compare(e, s->flight, "the end of a deadline");
        strand_rethrow(e);
    }
    MUST(!s->flight, "a deadline block was left normally, but by the model it throws");
    return body.flow;
}

static void leave_shield(struct inside *in)
{
    entry_pop(in->s, IN_SHIELD);
}

static int in_shield(struct mstrand *s, int16_t index)
{
    struct inside in ON_LEAVING(leave_shield) = {s, index};
    entry_push(s, (struct entry){.kind = IN_SHIELD});
    STRAND_SHIELD;
    return run_block(s, program.nodes[index].first);
}

/* ---- try ------------------------------------------------------------------------------------------------- */

struct handling {
    struct mstrand *s;
    const strand_kind *kind;
    struct exc *outer;
    strand_exception *outer_real;
    bool caught;
};

bool below(const strand_kind *kind, const strand_kind *other)
{
    while (kind && kind != other)
        kind = kind->parent;
    return kind != NULL;
}

/* A handler that throws something else takes along what it had caught. */
static void leave_try(struct handling *h)
{
    struct mstrand *s = h->s;
    if (h->caught) {
        if (s->flight)
            exc_suppress(s->flight, s->caught);
        s->handlers--;
        s->caught = h->outer;
        s->caught_real = h->outer_real;
        return;
    }
    entry_pop(s, IN_TRY);
    MUST(!s->flight || !below(s->flight->kind, h->kind), "strand %d: an exception was not caught", index_of(s));
}

static void caught(struct handling *h, strand_exception *e)
{
    struct mstrand *s = h->s;
    exc_compare(e, s->flight, "a catch block");
    MUST(below(s->flight->kind, h->kind), "strand %d: an exception was caught by a block of another kind", index_of(s));
    entry_pop(s, IN_TRY);
    h->caught = true;
    s->caught = s->handled[s->handlers++] = s->flight;
    s->caught_real = e;
    s->flight = NULL;
}

static int try(struct mstrand *s, int16_t index)
{
    static const strand_kind *const kinds[] = {&STRAND_ANY,       &STRAND_ERROR,           &kind_a,
                                               &STRAND_TIMED_OUT, &STRAND_CHILD_CANCELLED, &STRAND_LIVE_STRANDS};
    const struct node *node = &program.nodes[index];
    struct handling h ON_LEAVING(leave_try) = {s, kinds[node->a % 6], s->caught, s->caught_real, false};
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = h.kind == &STRAND_ANY});
    STRAND_TRY {
        return run_block(s, node->first);
    }
    STRAND_CATCH(h.kind, e) {
        caught(&h, e);
        return run_block(s, node->second);
    }
    STRAND_END
    return FALL;
}

/* ---- clean-ups ------------------------------------------------------------------------------------------- */

static void *clean(void *arg)
{
    struct body *body = arg;
    run_block(body->s, program.nodes[body->index].second);
    return NULL;
}

/* Because of an exception. Either each of its operations is by itself, without a try block where it can be; or all of
 * it is in one. What it throws is suppressed, or forgotten. */
static void clean_unwinding(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    struct body body = {s, index, 0, FALL};
    struct exc *flight = s->flight;
    entry_push(s, (struct entry){.kind = IN_UNWINDING, .flight = flight});
    s->flight = NULL;
    if (node->a & 1) {
        clean(&body);
    } else {
        entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
        strand_exception *e = strand_try(clean, &body, NULL);
        entry_pop(s, IN_TRY);
        if (e)
            exc_compare(e, s->flight, "a clean-up");
        if (e && (node->a & 2)) {
            exc_suppress(flight, s->flight);
            strand_suppress(e);
        } else {
            strand_exception_release(e);
        }
    }
    entry_pop(s, IN_UNWINDING);
    s->flight = flight;
}

struct around {
    struct mstrand *s;
    struct exc *caught;
    strand_exception *caught_real;
};

static void back_to(struct around *around)
{
    around->s->caught = around->caught;
    around->s->caught_real = around->caught_real;
}

static void clean_up(struct inside *in)
{
    struct mstrand *s = in->s;
    MUST(s->cleaning > 0 && s->cleanups[s->cleaning - 1] == in->index, "clean-up %d runs twice or out of its turn",
         in->index);
    s->cleaning--;
    MUST(strand_unwinding() == unwinding(s), "clean-up %d runs in another way than the model says", in->index);
    struct body body = {s, (int16_t)in->index, 0, FALL};
    struct around around ON_LEAVING(back_to) = {s, s->caught, s->caught_real};
    s->caught = NULL; /* by a handler around, not in the clean-up */
    if (s->flight)
        clean_unwinding(s, (int16_t)in->index);
    else
        clean(&body);
}

static int with_clean_up(struct mstrand *s, int16_t index)
{
    s->cleanups[s->cleaning++] = index;
    struct inside in ON_LEAVING(clean_up) = {s, index};
    return run_block(s, program.nodes[index].first);
}

/* ---- all operations -------------------------------------------------------------------------------------- */

static int run_node(struct mstrand *s, int16_t index)
{
    const struct node *node = &program.nodes[index];
    switch ((enum op)node->op) {
    case OP_SPAWN:
        run_spawn(s, index);
        return FALL;
    case OP_SCOPE:
        return in_scope(s, index);
    case OP_DEADLINE:
        return deadline(s, index);
    case OP_SHIELD:
        return in_shield(s, index);
    case OP_TRY:
        return try(s, index);
    case OP_CLEANUP:
        return with_clean_up(s, index);
    case OP_BREAK:
        return node->a % DEPTH + 1;
    case OP_RETURN:
        return RETURN;
    case OP_MISUSE:
        run_misuse(s, node);
        return FALL;
    case OP_FAILURE:
    case OP_COUNT:
    case OP_CANCEL:
    case OP_CANCEL_SCOPE:
    case OP_HAND_OFF:
    case OP_THROW:
    case OP_RETHROW:
    case OP_KEEP:
    case OP_THROW_KEPT:
        run_act(s, index);
        return FALL;
    default:
        run_call(s, node);
        return FALL;
    }
}

static void *run_alone(void *arg)
{
    struct body *body = arg;
    run_node(body->s, body->index);
    return NULL;
}

static bool is_pause(enum op op)
{
    return op == OP_YIELD || op == OP_SLEEP || op == OP_CHECKPOINT;
}

/* In a clean-up that nothing may leave. */
static void run_caught(struct mstrand *s, int16_t index)
{
    struct body body = {s, index, 0, FALL};
    struct exc *flight = s->entries[s->depth - 1].flight;
    entry_push(s, (struct entry){.kind = IN_TRY, .takes = true});
    strand_exception *e = strand_try(run_alone, &body, NULL);
    entry_pop(s, IN_TRY);
    if (!e)
        return;
    exc_compare(e, s->flight, "an operation of a clean-up");
    exc_suppress(flight, s->flight);
    s->flight = NULL;
    strand_suppress(e);
}

int run_block(struct mstrand *s, int16_t first)
{
    for (int16_t i = first; i; i = program.nodes[i].next) {
        enum op op = program.nodes[i].op;
        int flow = FALL;
        if (in_bare_clean_up(s) && !is_pause(op))
            run_caught(s, i);
        else
            flow = run_node(s, i);
        MUST(!s->flight, "strand %d goes on, but by the model node %d throws", index_of(s), i);
        if (flow != FALL)
            return op_has_block(op) && flow > 0 ? flow - 1 : flow;
    }
    return FALL;
}
