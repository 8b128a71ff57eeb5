/*
 * A call of a public function with a damaged handle: the argument names the call; without an argument the program
 * prints all names. The handle has a flipped bit, each of its bits in turn, or random bits. The call has to report
 * misuse, or that the object is gone; a handle that still names the object is fine, too. Each handle has a process of
 * its own; the handles whose process ends in another way are printed.
 */
#include "strand.h"
#include "strand/actor.h"
#include "strand/chan.h"
#include "strand/io.h"
#include "strand/pool.h"
#include "strand/port.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEP 16 /* a process takes long */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STEP 16
#endif
#endif
#ifndef STEP
#define STEP 1
#endif

enum { BITS = 128, RANDOM = 32, LIMIT_S = 120 };

/* What all handles look like. */
union handle {
    uint64_t bits[2];
    strand strand;
    strand_scope scope;
    strand_chan chan;
    strand_port port;
    strand_pool pool;
    strand_run_handle run;
    strand_fibre fibre;
    strand_crew crew;
    strand_signals signals;
    strand_actor actor;
    strand_actors actors;
};

/* The bit that is flipped; from BITS on: the number of a random handle. */
static unsigned change;

static uint64_t random_bits(void)
{
    static uint64_t state;
    state += change * UINT64_C(0x9e3779b97f4a7c15) + 1;
    uint64_t x = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Random handles: all of it, a place close to the object's, a place in the memory that such objects have. */
static void spoil(union handle *it)
{
    if (change < BITS)
        it->bits[change / 64] ^= UINT64_C(1) << change % 64;
    else if (change % 3 == 0)
        it->bits[0] = random_bits(), it->bits[1] = random_bits();
    else if (change % 3 == 1)
        it->bits[0] += random_bits() % 65536 - 32768;
    else
        it->bits[0] ^= random_bits() % ((uint64_t)1 << 40);
}

static void *return_arg(void *arg)
{
    return arg;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

#define STRAND_CALL(name, expression)                                                                                  \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        STRAND_SCOPE_OPEN(scope);                                                                                      \
        union handle it = {.strand = strand_spawn(scope, return_arg, NULL)};                                           \
        spoil(&it);                                                                                                    \
        expression;                                                                                                    \
    }
STRAND_CALL(ended, strand_ended(it.strand))
STRAND_CALL(cancel, strand_cancel(it.strand, NULL))
STRAND_CALL(wait_for, strand_wait(it.strand))
STRAND_CALL(join, strand_join(it.strand))
STRAND_CALL(hand_off, STRAND_IGNORE(strand_hand_off(it.strand, scope)))

#define OPENED_CALL(name, member, open, expression)                                                                    \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        STRAND_SCOPE(scope);                                                                                           \
        union handle it = {.member = (open)};                                                                          \
        spoil(&it);                                                                                                    \
        expression;                                                                                                    \
    }
OPENED_CALL(count, scope, scope, strand_scope_count(it.scope))
OPENED_CALL(cancel_scope, scope, scope, strand_scope_cancel(it.scope, NULL))
OPENED_CALL(spawn, scope, scope, strand_spawn(it.scope, return_arg, NULL))

static long value;
#define CHAN strand_chan_open(scope, sizeof value, 1, NULL)
OPENED_CALL(chan_length, chan, CHAN, strand_chan_length(it.chan))
OPENED_CALL(chan_send, chan, CHAN, STRAND_IGNORE(strand_chan_try_send(it.chan, &value)))
OPENED_CALL(chan_post, chan, CHAN, STRAND_IGNORE(strand_chan_post(it.chan, &value)))
OPENED_CALL(chan_close, chan, CHAN, strand_chan_close(it.chan))

#define PORT strand_port_open(scope, sizeof value, 1, NULL)
OPENED_CALL(port_send, port, PORT, STRAND_IGNORE(strand_port_send(it.port, &value, sizeof value)))
OPENED_CALL(port_receive, port, PORT, STRAND_IGNORE(strand_port_try_receive(it.port, &value, sizeof value)))
OPENED_CALL(port_close, port, PORT, strand_port_close(it.port))

#define POOL strand_pool_open(scope, NULL)
OPENED_CALL(pool_info, pool, POOL,
            strand_pool_info_get(it.pool, &(struct strand_pool_info){.size = sizeof(struct strand_pool_info)}))
OPENED_CALL(run_stop, run, strand_run_self(), strand_run_stop(it.run, 0, NULL))
OPENED_CALL(pool_spawn, pool, POOL, strand_scope_cancel(scope, NULL);
            strand_spawn_with(scope, STRAND_ATTR(.pool = it.pool), return_arg, NULL, 0))

#define FIBRE strand_fibre_open(scope, NULL)
OPENED_CALL(fibre_count, fibre, FIBRE, strand_fibre_count(it.fibre))
OPENED_CALL(fibre_trim, fibre, FIBRE, strand_fibre_trim(it.fibre))
OPENED_CALL(fibre_spawn, fibre, FIBRE,
            strand_join(strand_spawn_with(scope, STRAND_ATTR(.fibre = it.fibre), return_arg, NULL, 0)))

