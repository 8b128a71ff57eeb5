/*
 * Asking all actors of a router: the first answer counts, and there is an error only if there is no answer.
 */
#define SUITE router_ask
#include "test.h"

#include "strand/actor.h"
#include "strand/sync.h"

#include <errno.h>

enum { WORKERS = 3 };
/* What one of them does with a question. */
enum { FAIL, ANSWER, ANSWER_WRONGLY, FORGET, END, UNHANDLED };

static _Atomic int drops, workers, tried;

static void count_drop(void *body)
{
    (void)body;
    drops++;
}

STRAND_MESSAGE(question, { int how[WORKERS]; });
STRAND_MESSAGE_WITH(answer, count_drop, { int who; });
STRAND_MESSAGE(other, { int who; });

static void get_number(void *state, const void *args)
{
    (void)args;
    *(int *)state = workers++ % WORKERS;
}

static void work(void *state, strand_message *message)
{
    int me = *(int *)state, how = STRAND_IS(message, question)->how[me];
    if (how == FAIL)
        tried++;
    if (how == FAIL)
        strand_throw(&TEST_ERROR, "failed");
    if (how == ANSWER)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(answer, me)));
    if (how == ANSWER_WRONGLY)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(other, me)));
    if (how == UNHANDLED)
        strand_message_unhandled(message);
    if (how == END)
        CHECK_EQ(strand_actor_stop(strand_actor_self(), STRAND_STOP_NEXT), 0);
}

/* It waits until the others have failed. */
static void work_late(void *state, strand_message *message)
{
    if (STRAND_IS(message, question)->how[*(int *)state] == ANSWER)
        while (tried < WORKERS - 1)
            strand_yield();
    work(state, message);
}

static enum strand_directive resume(void *none, strand_actor child, const strand_exception *why)
{
    (void)none, (void)child, (void)why;
    return STRAND_RESUME;
}

static const strand_actor_class
    worker = {.size = sizeof worker, .name = "worker", .state_size = sizeof(int), .receive = work, .start = get_number},
    late = {.size = sizeof late, .name = "late", .state_size = sizeof(int), .receive = work_late, .start = get_number};

static int ask_all(const strand_actor_class *class, question q, answer *got)
{
    workers = tried = drops = 0;
    STRAND_ACTORS(system, NULL);
    strand_actor r = strand_router_spawn(
        system, NULL, STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WORKERS, .class_ = class, .decide = resume));
    int error = strand_ask(r, &question_message, &q, sizeof q, STRAND_INTO(answer, got));
    strand_actors_join(system);
    return error;
}

TEST_INSIDE(asking_all_gets_the_first_answer_although_others_fail)
{
    answer got = {-1};
    CHECK_EQ(ask_all(&late, (question){{FAIL, ANSWER, FAIL}}, &got), 0);
    CHECK_EQ(got.who, 1);
    CHECK_EQ(drops, 0);
    CHECK_EQ(ask_all(&worker, (question){{FORGET, END, ANSWER}}, &got), 0);
    CHECK_EQ(got.who, 2);
    CHECK_EQ(ask_all(&worker, (question){{ANSWER_WRONGLY, FORGET, ANSWER}}, &got), 0);
    CHECK_EQ(got.who, 2);
    CHECK_EQ(ask_all(&worker, (question){{UNHANDLED, FORGET, ANSWER}}, &got), 0);
    CHECK_EQ(got.who, 2);
}

TEST_INSIDE(asking_all_gets_one_answer_and_the_others_are_dropped)
{
    answer got = {-1};
    CHECK_EQ(ask_all(&worker, (question){{ANSWER, ANSWER, ANSWER}}, &got), 0);
    CHECK_EQ(drops, WORKERS - 1);
}

TEST_INSIDE(asking_all_gets_an_error_when_no_routee_can_answer)
{
    answer got = {-1};
    CHECK_EQ(ask_all(&worker, (question){{FAIL, FAIL, FAIL}}, &got), -EPIPE);
    CHECK_EQ(tried, WORKERS);
    CHECK_EQ(ask_all(&worker, (question){{FAIL, END, FAIL}}, &got), -EPIPE);
    CHECK_EQ(ask_all(&worker, (question){{UNHANDLED, UNHANDLED, UNHANDLED}}, &got), -EPIPE);
    CHECK_EQ(ask_all(&worker, (question){{ANSWER_WRONGLY, ANSWER_WRONGLY, ANSWER_WRONGLY}}, &got), -EBADMSG);
}

/* ---- routers of routers ------------------------------------------------------------------------------------ */

/* It has a router of its own, to which it passes on what it is asked. */
static void pass_down(void *state, strand_message *message)
{
    strand_actor *below = state;
    if (!below->bits[1])
        *below = strand_router_spawn(
            strand_actor_system(), NULL,
            STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WORKERS, .class_ = &worker, .decide = resume));
    CHECK_EQ(strand_message_forward(message, *below), 0);
}

static const strand_actor_class passing = {
    .size = sizeof passing, .name = "passing", .state_size = sizeof(strand_actor), .receive = pass_down};

TEST_INSIDE(all_of_all_are_asked_through_routers_below_routers)
{
    answer got = {-1};
    CHECK_EQ(ask_all(&passing, (question){{FAIL, ANSWER, FORGET}}, &got), 0);
    CHECK_EQ(got.who, 1);
    CHECK_EQ(ask_all(&passing, (question){{FAIL, FAIL, FAIL}}, &got), -EPIPE);
    CHECK_EQ(tried, WORKERS * WORKERS);
}
