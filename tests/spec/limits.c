/*
 * Limits: plain ones, stacks of them in the context of a strand, and clients that keep them without knowing.
 */
#define SUITE limits
#include "test.h"

#include "strand/limit.h"

#include <errno.h>

/* ---- one limit -------------------------------------------------------------------------------------- */

/* */
TEST_INSIDE(a_limit_gives_out_so_many_permits)
{
    strand_limit limit;
    strand_limit_init(&limit, 2, "requests");
    strand_limit_acquire(&limit);
    CHECK_EQ(strand_limit_try_acquire(&limit), 0);
    CHECK_EQ(strand_limit_try_acquire(&limit), -EAGAIN);
    CHECK_EQ(strand_limit_in_flight(&limit), 2);
    strand_limit_release(&limit);
    strand_limit_release(&limit);
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
}

static void *throw_with_a_permit(void *limit)
{
    STRAND_LIMIT_PERMIT(limit);
    CHECK_EQ(strand_limit_in_flight(limit), 1);
    return test_throw(NULL);
}

/* */
TEST_INSIDE(a_permit_can_be_bound_to_a_block_and_goes_back_however_that_is_left)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    for (int i = 0; i < 3; i++) {
        STRAND_LIMIT_PERMIT(&limit);
        CHECK_EQ(strand_limit_try_acquire(&limit), -EAGAIN);
        if (i == 1)
            continue;
    }
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
    CHECK_THROWS(throw_with_a_permit, &limit, &TEST_ERROR);
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
}

struct turn {
    strand_limit *limit;
    int number;
};

static void *take_turn(void *arg)
{
    struct turn *turn = arg;
    strand_limit_acquire(turn->limit);
    test_log("%d", turn->number);
    strand_limit_release(turn->limit);
    return NULL;
}

TEST_INSIDE(waiters_for_a_limit_are_served_in_fifo_order)
{
    struct turn turns[5];
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    strand_limit_acquire(&limit);
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++) {
        turns[i] = (struct turn){&limit, i};
        strand_spawn(s, take_turn, &turns[i]);
        while (strand_prio_waiting(&limit.inside) != (size_t)i + 1)
            strand_sleep(1);
    }
    strand_limit_release(&limit);
    strand_scope_join(s);
    CHECK_LOG("0 1 2 3 4");
}

TEST_INSIDE(a_limit_can_be_waited_for_by_a_select)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    strand_case cases[] = {strand_on_limit(&limit), strand_on_time(strand_in(STRAND_MS))};
    CHECK_EQ(strand_select(cases, 2, STRAND_SELECT_ORDERED), 0);
    CHECK_EQ(strand_select(cases, 2, 0), 1);
    strand_limit_release(&limit);
}

/* ---- the stack of limits ------------------------------------------------------------------------------- */

TEST_INSIDE(without_limits_nothing_is_taken)
{
    strand_held held;
    strand_limits_acquire(&held);
    strand_limits_release(&held);
    STRAND_WITHIN_LIMITS;
}

/* contract 5.7 */
TEST_INSIDE(a_request_takes_a_permit_of_each_limit_of_the_stack)
{
    strand_limit process, user;
    strand_limit_init(&process, 5, "process");
    strand_limit_init(&user, 2, "user");
    STRAND_LIMIT(&process);
    strand_held held;
    {
        STRAND_LIMIT(&user);
        CHECK_EQ(strand_limit_in_flight(&process), 0);
        strand_limits_acquire(&held);
        CHECK_EQ(strand_limit_in_flight(&process), 1);
        CHECK_EQ(strand_limit_in_flight(&user), 1);
    }
    {
        STRAND_WITHIN_LIMITS;
        CHECK_EQ(strand_limit_in_flight(&process), 2);
        CHECK_EQ(strand_limit_in_flight(&user), 1); /* it holds no more, but what was taken is held */
    }
    CHECK_EQ(strand_limit_in_flight(&process), 1);
    strand_limits_release(&held);
    CHECK_EQ(strand_limit_in_flight(&process), 0);
    CHECK_EQ(strand_limit_in_flight(&user), 0);
}

