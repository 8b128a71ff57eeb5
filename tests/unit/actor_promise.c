/*
 * How many promises there are: what a question to many actors has needed is given back when the asker goes on, even if
 * those actors never answer.
 */
#include "arch_check.h"

#include "actor/actor_layer.h"
#include "actor/promise.h"
#include "strand/core.h"

#include "../../include/strand/actor.h"
#include "../../include/strand/sync.h"

enum { WIDTH = 3, MANY = 50 };

STRAND_MESSAGE(question, { char none; });
STRAND_MESSAGE(answer, { char none; });

static _Atomic int begun, handled; /* of the question that is asked now */
static bool nobody_answers;
static strand_actor asked;

static void count(void *object, void *arg)
{
    uint64_t word = atomic_load_explicit(&((struct promise *)object)->word, memory_order_relaxed);
    *(int *)arg += word && !(word & WORD_FREE);
}

/* In use now; the door of the system is one of them. */
static int promises(void)
{
    int n = 0;
    slab_each(&actor_run_of(thread_self())->promises, count, &n);
    return n;
}

static void work(void *state, strand_message *message)
{
    (void)state;
    if (begun++ % WIDTH == 0 && !nobody_answers)
        (void)!strand_reply(message, STRAND_MSG(answer));
    handled++;
}

static const strand_actor_class worker = {.size = sizeof worker, .name = "worker", .receive = work};

/* It has a router of its own. */
static void start_above(void *state, const void *args)
{
    (void)args;
    *(strand_actor *)state = strand_router_spawn(
        strand_actor_system(), NULL, STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WIDTH, .class_ = &worker));
}

static void pass_down(void *state, strand_message *message)
{
    CHECK_EQUAL(strand_message_forward(message, *(strand_actor *)state), 0);
}

static const strand_actor_class above = {.size = sizeof above,
                                         .name = "above",
                                         .state_size = sizeof(strand_actor),
                                         .receive = pass_down,
                                         .start = start_above};

static void ask(void)
{
    answer got;
    int error = strand_ask(asked, STRAND_MSG(question), STRAND_INTO(answer, &got));
    CHECK_EQUAL(error, 0);
}

/* Nobody answers: so it is interrupted. */
static void *ask_in_vain(void *arg)
{
    ask();
    return arg;
}

/* When all have handled it, its parts depend on their ends. */
static void ask_often(strand_actor all, int actors)
{
    int before = 0;
    asked = all;
    for (int i = 0; i <= MANY; i++) {
        STRAND_SCOPE(scope);
        begun = handled = 0;
        strand asker = {{0, 0}};
        if (nobody_answers)
            asker = strand_spawn(scope, ask_in_vain, NULL);
        else
            ask();
        while (handled < actors)
            strand_yield();
        if (nobody_answers) {
            strand_cancel(asker, "enough");
            strand_wait(asker);
        }
        if (!i)
            before = promises();
    }
    CHECK_EQUAL(promises(), before);
}

static void *ask_all(void *arg)
{
    STRAND_ACTORS(system, NULL);
    strand_actor flat =
        strand_router_spawn(system, NULL, STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WIDTH, .class_ = &worker));
    strand_actor deep =
        strand_router_spawn(system, NULL, STRAND_ROUTER(.route = STRAND_ROUTE_ALL, .count = WIDTH, .class_ = &above));
    for (int i = 0; i < 2; i++) {
        nobody_answers = i;
        ask_often(flat, WIDTH);
        ask_often(deep, WIDTH * WIDTH);
    }
    return arg;
}

int main(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        strand_options options = {.size = sizeof options, .threads = threads};
        strand_run(&options, ask_all, NULL);
    }
    return failures != 0;
}
