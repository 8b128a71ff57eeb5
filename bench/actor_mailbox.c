/*
 * actor_mailbox: what a mailbox may be made of (rule S-23), side by side, outside of the library: arrays are not built
 * there. As there, an actor has a mailbox while messages wait for it, from a pool. `list`: envelopes from a pool, as it
 * is built. `ring`: an array that grows, of pointers to the same envelopes, and that stays with its mailbox.
 * `ring_fresh`: an array from malloc each time. `values`: an array of the messages themselves, without envelopes. No
 * locks: one thread sends a burst to an actor and then handles it; a message. actor_mailbox_many: a message to each of
 * a thousand actors of 100 000, at random, which then handle it. actor_mailbox_bytes: what an actor has in the end, the
 * pools included.
 */
/* S-23 */
#include "bench.h"

#include <malloc.h>

#define ALWAYS static inline __attribute__((always_inline))

enum { MESSAGES = BENCH_MANY(2000000), ACTORS = BENCH_MANY(100000), AWAKE = 1000, POOL_STEP = 128, ROOM = 4 };

/* As large as the library's, with a body of 16 bytes. */
struct message {
    const void *type;
    uint64_t sender[2];
    void *body;
    size_t size;
};

struct envelope {
    struct envelope *next;
    struct message message;
    uint64_t body[2];
};

/* ---- memory ------------------------------------------------------------------------------------------------ */

static size_t held;
static struct envelope *pool;
static struct chunk {
    struct chunk *next;
    struct envelope some[POOL_STEP];
} * chunks;

static void *take(size_t size)
{
    void *memory = malloc(size);
    bench_check(memory != NULL, "no memory");
    held += malloc_usable_size(memory) + sizeof(size_t);
    return memory;
}

static void give(void *memory)
{
    if (memory)
        held -= malloc_usable_size(memory) + sizeof(size_t);
    free(memory);
}

static __attribute__((noinline)) void fill_pool(void)
{
    struct chunk *chunk = take(sizeof *chunk);
    chunk->next = chunks;
    chunks = chunk;
    for (int i = 0; i < POOL_STEP; i++) {
        chunk->some[i].next = pool;
        pool = &chunk->some[i];
    }
}

ALWAYS void write_message(struct message *message, uint64_t *body, uint64_t n)
{
    *message = (struct message){.type = &pool, .sender = {n, n}, .body = body, .size = 2 * sizeof n};
    body[0] = body[1] = n;
}

ALWAYS struct envelope *envelope_new(uint64_t n)
{
    if (!pool)
        fill_pool();
    struct envelope *e = pool;
    pool = e->next;
    write_message(&e->message, e->body, n);
    return e;
}

ALWAYS void envelope_free(struct envelope *e)
{
    e->next = pool;
    pool = e;
}

/* The actor's function, which can't be seen through. */
static __attribute__((noinline)) void handle(uint64_t *state, const struct message *message)
{
    *state += *(const uint64_t *)message->body;
    __asm__ volatile("" ::: "memory");
}

/* ---- containers -------------------------------------------------------------------------------------------- */

struct mailbox {
    struct mailbox *next; /* in the pool */
    union {
        struct {
            struct envelope *first, **last;
        } list;
        struct {
            void *slots;
            uint32_t head, count, room;
        } ring;
    };
};

static struct mailbox *mailboxes;

struct container {
    const char *name;
    bool is_ring;
    void (*send)(struct mailbox *box, uint64_t n);
    void (*handle_all)(struct mailbox *box, uint64_t *state);
};

ALWAYS void list_send(struct mailbox *box, uint64_t n)
{
    struct envelope *e = envelope_new(n);
    e->next = NULL;
    if (box->list.first)
        *box->list.last = e;
    else
        box->list.first = e;
    box->list.last = &e->next;
}

/* All of it is taken at once, as a turn does. */
ALWAYS void list_handle_all(struct mailbox *box, uint64_t *state)
{
    struct envelope *e = box->list.first, *next;
    for (box->list.first = NULL; e; e = next) {
        next = e->next;
        handle(state, &e->message);
        envelope_free(e);
    }
}

static __attribute__((noinline)) void grow(struct mailbox *box, size_t slot)
{
    uint32_t room = box->ring.room, first = room - box->ring.head;
    char *slots = take((room ? 2 * room : ROOM) * slot), *old = box->ring.slots;
    if (room) {
        memcpy(slots, old + box->ring.head * slot, first * slot);
        memcpy(slots + first * slot, old, box->ring.head * slot);
    }
    give(old);
    box->ring.slots = slots;
    box->ring.head = 0;
    box->ring.room = room ? 2 * room : ROOM;
}

/* The slot behind the last. */
ALWAYS void *ring_push(struct mailbox *box, size_t slot)
{
    if (box->ring.count == box->ring.room)
        grow(box, slot);
    return (char *)box->ring.slots + ((box->ring.head + box->ring.count++) & (box->ring.room - 1)) * slot;
}

/* The slot of the first, which the next push may take. */
ALWAYS void *ring_pop(struct mailbox *box, size_t slot)
{
    void *first = (char *)box->ring.slots + box->ring.head * slot;
    box->ring.head = (box->ring.head + 1) & (box->ring.room - 1);
    box->ring.count--;
    return first;
}