TEST_INSIDE(trying_takes_a_permit_of_each_limit_or_none)
{
    strand_limit a, b;
    strand_held held, more;
    strand_limit_init(&a, 2, NULL);
    strand_limit_init(&b, 1, NULL);
    STRAND_LIMIT(&b);
    STRAND_LIMIT(&a);
    CHECK_EQ(strand_limits_try_acquire(&held), 0);
    CHECK_EQ(strand_limits_try_acquire(&more), -EAGAIN);
    CHECK_EQ(strand_limit_in_flight(&a), 1);
    CHECK_EQ(strand_limit_in_flight(&b), 1);
    strand_limits_release(&more); /* of nothing */
    CHECK_EQ(strand_limit_in_flight(&a), 1);
    strand_limits_release(&held);
    CHECK_EQ(strand_limit_in_flight(&a) + strand_limit_in_flight(&b), 0);
}

/* */
TEST_INSIDE(a_limit_that_is_bound_twice_counts_once)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_WITHIN_LIMITS;
    CHECK_EQ(strand_limit_in_flight(&limit), 1);
}

/* */
TEST_INSIDE(many_limits_can_be_bound)
{
    enum { MANY = 20 };
    strand_limit limits[MANY];
    for (int i = 0; i < MANY; i++)
        strand_limit_init(&limits[i], 1, NULL);
    STRAND_LIMIT(&limits[0]);
    STRAND_LIMIT(&limits[19]);
    STRAND_LIMIT(&limits[3]);
    STRAND_LIMIT(&limits[7]);
    STRAND_LIMIT(&limits[12]);
    STRAND_LIMIT(&limits[5]);
    STRAND_LIMIT(&limits[1]);
    STRAND_LIMIT(&limits[18]);
    STRAND_LIMIT(&limits[2]);
    {
        STRAND_WITHIN_LIMITS;
        int taken = 0;
        for (int i = 0; i < MANY; i++)
            taken += (int)strand_limit_in_flight(&limits[i]);
        CHECK_EQ(taken, 9);
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(strand_limit_in_flight(&limits[i]), 0);
}

TEST_INSIDE(many_bindings_of_few_limits_take_few_permits)
{
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_LIMIT(&limit);
    STRAND_WITHIN_LIMITS;
    CHECK_EQ(strand_limit_in_flight(&limit), 1);
}

struct crowd {
    strand_limit *limits[2]; /* in the order of binding */
    _Atomic int inside, rounds;
    int most;
};

static void go_out(struct crowd **crowd)
{
    atomic_fetch_sub(&(*crowd)->inside, 1);
}

static void *make_requests(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 10; i++) {
        STRAND_WITHIN_LIMITS;
        struct crowd *in __attribute__((cleanup(go_out))) = crowd;
        CHECK(atomic_fetch_add(&in->inside, 1) + 1 <= crowd->most);
        strand_yield();
        crowd->rounds++;
    }
    return NULL;
}

/* contract 5.7 */
TEST_RACE(children_inherit_the_limits_of_their_spawner)
{
    strand_limit limit;
    strand_limit_init(&limit, 2, NULL);
    struct crowd crowd = {.most = 2};
    STRAND_SCOPE(s);
    STRAND_LIMIT(&limit);
    for (int i = 0; i < 10; i++)
        strand_spawn(s, make_requests, &crowd);
    strand_scope_join(s);
    CHECK_EQ(crowd.rounds, 100);
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
}

static void *bind_and_request(void *arg)
{
    struct crowd *crowd = arg;
    STRAND_LIMIT(crowd->limits[0]);
    STRAND_LIMIT(crowd->limits[1]);
    return make_requests(crowd);
}

