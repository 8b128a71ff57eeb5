/*
 * Joining all children of a scope: they are consumed in the order in which they end, while others still run. And what
 * the log says of a scope whose children end and are not consumed.
 */
#define SUITE scope_join
#include "test.h"

#include "strand/sync.h"

enum { CHILDREN = 4 };

static _Atomic int dropped, order_is_kept;
static strand_event turns[CHILDREN + 1];

/* A result is the number of its child, which ends as that one. */
static void drop_number(void *number)
{
    order_is_kept = order_is_kept && (intptr_t)number == dropped + 1;
    dropped++;
}

static void begin(void)
{
    memset(turns, 0, sizeof turns);
    dropped = 0;
    order_is_kept = 1;
}

static void *end_in_turn(void *number)
{
    strand_event_wait(&turns[(intptr_t)number]);
    return number;
}

static strand spawn_numbered(strand_scope scope, strand_fn *fn, int number)
{
    return strand_spawn_with(scope, STRAND_ATTR(.drop = drop_number), fn, TEST_PTR(number), 0);
}

/* ---- the order of ends ------------------------------------------------------------------------------------- */

/* When the owner joins the scope, ends its children one after the other. */
static void *end_them(void *arg)
{
    test_await_blocked("joins its scope", 1);
    for (int i = 1; i <= CHILDREN; i++) {
        strand_event_set(&turns[i]);
        test_yield_until(&dropped, i);
    }
    return arg;
}

static void join_while_they_end(unsigned flags)
{
    begin();
    STRAND_SCOPE(outer);
    strand other = strand_spawn(outer, end_them, NULL);
    STRAND_SCOPE_WITH(scope, flags);
    for (int i = CHILDREN; i >= 1; i--) /* the oldest ends last */
        spawn_numbered(scope, end_in_turn, i);
    strand_scope_join(scope);
    CHECK_EQ(dropped, CHILDREN);
    CHECK(order_is_kept);
    strand_join(other);
}

TEST_INSIDE(children_are_consumed_as_they_end_whatever_the_flags_of_the_scope)
{
    static const unsigned flags[] = {0, STRAND_OPEN, STRAND_TOGETHER, STRAND_COLLECT, STRAND_SERVICE};
    for (int i = 0; i < 5; i++)
        join_while_they_end(flags[i]);
}

/* When the owner has consumed so many, ends child number 1. */
static void *end_one_after(void *count)
{
    test_yield_until(&dropped, (int)(intptr_t)count);
    strand_event_set(&turns[1]);
    return count;
}

static void drop_any(void *number)
{
    (void)number;
    dropped++;
}

static void spawn_dropped(strand_scope scope, strand_fn *fn, int turn)
{
    strand_spawn_with(scope, STRAND_ATTR(.drop = drop_any), fn, TEST_PTR(turn), 0);
}

TEST_INSIDE(children_that_had_ended_before_do_not_wait_for_an_older_one)
{
    begin();
    STRAND_SCOPE(outer);
    strand other = strand_spawn(outer, end_one_after, TEST_PTR(2));
    STRAND_SCOPE(scope);
    spawn_dropped(scope, end_in_turn, 1);
    for (int i = 0; i < 2; i++)
        strand_wait(strand_spawn_with(scope, STRAND_ATTR(.drop = drop_any), test_return, NULL, 0));
    CHECK_EQ(dropped, 0);
    strand_scope_join(scope);
    CHECK_EQ(dropped, 3);
    strand_join(other);
}

TEST_INSIDE(of_many_children_none_is_kept_until_the_oldest_has_ended)
{
    enum { MANY = 1000 };
    begin();
    STRAND_SCOPE(outer);
    strand other = strand_spawn(outer, end_one_after, TEST_PTR(MANY));
    STRAND_SCOPE(scope);
    spawn_dropped(scope, end_in_turn, 1);
    for (int i = 0; i < MANY; i++)
        spawn_dropped(scope, end_in_turn, 2);
    strand_event_set(&turns[2]);
    strand_scope_join(scope);
    CHECK_EQ(dropped, MANY + 1);
    strand_join(other);
}

