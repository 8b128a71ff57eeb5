/*
 * A program that uses what has casts and initialisers behind its macros, in C and in C++. It is compiled with the
 * options of the file that includes this one.
 */
#include "strand.h"

#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/changes.h"
#include "strand/date.h"
#include "strand/debug.h"
#include "strand/file.h"
#include "strand/io.h"
#include "strand/limit.h"
#include "strand/monitor.h"
#include "strand/pool.h"
#include "strand/port.h"
#include "strand/process.h"
#include "strand/scheduler.h"
#include "strand/select.h"
#include "strand/sim.h"
#include "strand/socket.h"
#include "strand/sync.h"

#include <string.h>

#ifdef __cplusplus
#define FROM_VOID(type, pointer) static_cast<type>(pointer)
#else
#define FROM_VOID(type, pointer) (pointer)
#endif

STRAND_MESSAGE_DECLARE(ping, { int n; });
STRAND_MESSAGE_DECLARE(pong, { int n; });
STRAND_MESSAGE_DEFINE(ping, NULL);
STRAND_MESSAGE_DEFINE(pong, NULL);
STRAND_MONITOR(counter, { int count; });

static const strand_kind MINE = STRAND_KIND("MINE", &STRAND_ERROR);

static void receive(void *state, strand_message *message)
{
    const ping *asked = STRAND_IS(message, ping);
    (void)state;
    if (asked)
        STRAND_IGNORE(strand_reply(message, STRAND_MSG(pong, .n = asked->n)));
    else
        strand_throw(&MINE, "a message of %zu bytes", message->size);
}

static const strand_actor_class echo = STRAND_ACTOR_CLASS(.name = "echo", .receive = receive);

static void push(void *state, strand_task *task, enum strand_task_origin how, int thread)
{
    strand_task **only = FROM_VOID(strand_task **, state);
    (void)how, (void)thread;
    *only = task;
}

static strand_task *pick(void *state, int thread)
{
    strand_task **only = FROM_VOID(strand_task **, state);
    (void)thread;
    return *only;
}

static const strand_scheduler single =
    STRAND_SCHEDULER(.name = "single", .state_size = sizeof(void *), .push = push, .pick = pick);

struct store {
    const struct store_ops *ops;
};
struct store_ops {
    int (*get)(struct store *self, int key);
    void (*flush)(struct store *self);
};
#define STORE_OPERATIONS(value, nothing)                                                                               \
    value(store, int, get, (struct store * self, int key), (inner, key))                                               \
        nothing(store, flush, (struct store * self), (inner))
STRAND_DELEGATE(store, STORE_OPERATIONS)
STRAND_DELEGATE_LIMITED(store, STORE_OPERATIONS)

static void *root(void *arg)
{
    struct counter *monitor = FROM_VOID(struct counter *, arg);
    STRAND_ACTORS(system, NULL);
    strand_actor actor = strand_actor_spawn(system, STRAND_ACTOR_ATTR(.name = "a"), &echo, NULL, 0);
    pong answer;
    pong *given;
    if (strand_ask(actor, STRAND_MSG(ping, .n = 1), STRAND_INTO(pong, &answer)) < 0 ||
        strand_ask(actor, STRAND_MSG(ping, .n = 2), STRAND_INTO_GIVEN(pong, &given)) < 0)
        strand_throw_with(&MINE, STRAND_THROW_INFO(.code = -5), "no answer: %d", 5);
    STRAND_MONITOR_ENTER(counter, inside, monitor);
    inside->count += answer.n;
    return arg;
}

int main(void)
{
    struct counter monitor;
    memset(&monitor, 0, sizeof monitor);
    return strand_run(STRAND_OPTIONS(.threads = 2, .custom = &single), root, &monitor) == 0;
}