#define CREW strand_crew_open(scope, NULL)
OPENED_CALL(crew_info, crew, CREW,
            strand_crew_info_get(it.crew, &(struct strand_crew_info){.size = sizeof(struct strand_crew_info)}))
OPENED_CALL(crew_offload, crew, CREW, strand_offload_on(it.crew, return_arg, NULL))

static void signal_wait(void)
{
    STRAND_SIGNALS(usr1, SIGUSR1);
    union handle it = {.signals = usr1};
    spoil(&it);
    raise(SIGUSR1);
    strand_wait_signal(it.signals);
}

STRAND_MESSAGE(ping, { bool spoils; });

/* The state of an actor lies behind its cell: words that an actor's own could be. */
enum { STATE_WORDS = 24 };
static void begin(void *state, const void *args)
{
    (void)args;
    for (uint64_t *word = state; word < (uint64_t *)state + STATE_WORDS; word++)
        *word = 2;
}

/* The sender of a question is a handle too. */
static void receive(void *state, strand_message *message)
{
    (void)state;
    union handle it = {.actor = message->sender};
    const ping *question = STRAND_IS(message, ping);
    if (question && question->spoils) {
        spoil(&it);
        strand_tell(it.actor, STRAND_MSG(ping, .spoils = false));
    }
    STRAND_IGNORE(strand_reply(message, STRAND_MSG(ping, .spoils = false)));
}

static const strand_actor_class spoiling = {.size = sizeof spoiling,
                                            .name = "spoiling",
                                            .state_size = STATE_WORDS * sizeof(uint64_t),
                                            .start = begin,
                                            .receive = receive};

static bool ask(strand_actor actor, bool spoils)
{
    ping answer;
    return strand_ask(actor, STRAND_MSG(ping, .spoils = spoils), STRAND_INTO(ping, &answer)) == 0;
}

#define ACTOR_CALL(name, member, value, expression)                                                                    \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        STRAND_ACTORS(system, NULL);                                                                                   \
        strand_actor actor = strand_actor_spawn(system, NULL, &spoiling, NULL, 0);                                     \
        ask(actor, false); /* it has begun */                                                                          \
        union handle it = {.member = (value)};                                                                         \
        spoil(&it);                                                                                                    \
        expression;                                                                                                    \
    }
ACTOR_CALL(actor_tell, actor, actor, strand_tell(it.actor, STRAND_MSG(ping, .spoils = false)))
ACTOR_CALL(actor_ask, actor, actor, ask(it.actor, false))
ACTOR_CALL(actor_answer, actor, actor, ask(actor, true))
ACTOR_CALL(actor_ended, actor, actor, strand_actor_ended(it.actor))
ACTOR_CALL(actor_path, actor, actor, strand_actor_path(it.actor, NULL, 0))
ACTOR_CALL(actor_stop, actor, actor, strand_actor_stop(it.actor, STRAND_STOP_NEXT))
ACTOR_CALL(system_find, actors, system, strand_actor_find(it.actors, "/user/nobody"))
ACTOR_CALL(system_spawn, actors, system, strand_actor_spawn(it.actors, NULL, &spoiling, NULL, 0))

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
#define ROW(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    ROW(ended),       ROW(cancel),       ROW(wait_for),     ROW(join),        ROW(hand_off),     ROW(count),
    ROW(spawn),       ROW(cancel_scope), ROW(chan_length),  ROW(chan_send),   ROW(chan_post),    ROW(chan_close),
    ROW(port_send),   ROW(port_receive), ROW(port_close),   ROW(pool_info),   ROW(run_stop),     ROW(pool_spawn),
    ROW(fibre_count), ROW(fibre_trim),   ROW(fibre_spawn),  ROW(crew_info),   ROW(crew_offload), ROW(signal_wait),
    ROW(actor_tell),  ROW(actor_ask),    ROW(actor_answer), ROW(actor_ended), ROW(actor_path),   ROW(actor_stop),
    ROW(system_find), ROW(system_spawn),
};

/* ---- a process for each ------------------------------------------------------------------------------------------ */

static void quiet(const strand_misuse *misuse, void *arg)
{
    (void)misuse, (void)arg;
    _exit(0);
}

static void *root(void *arg)
{
    calls[(intptr_t)arg].call();
    return arg;
}

static void make_call(size_t i)
{
    strand_exception *e = NULL;
    alarm(LIMIT_S);
    strand_run(STRAND_OPTIONS(.on_misuse = quiet, .uncaught = &e), root, (void *)(intptr_t)i);
    _exit(0);
}

static bool ends_well(size_t i)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        make_call(i);
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (status != 0)
        printf("%s, change %u: status %#x\n", calls[i].name, change, (unsigned)status);
    return status == 0;
}

int main(int argc, char **argv)
{
    bool all_end_well = true;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (argc < 2)
            puts(calls[i].name);
        else if (strcmp(argv[1], calls[i].name) == 0)
            for (change = i % STEP; change < BITS + RANDOM; change += STEP)
                all_end_well &= ends_well(i);
    return !all_end_well;
}
