/*
 * Receiving from a port: under its lock, by strands of its run. The protocol block is in port.h.
 */
#include "port.h"
#include "source.h"

#include "../sched/switch.h"
#include "../strand/exception.h"
#include "../strand/handle.h"
#include "../strand/interrupt.h"
#include "../strand/misuse.h"
#include "../strand/wait.h"

#include <errno.h>
#include <string.h>

struct port *port_find(struct thread *thread, strand_port handle)
{
    struct port *port = (struct port *)(uintptr_t)handle.bits[0];
    uint64_t serial = handle.bits[1] ^ MARK_PORT;
    if (UNLIKELY(!arch_in_handles(port) || !slab_has(&runtime_of(thread)->objects, port)))
        return NULL;
    if (UNLIKELY(word_serial(atomic_load_explicit(&port->word, memory_order_relaxed)) != serial))
        return NULL;
    port_lock(thread, port);
    if (LIKELY(word_serial(atomic_load_explicit(&port->word, memory_order_relaxed)) == serial))
        return port;
    port_unlock(thread, port);
    return NULL;
}

/* Likewise, for an operation: misuse if there is no port, or too little room. */
static inline struct port *port_of(struct thread *thread, strand_port handle, const void *message, size_t room,
                                   const char *function)
{
    struct port *port = port_find(thread, handle);
    if (UNLIKELY(!port || room < port->message_size || (!message && port->message_size)))
        port_misused(thread, port, handle, message, room, function);
    return port;
}

/* ---- slots ---------------------------------------------------------------------------------------------------------
 */

static void give_back(struct slot *slot)
{
    struct box *box = slot->box;
    uint32_t number = (uint32_t)((size_t)((char *)slot - box->slots) / box->stride) + 1;
    uint64_t free = atomic_load_explicit(&box->free, memory_order_relaxed);
    atomic_fetch_add_explicit(&box->given, 1, memory_order_relaxed);
    arch_san_release(slot);
    do
        atomic_store_explicit(&slot->next, (uint32_t)(free & FREE_NUMBER), memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&box->free, &free, (free & ~FREE_NUMBER) | number,
                                                  memory_order_release, memory_order_relaxed)); /* [PT6] */
}

static int64_t copy_out(struct cb *me, struct slot *slot, void *message)
{
    arch_san_acquire(slot);
    uint32_t size = slot->size;
    if (size)
        memcpy(message, slot->bytes, size);
    if (UNLIKELY(cb_wipes(me)))
        arch_wipe(slot->bytes, size, 0);
    give_back(slot);
    return size;
}

struct slot *port_take(struct port *port)
{
    struct slot *slot = box_slot(port->box, port->first - 1);
    port->first = atomic_load_explicit(&slot->next, memory_order_relaxed);
    if (!port->first)
        port->last = 0;
    return slot;
}

/* Append all arrived messages, which are linked from the newest on, to the ready ones in FIFO order. */
void port_take_arrived(struct port *port)
{
    struct box *box = port->box;
    if (!atomic_load_explicit(&box->arrived, memory_order_relaxed))
        return;
    uint32_t newest = atomic_exchange_explicit(&box->arrived, 0, memory_order_acquire), first = 0; /* [PT7] */
    for (uint32_t at = newest; at;) {
        struct slot *slot = box_slot(box, at - 1);
        uint32_t older = atomic_load_explicit(&slot->next, memory_order_relaxed);
        atomic_store_explicit(&slot->next, first, memory_order_relaxed);
        first = at;
        at = older;
    }
    if (port->last)
        atomic_store_explicit(&box_slot(box, port->last - 1)->next, first, memory_order_relaxed);
    else
        port->first = first;
    port->last = newest;
}

/* ---- waiters -------------------------------------------------------------------------------------------------------
 * */

static void link_node(struct thread *thread, struct port *port, struct wait_node *node)
{
    node->value = NULL;
    node->result = 0;
    select_link(thread, &port->receivers, node);
}

static void unlink_node(struct wait_node *node)
{
    list_remove(&node->link);
    atomic_store_explicit(&node->linked, 0, memory_order_relaxed);
}

static bool is_over(struct port *port)
{
    return atomic_load_explicit(&port->word, memory_order_acquire) & PORT_OVER; /* [PT4] */
}

static struct wait_node *first_of(struct port *port)
{
    return CONTAINER(port->receivers.next, struct wait_node, link);
}

