/*
 * A port's life, and the operations that need no lock: sending and closing, by any thread. Receiving is in
 * port_receive.c; the protocol block is in port.h.
 */
#include "port.h"

#include "../strand/escape.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/hook.h"
#include "../strand/misuse.h"
#include "../strand/print.h"
#include "../strand/scope.h"
#include "../strand/sized.h"
#include "../strand/throw.h"
#include "../strand/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- references: any thread, also in signal handlers ------------------------------------------------------------ */

/* Keep the port from ending until unref_port. Returns 0 or a negated errno code. closed: accept a closed port. */
static int ref_port(strand_port handle, bool closed, struct port **out)
{
    struct port *port = (struct port *)(uintptr_t)handle.bits[0];
    uint64_t serial = handle.bits[1] ^ MARK_PORT;
    if (!arch_in_handles(port))
        return -EPIPE;
    uint64_t word = atomic_load_explicit(&port->word, memory_order_acquire); /* [HN2] */
    do {
        if (word_serial(word) != serial || (!closed && (word & PORT_CLOSED)))
            return -EPIPE;
        if ((word & PORT_REFS) == PORT_REFS)
            return -EAGAIN;
    } while (!atomic_compare_exchange_weak_explicit(&port->word, &word, word + PORT_REF, memory_order_acq_rel,
                                                    memory_order_acquire)); /* [PT5] */
    *out = port;
    return 0;
}

/* Notify a waiting receiver. The caller has a reference to the port. */
static void notify_receiver(struct box *box)
{
    uint32_t wake = atomic_load_explicit(&box->wake, memory_order_seq_cst); /* [PT3] */
    if (wake != WAKE_WANTED ||
        !atomic_compare_exchange_strong_explicit(&box->wake, &wake, WAKE_POSTED, memory_order_seq_cst,
                                                 memory_order_relaxed)) /* [PT3] */
        return;
    box_keep(box);
    arch_san_release(&box->post);
    pool_post(&box->runtime->sub.pool, &box->post);
}

static void unref_port(struct port *port)
{
    uint64_t word = atomic_load_explicit(&port->word, memory_order_relaxed), new;
    bool last;
    arch_san_release(port);
    do {
        do {
            last = (word & (PORT_REFS | PORT_OVER | PORT_CLOSED)) == (PORT_REF | PORT_CLOSED);
            new = last ? word | PORT_OVER : word - PORT_REF;
        } while (!atomic_compare_exchange_weak_explicit(&port->word, &word, new, memory_order_seq_cst,
                                                        memory_order_relaxed)); /* [PT3] [PT4] [PT5] */
        word = new;
        if (last)
            notify_receiver(port->box); /* [PT4] */
    } while (last);
}

/* In the child of a fork: the port's run has stayed in the parent. */
static bool is_left(const struct port *port)
{
    return port->generation != arch_generation;
}

/* ---- sending: any thread, also in signal handlers --------------------------------------------------------------- */

/* Returns NULL if no slot is free [PT1]. */
static struct slot *claim(struct box *box)
{
    uint64_t free = atomic_load_explicit(&box->free, memory_order_acquire), rest; /* [PT6] */
    struct slot *slot;
    do {
        if (!(free & FREE_NUMBER))
            return NULL;
        slot = box_slot(box, (uint32_t)(free & FREE_NUMBER) - 1);
        uint32_t next =
            atomic_load_explicit(&slot->next, memory_order_relaxed); /* stale if the slot was taken meanwhile */
        rest = ((free >> FREE_TAG) + 1) << FREE_TAG | next;
    } while (!atomic_compare_exchange_weak_explicit(&box->free, &free, rest, memory_order_acquire,
                                                    memory_order_acquire)); /* [PT6] */
    arch_san_acquire(slot);
    return slot;
}

static uint32_t number_of(const struct box *box, const struct slot *slot)
{
    return (uint32_t)((size_t)((const char *)slot - box->slots) / box->stride);
}

static void publish(struct box *box, struct slot *slot)
{
    uint32_t newest = atomic_load_explicit(&box->arrived, memory_order_relaxed), number = number_of(box, slot) + 1;
    arch_san_release(slot);
    do
        atomic_store_explicit(&slot->next, newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&box->arrived, &newest, number, memory_order_seq_cst,
                                                  memory_order_relaxed)); /* [PT3] [PT7] */
}

/* The caller has a reference to the port. */
static int put(struct port *port, const void *message, size_t size)
{
    struct box *box = port->box;
    if (is_left(port))
        return -EPIPE;
    if (size > port->message_size)
        return -EMSGSIZE;
    if (size && !message)
        return -EINVAL;
    struct slot *slot = claim(box);
    if (!slot) {
        atomic_fetch_add_explicit(&box->refused, 1, memory_order_relaxed);
        return -EAGAIN;
    }
    slot->size = (uint32_t)size;
    if (size)
        memcpy(slot->bytes, message, size);
    publish(box, slot);
    notify_receiver(box);
    return 0;
}