/* */
TEST_RACE(limits_bound_in_opposite_orders_do_not_deadlock)
{
    for (long round = 0; round < test_scale(50); round++) {
        strand_limit a, b;
        strand_limit_init(&a, 1, NULL);
        strand_limit_init(&b, 1, NULL);
        struct crowd one = {.limits = {&a, &b}, .most = 1}, other = {.limits = {&b, &a}, .most = 1};
        STRAND_SCOPE(s);
        for (int i = 0; i < 5; i++) {
            strand_spawn(s, bind_and_request, &one);
            strand_spawn(s, bind_and_request, &other);
        }
        strand_scope_join(s);
        CHECK_EQ(one.rounds + other.rounds, 100);
    }
}

static void *request_once(void *arg)
{
    STRAND_WITHIN_LIMITS;
    test_log("in");
    return arg;
}

/* */
TEST_INSIDE(an_interruption_in_the_middle_gives_back_what_was_taken)
{
    strand_limit a, b, c;
    strand_limit_init(&a, 1, NULL);
    strand_limit_init(&b, 1, NULL);
    strand_limit_init(&c, 1, NULL);
    strand_limit_acquire(&c);
    STRAND_SCOPE(s);
    STRAND_LIMIT(&c);
    STRAND_LIMIT(&a);
    STRAND_LIMIT(&b);
    strand child = strand_spawn(s, request_once, NULL);
    while (strand_prio_waiting(&c.inside) != 1)
        strand_sleep(1);
    CHECK_EQ(strand_limit_in_flight(&a), 1);
    CHECK_EQ(strand_limit_in_flight(&b), 1);
    strand_cancel(child, NULL);
    strand_wait(child);
    CHECK_EQ(strand_limit_in_flight(&a), 0);
    CHECK_EQ(strand_limit_in_flight(&b), 0);
    CHECK_EQ(strand_limit_in_flight(&c), 1);
    strand_limit_release(&c);
    CHECK_LOG("");
}

static void *request_and_throw(void *arg)
{
    STRAND_WITHIN_LIMITS;
    return test_throw(arg);
}

/* */
TEST_INSIDE(an_exception_that_leaves_the_block_gives_all_back)
{
    strand_limit a, b;
    strand_limit_init(&a, 1, NULL);
    strand_limit_init(&b, 1, NULL);
    STRAND_LIMIT(&a);
    STRAND_LIMIT(&b);
    CHECK_THROWS(request_and_throw, NULL, &TEST_ERROR);
    CHECK_EQ(strand_limit_in_flight(&a) + strand_limit_in_flight(&b), 0);
}

static void *request_under_deadline(void *crowd)
{
    for (int i = 0; i < 10; i++) {
        STRAND_TRY {
            STRAND_DEADLINE(strand_in(i * 10 * STRAND_US));
            bind_and_request(crowd);
        }
        STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        }
        STRAND_END
    }
    return NULL;
}

/* */
TEST_RACE(deadlines_in_the_middle_of_requests_lose_no_permits)
{
    for (long round = 0; round < test_scale(20); round++) {
        strand_limit a, b;
        strand_limit_init(&a, 2, NULL);
        strand_limit_init(&b, 2, NULL);
        struct crowd one = {.limits = {&a, &b}, .most = 2}, other = {.limits = {&b, &a}, .most = 2};
        STRAND_SCOPE(s);
        for (int i = 0; i < 5; i++) {
            strand_spawn(s, request_under_deadline, &one);
            strand_spawn(s, request_under_deadline, &other);
        }
        strand_scope_join(s);
        CHECK_EQ(strand_limit_in_flight(&a) + strand_limit_in_flight(&b), 0);
    }
}

/* ---- beside a priority semaphore: R-05 ----------------------------------------------------------------------- */

/* One thread: what is counted is nobody's who shares. (It is atomic for TSan, to which a switch orders nothing.) */
struct service {
    strand_prio_semaphore tasks;
    _Atomic int requests, most_requests, now, most_tasks;
};