/* Hand the first message to the first strand that still waits. */
static void hand_over(struct thread *thread, struct port *port, struct batch *batch)
{
    struct wait_node *node = first_of(port);
    unlink_node(node);
    if (!wait_claim(node, thread->concurrent))
        return;
    node->value = port_take(port);
    box_keep(port->box);
    batch_add(batch, &node->waiter->member);
}

void port_end_waits(struct thread *thread, struct port *port, struct batch *batch)
{
    while (!list_empty(&port->receivers)) {
        struct wait_node *node = first_of(port);
        unlink_node(node);
        node->result = -EPIPE;
        if (node->marks & NODE_DROPS)
            batch_add(batch, select_drop_out(thread, node));
        else if (wait_claim(node, thread->concurrent))
            batch_add(batch, &node->waiter->member);
    }
}

/* Announce that a receiver waits, when nothing is ready. Returns false if a message has arrived since. */
static bool wants(struct port *port)
{
    struct box *box = port->box;
    uint32_t none = WAKE_NONE;
    (void)atomic_compare_exchange_strong_explicit(&box->wake, &none, WAKE_WANTED, memory_order_seq_cst,
                                                  memory_order_relaxed); /* [PT3] */
    return !atomic_load_explicit(&box->arrived, memory_order_seq_cst) && /* [PT3] */
           !(atomic_load_explicit(&port->word, memory_order_seq_cst) & PORT_OVER);
}

void port_settle(struct thread *thread, struct port *port, struct batch *batch)
{
    do {
        bool over = is_over(port); /* read before the messages put in until then are taken [PT4] */
        port_take_arrived(port);
        while (port->first && !list_empty(&port->receivers))
            hand_over(thread, port, batch);
        if (over)
            port_end_waits(thread, port, batch);
    } while (!list_empty(&port->receivers) && !wants(port));
}

/* ---- receiving -----------------------------------------------------------------------------------------------------
 */

enum found { FOUND_READY, FOUND_OVER, FOUND_NOTHING };

/* Under the lock: what is there for the caller. waits: if nothing is there, a node linked under this lock will be
 * notified. */
static enum found examine(struct thread *thread, struct port *port, bool waits, struct batch *woken)
{
    do {
        bool over = is_over(port);
        port_settle(thread, port, woken);
        if (port->first)
            return FOUND_READY;
        if (over)
            return FOUND_OVER;
    } while (waits && !wants(port));
    return FOUND_NOTHING;
}

/* Under the lock, which it releases: receive a ready message. In a run of one thread no other strand ends the port
 * meanwhile. */
static int64_t receive_ready(struct thread *thread, struct cb *me, struct port *port, void *message)
{
    struct box *box = port->box;
    struct slot *slot = port_take(port);
    bool keep = thread->concurrent;
    if (keep)
        box_keep(box);
    port_unlock(thread, port);
    int64_t size = copy_out(me, slot, message);
    if (keep)
        box_drop(box);
    return size;
}

/* After a wait that was won. */
static int64_t receive_handed(struct cb *me, struct wait_node *node, void *message)
{
    struct slot *slot = node->value;
    if (!slot)
        return node->result;
    struct box *box = slot->box;
    int64_t size = copy_out(me, slot, message);
    box_drop(box);
    return size;
}

/* If the port is gone, so is the node's place in its queue. */
static void leave_queue(struct thread *thread, strand_port handle, struct wait_node *node)
{
    struct port *port = port_find(thread, handle);
    if (!port)
        return;
    if (atomic_load_explicit(&node->linked, memory_order_relaxed))
        unlink_node(node);
    port_unlock(thread, port);
}

/* Under the lock, which it releases. Returns false if the wait was interrupted and the interruption is already over. */
static bool wait_in(struct thread **thread, struct cb *me, struct port *port, strand_port handle, struct batch *woken)
{
    struct wait_node *node = &me->wait.node;
    wait_because(*thread, me, BLOCKED_PORT, (uint64_t)(uintptr_t)port);
    node->epoch = wait_arm(*thread, me, own_of(me)->floor);
    link_node(*thread, port, node);
    port_unlock(*thread, port);
    batch_deliver(*thread, woken);
    if (UNLIKELY(interrupted(me)) && wait_retract(*thread, me)) { /* [W4] */
        me->blocked = BLOCKED_NOT;
    } else {
        quiescent_outside_begin(*thread);
        *thread = switch_park(*thread);
        quiescent_outside_end(*thread);
        if (LIKELY(wait_over(me) == WAIT_WON))
            return true;
    }
    leave_queue(*thread, handle, node);
    if (interrupted_here(me))
        interrupt_throw(*thread, me, 0);
    return false;
}