static void ring_close(struct mailbox *box)
{
    give(box->ring.slots);
    box->ring.slots = NULL;
    box->ring.head = box->ring.room = 0;
}

ALWAYS void ring_send(struct mailbox *box, uint64_t n)
{
    *(struct envelope **)ring_push(box, sizeof(struct envelope *)) = envelope_new(n);
}

ALWAYS void ring_handle_all(struct mailbox *box, uint64_t *state)
{
    while (box->ring.count) {
        struct envelope *e = *(struct envelope **)ring_pop(box, sizeof e);
        handle(state, &e->message);
        envelope_free(e);
    }
}

ALWAYS void ring_handle_all_and_close(struct mailbox *box, uint64_t *state)
{
    ring_handle_all(box, state);
    ring_close(box);
}

struct value {
    struct message message;
    uint64_t body[2];
};

ALWAYS void values_send(struct mailbox *box, uint64_t n)
{
    struct value *value = ring_push(box, sizeof *value);
    write_message(&value->message, value->body, n);
}

/* A copy: the handler may send to this mailbox, which then grows. */
ALWAYS void values_handle_all(struct mailbox *box, uint64_t *state)
{
    while (box->ring.count) {
        struct value value = *(const struct value *)ring_pop(box, sizeof value);
        value.message.body = value.body;
        handle(state, &value.message);
    }
}

/* ---- measuring --------------------------------------------------------------------------------------------- */

/* Compiled once for each container, so that what a container does is inline. */
ALWAYS void tell(const struct container *of, struct mailbox **actor, uint64_t n)
{
    struct mailbox *box = *actor;
    if (!box) {
        if ((box = mailboxes))
            mailboxes = box->next;
        else
            memset(box = take(sizeof *box), 0, sizeof *box);
        *actor = box;
    }
    of->send(box, n);
}

ALWAYS void have_turn(const struct container *of, struct mailbox **actor, uint64_t *state)
{
    struct mailbox *box = *actor;
    if (!box)
        return;
    of->handle_all(box, state);
    *actor = NULL;
    box->next = mailboxes;
    mailboxes = box;
}

static void empty_pools(const struct container *of)
{
    for (struct chunk *chunk; (chunk = chunks);) {
        chunks = chunk->next;
        give(chunk);
    }
    pool = NULL;
    for (struct mailbox *box; (box = mailboxes);) {
        mailboxes = box->next;
        if (of->is_ring)
            ring_close(box);
        give(box);
    }
}

ALWAYS double bursts_of(const struct container *of, uint64_t length)
{
    struct mailbox *actor = NULL;
    uint64_t state = 0, n = 0;
    int64_t start = bench_now();
    while (n < MESSAGES) {
        for (uint64_t i = 0; i < length; i++)
            tell(of, &actor, n++);
        have_turn(of, &actor, &state);
    }
    int64_t taken = bench_now() - start;
    bench_check(state == n * (n - 1) / 2, "%s: the sum is %" PRIu64, of->name, state);
    return (double)taken / (double)n;
}

ALWAYS double to_many(const struct container *of)
{
    static struct mailbox *actors[ACTORS];
    static uint32_t awake[AWAKE];
    uint64_t state = 0, n = 0, seed = 1;
    int64_t taken = 0;
    while (n < MESSAGES) {
        for (int i = 0; i < AWAKE; i++)
            awake[i] = (uint32_t)(bench_random(&seed) % ACTORS);
        int64_t start = bench_now();
        for (int i = 0; i < AWAKE; i++)
            tell(of, &actors[awake[i]], n++);
        for (int i = 0; i < AWAKE; i++)
            have_turn(of, &actors[awake[i]], &state);
        taken += bench_now() - start;
    }
    bench_check(state == n * (n - 1) / 2, "%s: the sum is %" PRIu64, of->name, state);
    return (double)taken / (double)n;
}

ALWAYS void measure(const struct container *of)
{
    static const int lengths[] = {1, 8, 64, 1000};
    to_many(of);
    bench_sample("actor_mailbox_many", of->name, 1, "ns", to_many(of));
    bench_sample("actor_mailbox_bytes", of->name, 1, "bytes", sizeof(void *) + (double)held / ACTORS);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char row[32];
        snprintf(row, sizeof row, "actor_mailbox%d", lengths[i]);
        bursts_of(of, (uint64_t)lengths[i]);
        for (int n = 0; n < BENCH_SAMPLES; n++)
            bench_sample(row, of->name, 1, "ns", bursts_of(of, (uint64_t)lengths[i]));
    }
    empty_pools(of);
}

int main(void)
{
    static const struct container list = {"list", false, list_send, list_handle_all},
                                  ring = {"ring", true, ring_send, ring_handle_all},
                                  fresh = {"ring_fresh", true, ring_send, ring_handle_all_and_close},
                                  values = {"values", true, values_send, values_handle_all};
    measure(&list);
    measure(&ring);
    measure(&fresh);
    measure(&values);
    return 0;
}