static void *request(void *arg)
{
    struct service *service = arg;
    STRAND_WITHIN_LIMITS;
    int now = ++service->requests;
    service->most_requests = now > service->most_requests ? now : service->most_requests;
    strand_yield();
    service->requests--;
    return NULL;
}

/* One task, one permit, and several requests at a time. */
static void *task_of_several_requests(void *arg)
{
    struct service *service = arg;
    STRAND_PRIO_PERMIT(&service->tasks, NULL);
    int now = ++service->now;
    service->most_tasks = now > service->most_tasks ? now : service->most_tasks;
    STRAND_SCOPE(s);
    for (int i = 0; i < 5; i++)
        strand_spawn(s, request, service);
    strand_scope_join(s);
    service->now--;
    return NULL;
}

static void run_tasks(int *most_tasks, int *most_requests)
{
    struct service service = {.most_tasks = 0};
    strand_prio_init(&service.tasks, &(strand_prio_options){.size = sizeof(strand_prio_options), .permits = 2});
    STRAND_SCOPE(s);
    for (int i = 0; i < 8; i++)
        strand_spawn(s, task_of_several_requests, &service);
    strand_scope_join(s);
    CHECK_EQ(strand_prio_in_flight(&service.tasks), 0);
    *most_tasks = service.most_tasks;
    *most_requests = service.most_requests;
}

static void *limit_the_requests_of_tasks(void *arg)
{
    strand_limit limit;
    int tasks, requests;
    strand_limit_init(&limit, 3, "requests");
    run_tasks(&tasks, &requests);
    CHECK(tasks == 2 || (test_seed() && tasks < 2));
    CHECK(test_seed() || requests > 3); /* the semaphore of tasks alone does not limit these */
    STRAND_LIMIT(&limit);
    run_tasks(&tasks, &requests);
    CHECK(tasks == 2 || (test_seed() && tasks < 2));
    CHECK(requests == 3 || (test_seed() && requests < 3));
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
    return arg;
}

/* */
TEST(a_limit_holds_where_tasks_with_a_permit_each_have_several_requests_at_a_time)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, limit_the_requests_of_tasks, NULL);
}

/* ---- wrapping a client: somebody else's, which knows nothing of limits --------------------------------------- */

struct kv;
struct kv_ops {
    int (*get)(struct kv *self, int key);
    int (*put)(struct kv *self, int key, int value);
    void (*flush)(struct kv *self);
};
struct kv {
    const struct kv_ops *ops;
    const char *name; /* clients read it */
};

struct store {
    struct kv base;
    _Atomic int values[10], inside, most, flushed;
};

static void visit(struct store *store)
{
    int now = ++store->inside;
    if (now > store->most)
        store->most = now;
    strand_yield();
    store->inside--;
}

static int store_get(struct kv *self, int key)
{
    visit((struct store *)self);
    return ((struct store *)self)->values[key];
}

static int store_put(struct kv *self, int key, int value)
{
    visit((struct store *)self);
    ((struct store *)self)->values[key] = value;
    return 0;
}

static void store_flush(struct kv *self)
{
    visit((struct store *)self);
    ((struct store *)self)->flushed++;
}

static const struct kv_ops store_ops = {store_get, store_put, store_flush};

/* A client's code, which is not changed either. */
static void *count_up(void *client)
{
    struct kv *kv = client;
    kv->ops->put(kv, 1, kv->ops->get(kv, 1) + 1);
    kv->ops->flush(kv);
    return NULL;
}

#define KV_OPERATIONS(value, nothing)                                                                                  \
    value(kv, int, get, (struct kv * self, int key), (inner, key))                                                     \
        value(kv, int, put, (struct kv * self, int key, int number), (inner, key, number))                             \
            nothing(kv, flush, (struct kv * self), (inner))
