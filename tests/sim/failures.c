/*
 * Failures in scopes of all policies, two levels of them: children fail, return, are cancelled, and their owner joins
 * them, fetches their failures, takes the first value, or just leaves. No failure is silent: each comes to the one who
 * catches, by itself or suppressed in another, and comes once.
 */
#include "sim.h"

enum { CHILDREN = 4 };

static struct {
    _Atomic int won; /* first-wins scopes: the failures of those that did not win are passed over */
} world;

struct family {
    strand_scope scope;
    struct sim_life *children[CHILDREN];
    int count;
    bool service;
};

/* ---- reporting failures -------------------------------------------------------------------------------- */

/* For good: the exception is given back. Interruptions go on. */
static void deal_with(strand_exception *e)
{
    if (e && !strand_exception_is(e, &STRAND_INTERRUPTED))
        sim_see(e);
    sim_settle(e);
}

/* ---- children ----------------------------------------------------------------------------------- */

static void owner(struct sim_life *me, void *arg);

static void child(struct sim_life *me, void *arg)
{
    SIM_CLEANUP(me);
    if (me->tag > 0 && sim_one_in(&me->chance, 5)) {
        owner(me, arg);
        return;
    }
    if (sim_one_in(&me->chance, 2))
        strand_sleep(sim_draw(&me->chance, 4) * 10 * STRAND_US);
    if (sim_one_in(&me->chance, 2))
        sim_fail(me);
}

static void linger(struct sim_life *me, void *arg)
{
    (void)arg;
    STRAND_SHIELD;
    if (sim_one_in(&me->chance, 3))
        strand_sleep(10 * STRAND_US);
}

/* A clean-up of a family that is left: it blocks, whatever is in flight. */
static void say_goodbye(struct sim_life *const *me)
{
    strand_exception *e = sim_try(*me, linger, NULL);
    SIM_CHECK(!e || sim_no_memory(e));
    strand_exception_release(e);
}

/* ---- ways to deal with them --------------------------------------------------------------------- */

static void join_one(struct sim_life *me, void *child_life)
{
    (void)me;
    sim_take(strand_join(((struct sim_life *)child_life)->handle));
}

static struct sim_life *child_of(struct family *family, strand handle)
{
    for (int i = 0; i < family->count; i++)
        if (strand_id(family->children[i]->handle) == strand_id(handle))
            return family->children[i];
    SIM_CHECK(!"a strand that is no child");
    return NULL;
}

static void join_each(struct sim_life *me, struct family *family)
{
    bool passes_on = sim_one_in(&me->chance, 2);
    for (int i = 0; i < family->count; i++) {
        if (passes_on)
            join_one(me, family->children[i]);
        else
            deal_with(sim_try(me, join_one, family->children[i]));
    }
}

/* Fetches a failure of a service, whose children can't be joined. */
static void fetch_one(struct family *family)
{
    strand failed;
    strand_exception *e = strand_scope_failure(family->scope, &failed);
    SIM_CHECK(e);
    SIM_CHECK_EQ(child_of(family, failed)->returned, 0);
    deal_with(e);
}

static void join_in_order_of_ends(struct sim_life *me, struct family *family)
{
    strand next;
    while (next = strand_scope_wait_next(family->scope), next.bits[1]) {
        struct sim_life *ended = child_of(family, next);
        SIM_CHECK(sim_ended(ended));
        if (family->service)
            fetch_one(family);
        else
            deal_with(sim_try(me, join_one, ended));
    }
    SIM_CHECK_EQ(strand_scope_count(family->scope), 0);
}

static void fetch(struct sim_life *me, struct family *family)
{
    strand failed;
    strand_exception *e;
    strand_sleep(sim_draw(&me->chance, 4) * 10 * STRAND_US);
    while ((e = strand_scope_failure(family->scope, &failed))) {
        SIM_CHECK(sim_ended(child_of(family, failed)));
        SIM_CHECK_EQ(child_of(family, failed)->returned, 0);
        deal_with(e);
    }
}

static struct sim_life *take_the_first(struct family *family)
{
    strand winner;
    struct sim_life *first = strand_scope_join_first(family->scope, &winner);
    world.won++;
    sim_take(first);
    SIM_CHECK(child_of(family, winner) == first);
    SIM_CHECK_EQ(strand_scope_count(family->scope), 0);
    for (int i = 0; i < family->count; i++)
        SIM_CHECK(sim_ended(family->children[i]));
    return first;
}

static void end_in_some_way(struct sim_life *me, struct family *family, unsigned policy)
{
    if (policy == STRAND_FIRST_WINS && sim_one_in(&me->chance, 2)) {
        take_the_first(family);
        return;
    }
    if (policy == STRAND_COLLECT && sim_one_in(&me->chance, 2))
        fetch(me, family);
    else if (policy >= STRAND_COLLECT && sim_one_in(&me->chance, 2))
        join_in_order_of_ends(me, family);
    else if (policy < STRAND_COLLECT && !family->service && sim_one_in(&me->chance, 3))
        join_each(me, family);
    if (sim_one_in(&me->chance, 4))
        strand_sleep(20 * STRAND_US); /* interrupted, unless the policy says otherwise */
    if (sim_one_in(&me->chance, 6))
        sim_fail(me);
    if (sim_one_in(&me->chance, 2))
        strand_scope_join(family->scope);
}

