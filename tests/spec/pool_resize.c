/*
 * Threads that leave a pool, and come back: at what moment, and with what becomes of those that they have run.
 */
#define SUITE pool_resize
#include "test.h"

#include "strand/pool.h"

#include <errno.h>

/* ---- shared fibres --------------------------------------------------------------------------- */

struct crowd {
    strand_scope scope;
    strand_fibre fibre;
    _Atomic int stop;
};

static void *open_one(void *arg)
{
    struct crowd *crowd = arg;
    crowd->fibre = strand_fibre_open(crowd->scope, NULL);
    return arg;
}

static void *take_turns(void *arg)
{
    struct crowd *crowd = arg;
    while (!crowd->stop)
        strand_yield();
    return arg;
}

static void *be_followed(void *arg)
{
    struct crowd *crowd = arg;
    if (!crowd->stop)
        strand_spawn_with(crowd->scope, STRAND_ATTR(.fibre = crowd->fibre), be_followed, crowd, 0);
    return arg;
}

/* Two threads, each of which is kept busy by the strands of one fibre, one of whom can always go on. */
static void leave_crowds(strand_fn *fn)
{
    static struct crowd crowds[2];
    STRAND_SCOPE_WITH(scope, STRAND_OPEN);
    strand_pool pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    for (int i = 0; i < 4; i++) {
        struct crowd *crowd = &crowds[i % 2];
        if (i < 2) {
            *crowd = (struct crowd){.scope = scope};
            strand_join(strand_spawn_with(scope, STRAND_ATTR(.pool = pool), open_one, crowd, 0));
        }
        strand_spawn_with(scope, STRAND_ATTR(.fibre = crowd->fibre), fn, crowd, 0);
    }
    for (int i = 0; i < 3; i++) {
        strand_sleep(STRAND_MS);
        CHECK_EQ(strand_pool_resize(pool, 1), 0);
        test_await_threads(pool, 1);
        CHECK_EQ(strand_pool_resize(pool, 2), 0);
    }
    crowds[0].stop = crowds[1].stop = 1;
    strand_scope_join(scope);
}

/* V-10 */
TEST_INSIDE(a_thread_goes_though_strands_of_a_fibre_take_turns_on_it)
{
    leave_crowds(take_turns);
}

/* V-10 */
TEST_INSIDE(a_thread_goes_though_strands_of_a_fibre_follow_each_other_on_it)
{
    leave_crowds(be_followed);
}

/* ---- who is refused --------------------------------------------------------------------------- */

struct late {
    strand_pool pool;
    strand_scope scope;
};

static void *pin_into_what_was_left(void *arg)
{
    struct late *late = arg;
    strand_spawn_with(late->scope, STRAND_ATTR(.pool = late->pool, .pin = STRAND_PIN(1)), test_return, NULL, 0);
    return arg;
}

TEST_INSIDE(a_thread_leaves_although_pinning_a_strand_to_it_has_failed)
{
    static struct late late;
    void *result;
    STRAND_SCOPE(scope);
    late.pool = strand_pool_open(scope, STRAND_POOL_ATTR(.threads = 2));
    {
        STRAND_SCOPE_WITH(inner, STRAND_OPEN);
        late.scope = inner;
    }
    strand_exception *e = strand_try(pin_into_what_was_left, &late, &result);
    CHECK_KIND(e, &STRAND_SYSTEM);
    CHECK_EQ(strand_exception_code(e), -ECANCELED);
    strand_exception_release(e);
    CHECK_EQ(strand_pool_resize(late.pool, 1), 0);
    test_await_threads(late.pool, 1);
}