STRAND_DELEGATE(kv, KV_OPERATIONS)
STRAND_DELEGATE_LIMITED(kv, KV_OPERATIONS)

/* */
TEST_INSIDE(a_wrapper_delegates_what_it_does_not_override)
{
    struct store store = {.base = {&store_ops, "store"}};
    struct kv_ops ops = kv_delegated();
    struct kv_wrapper wrapper = kv_wrap(&store.base, &ops);
    count_up(&wrapper.base);
    count_up(&wrapper.base);
    CHECK_EQ(store.values[1], 2);
    CHECK_EQ(store.flushed, 2);
}

/* */
TEST_INSIDE(a_wrapper_starts_with_the_fields_of_the_wrapped_one)
{
    struct store store = {.base = {&store_ops, "store"}};
    struct kv_ops ops = kv_delegated();
    struct kv_wrapper wrapper = kv_wrap(&store.base, &ops);
    CHECK_STR(wrapper.base.name, "store");
    CHECK(wrapper.base.ops == &ops);
    CHECK_PTR(kv_inner(&wrapper.base), &store.base);
}

static int put_tenfold(struct kv *self, int key, int value)
{
    struct kv *inner = kv_inner(self);
    return inner->ops->put(inner, key, 10 * value);
}

/* */
TEST_INSIDE(an_operation_that_is_overridden_reaches_the_wrapped_one_and_the_others_do_not_notice)
{
    struct store store = {.base = {&store_ops, "store"}};
    struct kv_ops ops = kv_delegated();
    ops.put = put_tenfold;
    struct kv_wrapper wrapper = kv_wrap(&store.base, &ops);
    count_up(&wrapper.base);
    CHECK_EQ(store.values[1], 10);
    count_up(&store.base);
    CHECK_EQ(store.values[1], 11);
    CHECK_EQ(store.flushed, 2);
}

static void count_up_many_times(struct kv *kv)
{
    STRAND_SCOPE(s);
    for (int i = 0; i < 10; i++)
        strand_spawn(s, count_up, kv);
    strand_scope_join(s);
}

/* One thread: the store is nobody's who shares. */
static void *limit_a_client(void *arg)
{
    strand_limit limit;
    strand_limit_init(&limit, 3, NULL);
    struct store store = {.base = {&store_ops, "store"}};
    struct kv_ops ops = kv_limited();
    struct kv_wrapper wrapper = kv_wrap(&store.base, &ops);
    count_up_many_times(&store.base);
    CHECK(test_seed() || store.most > 3);
    store.most = 0;
    STRAND_LIMIT(&limit);
    count_up_many_times(&wrapper.base);
    CHECK(store.most == 3 || (test_seed() && store.most < 3));
    CHECK_EQ(store.flushed, 20);
    CHECK_EQ(strand_limit_in_flight(&limit), 0);
    return arg;
}

/* */
TEST(a_limited_wrapper_runs_each_operation_within_the_limits_that_hold_where_it_is_called)
{
    strand_options options = test_options();
    options.threads = 1;
    strand_run(&options, limit_a_client, NULL);
}

/* A client in the context: a user of it does not see that it is wrapped. */
static const strand_key CLIENT = STRAND_KEY("client");

static void *use_the_client(void *arg)
{
    (void)arg;
    return count_up(strand_local(&CLIENT));
}

/* */
TEST_INSIDE(a_wrapped_client_can_be_put_into_the_context)
{
    struct store store = {.base = {&store_ops, "store"}};
    struct kv_ops ops = kv_limited();
    struct kv_wrapper wrapper = kv_wrap(&store.base, &ops);
    strand_limit limit;
    strand_limit_init(&limit, 1, NULL);
    STRAND_SCOPE(s);
    STRAND_LOCAL(&CLIENT, &wrapper.base);
    STRAND_LIMIT(&limit);
    strand_join(strand_spawn(s, use_the_client, NULL));
    CHECK_EQ(store.values[1], 1);
}