static void fail(struct sim_life *me, void *arg)
{
    (void)arg;
    if (sim_one_in(&me->chance, 2))
        strand_sleep(sim_draw(&me->chance, 4) * 10 * STRAND_US);
    sim_fail(me);
}

static void succeed(struct sim_life *me, void *arg)
{
    (void)arg;
    strand_sleep(sim_draw(&me->chance, 4) * 10 * STRAND_US);
}

/* Returns, but only because it was cancelled: it is never the first. */
static void return_late(struct sim_life *me, void *arg)
{
    strand_exception *e = sim_try(me, sim_eternal, arg);
    SIM_CHECK(e && strand_exception_kind(e) == &STRAND_INTERRUPTED);
    strand_exception_release(e);
}

/* What it says is suppressed in the interruption, which becomes the failure of the child. */
static void regret(struct sim_life *const *me)
{
    if (strand_unwinding() && sim_one_in(&(*me)->chance, 2))
        strand_suppress(sim_try(*me, fail, NULL));
}

static void wait_for_the_failure(struct sim_life *me)
{
    struct sim_life *waiting __attribute__((cleanup(regret), unused)) = me;
    sim_for_ever();
}

/* One child certainly ends, and the policy ends the others. COLLECT and FIRST_WINS do not interrupt the owner; TOGETHER
 * and FIRST_WINS cancel the siblings. */
static void owner_of_eternals(struct sim_life *me, void *arg)
{
    struct family family = {.count = 1 + (int)sim_draw(&me->chance, CHILDREN)};
    int certain = (int)sim_draw(&me->chance, (uint32_t)family.count);
    unsigned policy = sim_one_in(&me->chance, 2) ? STRAND_TOGETHER : STRAND_FIRST_WINS;
    bool waits = sim_one_in(&me->chance, 2);
    if (waits && policy == STRAND_TOGETHER)
        policy = sim_one_in(&me->chance, 2) ? 0 : STRAND_TOGETHER;
    STRAND_SCOPE_WITH(scope, policy);
    family.scope = scope;
    for (int i = 0; i < family.count; i++) {
        sim_body *other = sim_one_in(&me->chance, 2) ? sim_eternal : return_late;
        sim_body *first = policy == STRAND_FIRST_WINS ? succeed : fail;
        family.children[i] = sim_spawn(me, scope, i == certain ? first : other, arg);
    }
    if (policy == STRAND_FIRST_WINS)
        SIM_CHECK(take_the_first(&family) == family.children[certain]);
    else if (waits)
        wait_for_the_failure(me);
    else
        strand_scope_join(scope);
}

static void owner(struct sim_life *me, void *arg)
{
    static const unsigned policies[] = {0, STRAND_TOGETHER, STRAND_COLLECT, STRAND_FIRST_WINS};
    struct family family = {.count = 1 + (int)sim_draw(&me->chance, CHILDREN)};
    unsigned policy = policies[sim_draw(&me->chance, 4)];
    struct sim_life *leaving __attribute__((cleanup(say_goodbye), unused)) = me;
    if (sim_one_in(&me->chance, 4) && !sim_refuses_memory()) { /* which leaves no end certain */
        owner_of_eternals(me, arg);
        return;
    }
    family.service = policy != STRAND_FIRST_WINS && sim_one_in(&me->chance, 3);
    STRAND_SCOPE_WITH(scope, policy | (family.service ? STRAND_SERVICE : 0));
    family.scope = scope;
    if (policy == STRAND_FIRST_WINS)
        world.won++; /* also if nobody asks who it was */
    for (int i = 0; i < family.count; i++) {
        family.children[i] = sim_spawn_tagged(me, scope, child, arg, me->tag - 1);
        if (sim_one_in(&me->chance, 10))
            sim_cancel(family.children[i], "by its owner");
    }
    end_in_some_way(me, &family, policy);
}

static void root(struct sim_life *me, void *arg)
{
    me->tag = 2;
    deal_with(sim_try(me, owner, arg));
}

/* What was lost in the only way that there is, an exception of a cancelled strand, was logged. */
static void oracle(void)
{
    int silent = 0, seen = 0;
    struct sim_life *life;
    for (int i = 1; (life = sim_life(i)); i++) {
        silent += life->failed - life->seen;
        seen += life->seen;
    }
    SIM_CHECK(silent == 0 || world.won || sim_logged());
    sim_observe((uint64_t)seen);
}

SIM_WORKLOAD_THAT(SIM_NO_MEMORY, failures, root, oracle, world);