static void set_next(void *number)
{
    strand_event_set(&turns[(intptr_t)number + 1]);
}

/* Each waits for the drop function of the one before. */
TEST_INSIDE(a_child_may_wait_for_the_drop_function_of_another_however_many_there_are)
{
    enum { LINKS = CHILDREN - 1, OTHERS = 100 };
    begin();
    STRAND_SCOPE(scope);
    for (int i = 0; i < OTHERS; i++)
        strand_spawn(scope, end_in_turn, TEST_PTR(CHILDREN));
    for (int i = 1; i <= LINKS; i++)
        strand_spawn_with(scope, STRAND_ATTR(.drop = set_next), end_in_turn, TEST_PTR(i), 0);
    strand_event_set(&turns[1]);
    strand_scope_join(scope);
}

static void *join_until_interrupted(void *scope)
{
    STRAND_DEADLINE(strand_in(STRAND_MS));
    strand_scope_join(*(strand_scope *)scope);
    return NULL;
}

/* The second join finds some that the first one has prepared, and one that has come since. */
static strand_scope joined;
static _Atomic int spawned;

static void *count_one(void *arg)
{
    strand_yield();
    spawned++;
    return arg;
}

static void spawn_another(void *scope_is_joined)
{
    (void)scope_is_joined;
    strand_spawn(joined, count_one, NULL);
}

TEST_INSIDE(a_join_waits_for_children_that_drop_functions_spawn_meanwhile)
{
    for (int i = 0; i < 3; i++) {
        STRAND_SCOPE(scope);
        joined = scope;
        spawned = 0;
        for (int k = 0; k < CHILDREN; k++)
            strand_spawn_with(scope, STRAND_ATTR(.drop = spawn_another), count_one, &spawned, 0);
        strand_scope_join(scope);
        CHECK_EQ(spawned, 2 * CHILDREN);
        CHECK_EQ(strand_scope_count(scope), 0);
    }
}

TEST_INSIDE(a_join_that_was_interrupted_can_be_made_again_or_child_by_child)
{
    begin();
    STRAND_SCOPE(scope);
    strand first = strand_spawn(scope, end_in_turn, TEST_PTR(1));
    spawn_dropped(scope, end_in_turn, 2);
    CHECK_THROWS(join_until_interrupted, &scope, &STRAND_TIMED_OUT);
    spawn_dropped(scope, end_in_turn, 2);
    CHECK_EQ(strand_scope_count(scope), 3);
    for (int i = 1; i <= 2; i++)
        strand_event_set(&turns[i]);
    CHECK_EQ((intptr_t)strand_join(first), 1);
    CHECK_EQ(dropped, 0);
    strand_scope_join(scope);
    CHECK_EQ(dropped, 2);
    CHECK_EQ(strand_scope_count(scope), 0);
}

/* ---- what the log says ------------------------------------------------------------------------------------- */

enum { TOO_MANY = 10000 };

static _Atomic int messages;
static char message[300];

static void keep_message(const char *text, void *arg)
{
    (void)arg;
    if (!messages++)
        snprintf(message, sizeof message, "%s", text);
}

struct crowd {
    unsigned flags;
    int count;
    bool joins;
};

static void *gather(void *arg)
{
    const struct crowd *crowd = arg;
    STRAND_SCOPE_WITH(scope, crowd->flags);
    for (int i = 0; i < crowd->count; i++) {
        strand child = strand_spawn(scope, test_return, arg);
        if (crowd->joins)
            strand_join(child);
        else
            strand_wait(child);
    }
    strand_scope_join(scope);
    return arg;
}

static int messages_of(struct crowd crowd)
{
    strand_options options = test_options();
    options.on_log = keep_message;
    messages = 0;
    memset(message, 0, sizeof message);
    strand_run(&options, gather, &crowd);
    return messages;
}