/* A handler may have interrupted a switch: the caller is a strand of the fibre only if it runs on the fibre's stack. */
static void check_content(const void *message, size_t size)
{
    struct thread *thread = thread_self();
    const struct fibre *fibre = thread ? plain_load(&thread->current, memory_order_relaxed) : NULL;
    if (UNLIKELY(fibre && fibre_is_shared(fibre)) && shared_fibre_has(fibre, __builtin_frame_address(0)))
        must_not_escape_copied(thread, message, size, NULL, "the message", "strand_port_send");
}

int strand_port_send(strand_port handle, const void *message, size_t size)
{
    struct port *port;
    int error = ref_port(handle, false, &port);
    if (UNLIKELY(error))
        return error;
    if (message && size <= port->message_size)
        check_content(message, size);
    error = put(port, message, size);
    unref_port(port);
    return error;
}

void strand_port_close(strand_port handle)
{
    struct port *port;
    if (ref_port(handle, false, &port) < 0)
        return;
    atomic_fetch_or_explicit(&port->word, PORT_CLOSED, memory_order_acq_rel); /* [PT4] */
    unref_port(port);
}

int strand_port_info_get(strand_port handle, strand_port_info *out)
{
    struct port *port;
    must_be_there(out, "buffer for the figures", "strand_port_info_get");
    must_have_size(out->size, sizeof out->size, "strand_port_info", "strand_port_info_get");
    int error = ref_port(handle, true, &port);
    if (error)
        return error;
    struct box *box = port->box;
    uint64_t given = atomic_load_explicit(&box->given, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&box->free, memory_order_relaxed) >> FREE_TAG;
    strand_port_info info = {
        .message_size = port->message_size,
        .slots = port->slots,
        .taken = (taken - given) & (UINT64_MAX >> FREE_TAG),
        .refused = atomic_load_explicit(&box->refused, memory_order_relaxed),
        .closed = atomic_load_explicit(&port->word, memory_order_relaxed) & PORT_CLOSED,
    };
    bool left = is_left(port);
    unref_port(port);
    sized_give(out, out->size, &info, sizeof info);
    return left ? -EPIPE : 0;
}

/* ---- the box ------------------------------------------------------------------------------------------------------
 */

void box_drop(struct box *box)
{
    arch_san_release(box);
    if (atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) != 1) /* [RF1] */
        return;
    arch_san_acquire(box);
    free(box);
}

/* Runs the post of the box: on a thread of the pool, or on any thread if the run has ended. */
static struct member *arrive(struct post *post)
{
    struct box *box = CONTAINER(post, struct box, post);
    struct thread *thread = thread_self();
    struct batch woken;
    struct member *member;
    arch_san_acquire(post);
    batch_init(&woken);
    struct port *port = thread && runtime_of(thread) == box->runtime ? port_find(thread, box->handle) : NULL;
    if (port) {
        atomic_store_explicit(&box->wake, WAKE_NONE, memory_order_seq_cst); /* [PT3] */
        port_settle(thread, port, &woken);
        port_unlock(thread, port);
    }
    box_drop(box);
    while ((member = batch_take(&woken))) {
        arch_san_release(member); /* what was written into its node */
        pool_deliver(thread, member);
    }
    return NULL;
}

static struct box *make_box(struct thread *thread, size_t message_size, size_t slots)
{
    size_t stride = (sizeof(struct slot) + message_size + 15) & ~(size_t)15, size = sizeof(struct box) + slots * stride;
    struct box *box = platform_refuses(thread)
                          ? NULL
                          : aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
    if (!box)
        return NULL;
    memset(box, 0, sizeof *box);
    box->post.run = arrive;
    box->runtime = runtime_of(thread);
    box->stride = stride;
    atomic_init(&box->refs, 1);
    for (uint32_t i = 0; i < slots; i++) {
        struct slot *slot = box_slot(box, i);
        atomic_init(&slot->next, i + 1 < slots ? i + 2 : 0);
        slot->box = box;
    }
    atomic_init(&box->free, 1);
    return box;
}

/* ---- the end ------------------------------------------------------------------------------------------------------
 */

static const char *made(const struct port *port, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    snprintf(buffer, size, "the port '%s' was opened in %s", port->name,
             print_location_line(port->site, where, sizeof where));
    return buffer;
}

static const char *made_hook(const struct hook *hook, char *buffer, size_t size)
{
    return made(hook->object, buffer, size);
}

/* Drop the messages that are left [PT2]. No handle finds the port any more. */
static void drop_all(struct port *port)
{
    while (port->first) {
        struct slot *slot = port_take(port);
        if (!port->drop)
            continue;
        struct hook hook HOOK = {.name = "strand_port_attr.drop", .made = made_hook, .object = port};
        hook_enter(&hook);
        port->drop(slot->bytes, slot->size);
        hook_over(&hook);
    }
}