int64_t strand_port_receive(strand_port handle, void *message, size_t room)
{
    struct thread *thread = must_be_strand("strand_port_receive");
    struct cb *me = current_of(thread);
    may_block(thread, me, "strand_port_receive");
    struct port *port = port_of(thread, handle, message, room, "strand_port_receive");
    while (port) {
        struct batch woken;
        batch_init(&woken);
        enum found found = examine(thread, port, true, &woken);
        if (found == FOUND_NOTHING) {
            if (LIKELY(wait_in(&thread, me, port, handle, &woken)))
                return receive_handed(me, &me->wait.node, message);
            port = port_find(thread, handle);
            continue;
        }
        int64_t result = -EPIPE;
        if (found == FOUND_READY)
            result = receive_ready(thread, me, port, message);
        else
            port_unlock(thread, port);
        batch_deliver(thread, &woken);
        yield_if_asked(thread);
        return result;
    }
    return -EPIPE; /* the port has ended meanwhile */
}

int64_t strand_port_try_receive(strand_port handle, void *message, size_t room)
{
    struct thread *thread = must_be_strand("strand_port_try_receive");
    struct port *port = port_of(thread, handle, message, room, "strand_port_try_receive");
    struct batch woken;
    batch_init(&woken);
    enum found found = examine(thread, port, false, &woken);
    int64_t result = found == FOUND_OVER ? -EPIPE : -EAGAIN;
    if (found == FOUND_READY)
        result = receive_ready(thread, current_of(thread), port, message);
    else
        port_unlock(thread, port);
    batch_deliver(thread, &woken);
    return result;
}

/* ---- as a case of a select -----------------------------------------------------------------------------------------
 */

static strand_port handle_in(const strand_case *c)
{
    return (strand_port){{c->object[0], c->object[1]}};
}

/* The port of a case, locked. NULL: it has ended since the select began. */
static struct port *port_in(struct thread *thread, struct cb *me, const strand_case *c)
{
    struct port *port = port_find(thread, handle_in(c));
    bool good = port ? (size_t)c->detail >= port->message_size && (c->value || !port->message_size) : me->tried;
    if (UNLIKELY(!good))
        port_misused(thread, port, handle_in(c), c->value, (size_t)c->detail, "strand_select");
    return port;
}

/* The case can happen. node: the strand is armed. */
static enum answer settle(struct thread *thread, struct cb *me, strand_case *c, const struct wait_node *node, bool over)
{
    if (over && (c->flags & CASE_DROPS))
        return SOURCE_DROPPED;
    if (node && !wait_retract(thread, me))
        return SOURCE_LOST;
    c->result = over ? -EPIPE : 0;
    return SOURCE_DONE;
}

static enum answer message_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    struct port *port = port_in(thread, me, c);
    struct batch woken;
    if (UNLIKELY(!port))
        return settle(thread, me, c, node, true);
    batch_init(&woken);
    enum found found = examine(thread, port, node != NULL, &woken);
    enum answer answer = found == FOUND_NOTHING ? SOURCE_NOT : settle(thread, me, c, node, found == FOUND_OVER);
    if (answer == SOURCE_NOT && node)
        link_node(thread, port, node);
    if (answer == SOURCE_DONE && found == FOUND_READY)
        c->result = (int)receive_ready(thread, me, port, c->value);
    else
        port_unlock(thread, port);
    batch_deliver(thread, &woken);
    return answer;
}

static enum answer message_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    if (won)
        c->result = (int)receive_handed(me, node, c->value);
    else
        leave_queue(thread, handle_in(c), node);
    return SOURCE_DONE;
}

static bool message_is_ready(struct thread *thread, const strand_case *c)
{
    const struct port *port = port_in(thread, current_of(thread), c);
    return !port || port->first || atomic_load_explicit(&port->box->arrived, memory_order_relaxed) ||
           (atomic_load_explicit(&port->word, memory_order_relaxed) & PORT_OVER);
}

static const struct strand_source_ source_message = {
    .stand = message_stand, .ready = message_is_ready, .over = message_over, .outside = true, .blocked = BLOCKED_PORT};

strand_case strand_on_message(strand_port port, void *message, size_t room)
{
    int64_t detail = room < INT64_MAX ? (int64_t)room : INT64_MAX;
    return (strand_case){
        .source = &source_message, .object = {port.bits[0], port.bits[1]}, .value = message, .detail = detail};
}