TEST_REAL(the_log_warns_once_of_a_scope_that_keeps_many_children_that_have_ended)
{
    static const unsigned flags[] = {0, STRAND_OPEN, STRAND_TOGETHER, STRAND_COLLECT};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(messages_of((struct crowd){.flags = flags[i], .count = 2 * TOO_MANY + 2}), 1);
        CHECK_CONTAINS(message, "scope_join.c:");
        CHECK_CONTAINS(message, "10000 strands");
        CHECK_CONTAINS(message, "STRAND_SERVICE");
    }
}

TEST_REAL(the_log_says_nothing_of_a_scope_that_keeps_fewer_or_of_a_service)
{
    CHECK_EQ(messages_of((struct crowd){.count = TOO_MANY - 1}), 0);
    CHECK_EQ(messages_of((struct crowd){.flags = STRAND_COLLECT, .count = TOO_MANY - 1}), 0);
    CHECK_EQ(messages_of((struct crowd){.flags = STRAND_SERVICE, .count = 2 * TOO_MANY}), 0);
    CHECK_EQ(messages_of((struct crowd){.count = 2 * TOO_MANY, .joins = true}), 0);
}

static void *spawn_and_join_all(void *arg)
{
    enum { MANY = 17 * TOO_MANY }; /* the joiner wakes at every sixteenth part of them */
    STRAND_SCOPE_WITH(scope, STRAND_COLLECT);
    for (int i = 0; i < MANY; i++)
        strand_spawn(scope, test_return, arg);
    strand_scope_join(scope);
    strand_join(strand_spawn(scope, test_return, arg)); /* this call would log */
    return arg;
}

/* On one thread they all end during the join. */
TEST_REAL(the_log_says_nothing_of_those_that_end_while_the_scope_is_joined)
{
    strand_options options = test_options();
    options.on_log = keep_message;
    options.threads = 1;
    messages = 0;
    strand_run(&options, spawn_and_join_all, NULL);
    CHECK_EQ(messages, 0);
}

/* The number of children that have ended goes up to the limit again and again. */
static void *go_below_and_above(void *arg)
{
    STRAND_SCOPE_WITH(scope, *(unsigned *)arg);
    strand child = {{0}};
    for (int i = 0; i < TOO_MANY; i++)
        strand_wait(child = strand_spawn(scope, test_return, NULL));
    for (int i = 0; i < 5; i++) {
        strand_join(child);
        strand_wait(child = strand_spawn(scope, test_return, NULL));
        strand_wait(strand_spawn(scope, test_return, NULL)); /* the next spawn logs */
    }
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(the_log_warns_once_though_the_limit_is_reached_again)
{
    static unsigned flags[] = {0, STRAND_OPEN, STRAND_COLLECT};
    for (int i = 0; i < 3; i++) {
        strand_options options = test_options();
        options.on_log = keep_message;
        messages = 0;
        strand_run(&options, go_below_and_above, &flags[i]);
        CHECK(messages <= 1);
    }
}

static void *end_together(void *arg)
{
    strand_event_wait(arg);
    return arg;
}

/* Strands that run are not counted, and the ended ones beside them are. */
static void *gather_beside_some_that_run(void *arg)
{
    static strand_event over;
    over = (strand_event){0};
    int running = *(int *)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < running; i++)
        strand_spawn(scope, end_together, &over);
    for (int i = 0; i < TOO_MANY; i++)
        strand_wait(strand_spawn(scope, test_return, NULL));
    CHECK_EQ(messages, 0);
    for (int i = 0; i < TOO_MANY; i++)
        strand_wait(strand_spawn(scope, test_return, NULL));
    CHECK_EQ(messages, 1);
    strand_event_set(&over);
    strand_scope_join(scope);
    return arg;
}

TEST_REAL(children_that_run_are_not_counted_among_those_that_have_ended)
{
    int running = 500;
    strand_options options = test_options();
    options.on_log = keep_message;
    messages = 0;
    strand_run(&options, gather_beside_some_that_run, &running);
}