/* Wait for the senders inside, which need a few instructions; afterwards no sender enters [PT5]. */
static void await_senders(struct thread *thread, struct port *port)
{
    uint64_t word = atomic_load_explicit(&port->word, memory_order_acquire); /* [PT5] */
    do {
        while (word & PORT_REFS) {
            platform_await(thread);
            word = atomic_load_explicit(&port->word, memory_order_acquire); /* [PT5] */
        }
    } while (!atomic_compare_exchange_strong_explicit(&port->word, &word, word_freed(word), memory_order_acq_rel,
                                                      memory_order_acquire)); /* [PT5] */
}

static void port_end(struct thread *thread, struct owned *owned)
{
    struct port *port = CONTAINER(owned, struct port, owned);
    struct batch woken;
    batch_init(&woken);
    port_lock(thread, port);
    atomic_fetch_or_explicit(&port->word, PORT_CLOSED, memory_order_acq_rel); /* [PT4] */
    port_settle(thread, port, &woken);
    port_end_waits(thread, port, &woken);
    await_senders(thread, port);
    arch_san_acquire(port); /* what those senders have published */
    port_take_arrived(port);
    port_unlock(thread, port);
    batch_deliver(thread, &woken);
    drop_all(port);
    box_drop(port->box);
    arch_san_release(port);
    slab_put(&worker_of(thread)->objects, port);
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

COLD void port_misused(struct thread *thread, struct port *port, strand_port handle, const void *message, size_t room,
                       const char *function)
{
    char text[256];
    if (port) {
        size_t size = port->message_size;
        made(port, text, sizeof text);
        port_unlock(thread, port);
        if (!message)
            misuse(function, text, "there is no memory for a message of up to %zu bytes: it is NULL", size);
        misuse(function, text, "the buffer has %zu bytes, and a message may have %zu: make room for the longest", room,
               size);
    }
    port = (struct port *)(uintptr_t)handle.bits[0];
    if (arch_in_handles(port) &&
        word_serial(atomic_load_explicit(&port->word, memory_order_relaxed)) == (handle.bits[1] ^ MARK_PORT))
        misuse(function, "",
               "the port belongs to another run: strands of the run that opened it receive; others only send");
    misuse(function, "",
           handle.bits[1]
               ? "the port is gone: its scope has been left. Open it in a scope that ends after its receivers"
               : "there is no port behind {0}: strand_port_open makes one");
}

static void init(struct port *port, struct box *box, size_t message_size, size_t slots, const strand_port_attr *attr)
{
    memset((char *)port + offsetof(struct port, generation), 0, sizeof *port - offsetof(struct port, generation));
    port->generation = arch_generation;
    list_init(&port->receivers);
    port->box = box;
    port->message_size = message_size;
    port->slots = slots;
    port->drop = attr ? attr->drop : NULL;
    snprintf(port->name, sizeof port->name, "%s", attr && attr->name ? attr->name : "port");
    port->owned.release = port_end;
}

static int make(struct thread *thread, size_t message_size, size_t slots, const strand_port_attr *attr,
                struct port **out)
{
    struct box *box = make_box(thread, message_size, slots);
    if (!box)
        return -ENOMEM;
    struct port *port = platform_slab_get(thread, &worker_of(thread)->objects);
    if (!port) {
        free(box);
        return -ENOMEM;
    }
    uint64_t serial = next_serial(worker_of(thread));
    arch_san_acquire(port);
    init(port, box, message_size, slots, attr);
    box->handle = (strand_port){{(uint64_t)(uintptr_t)port, serial | MARK_PORT}};
    atomic_store_explicit(&port->word, serial << WORD_SERIAL, memory_order_release); /* [HN2] */
    *out = port;
    return 0;
}

strand_port strand_port_open(strand_scope scope, size_t message_size, size_t slots, const strand_port_attr *attr)
{
    struct thread *thread = must_be_strand("strand_port_open");
    struct cb *me = current_of(thread);
    struct port *port;
    if (attr)
        must_have_size(attr->size, sizeof *attr, "strand_port_attr", "strand_port_open");
    if (message_size > STRAND_PORT_MAX_MESSAGE_SIZE)
        misuse("strand_port_open", "", "messages of %zu bytes are longer than %zu", message_size,
               STRAND_PORT_MAX_MESSAGE_SIZE);
    if (!slots || slots > STRAND_PORT_MAX_SLOTS)
        misuse("strand_port_open", "", "there are %zu slots, not 1 to %zu", slots, STRAND_PORT_MAX_SLOTS);
    int error = make(thread, message_size, slots, attr, &port);
    strand_port handle = {{0, 0}};
    if (!error) {
        port->site = __builtin_return_address(0);
        handle = port->box->handle; /* a port of an open scope may have ended once the scope owns it */
        if ((error = scope_own(thread, me, scope, &port->owned, "strand_port_open")))
            port_end(thread, &port->owned);
    }
    if (error)
        throw_system(me, error, error == -ECANCELED ? "a port of an open scope that has been left" : "a port");
    return handle;
}
