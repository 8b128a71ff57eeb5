/*
 * Channels and selects, with many who wait; values from plain threads.
 */
#include "fault.h"

#include "strand/chan.h"
#include "strand/select.h"

#include <errno.h>
#include <pthread.h>

enum { MANY = 80, POSTS = 20 };

typedef STRAND_CHAN(long) longs;

static void *sender(void *chan)
{
    long one = 1;
    strand_must(STRAND_SEND(*(longs *)chan, &one));
    return chan;
}

static void many_senders(size_t capacity)
{
    long sum = 0, value;
    STRAND_SCOPE(scope);
    longs chan = STRAND_CHAN_OPEN(longs, scope, capacity);
    for (int i = 0; i < MANY; i++)
        strand_spawn(scope, sender, &chan);
    for (int i = 0; i < MANY; i++) {
        strand_must(STRAND_RECEIVE(chan, &value));
        sum += value;
    }
    strand_scope_join(scope);
    FAULT_CHECK(sum == MANY);
}

static void many_cases(void)
{
    static long values[MANY];
    strand_case cases[MANY];
    longs chans[MANY];
    STRAND_SCOPE(scope);
    for (int i = 0; i < MANY; i++) {
        chans[i] = STRAND_CHAN_OPEN(longs, scope, 0);
        cases[i] = STRAND_ON_RECEIVE(chans[i], &values[i]);
    }
    for (int i = 0; i < MANY; i += 9) {
        values[i] = 0;
        strand child = strand_spawn(scope, sender, &chans[i]);
        FAULT_CHECK(strand_select(cases, MANY, 0) == i && values[i] == 1);
        strand_join(child);
    }
}

/* Few cases, time among them. */
static void in_time(void)
{
    long value;
    STRAND_SCOPE(scope);
    longs chan = STRAND_CHAN_OPEN(longs, scope, 1);
    strand_case cases[] = {STRAND_ON_RECEIVE(chan, &value), strand_on_time(strand_in(STRAND_MS))};
    FAULT_CHECK(strand_select(cases, 2, 0) == 1);
}

struct poster {
    longs chan;
    _Atomic long posted;
};

static void *post(void *arg)
{
    struct poster *poster = arg;
    for (long i = 0; i < POSTS; i++) {
        int error = STRAND_POST(poster->chan, &i);
        FAULT_CHECK(error == 0 || error == -ENOMEM);
        poster->posted += !error;
    }
    return NULL;
}

static void posts(void)
{
    struct poster poster = {.posted = 0};
    long value, got = 0;
    pthread_t thread;
    STRAND_SCOPE(scope);
    poster.chan = STRAND_CHAN_OPEN(longs, scope, 4);
    FAULT_CHECK(pthread_create(&thread, NULL, post, &poster) == 0);
    pthread_join(thread, NULL);
    while (got < poster.posted) {
        strand_must(STRAND_RECEIVE(poster.chan, &value));
        got++;
    }
    strand_must(poster.posted < POSTS ? -ENOMEM : 0);
}

static void *root(void *arg)
{
    (void)arg;
    many_senders(MANY / 2); /* first, so that memory for channels is refused to one with a ring, too */
    many_senders(0);
    many_cases();
    in_time();
    posts();
    return FAULT_DONE;
}

FAULT_WORKLOAD(chans, RUN_ANY, root, )
