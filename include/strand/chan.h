/*
 * Channels: strands hand values to each other.
 *
 *     typedef STRAND_CHAN(struct line) lines;
 *
 *     lines ch = STRAND_CHAN_OPEN(lines, scope, 16);
 *     ...
 *     STRAND_SEND(ch, &line);            a value of another type does not compile
 *     while (STRAND_RECEIVE(ch, &line) == 0)
 *         ...
 *     STRAND_CHAN_CLOSE(ch);
 *
 * Values are copied as bytes, which C++ checks: only a trivially copyable type may be an element. What is not is sent
 * by its address, which is then the receiver's to free.
 *
 * A channel has any number of senders and receivers, who are served first come, first served on both sides. With room
 * for 0 values it is a rendezvous: a send ends when a receiver has the value. It belongs to a scope, and ends when that
 * has been left. After the close, receivers get what is in it and what queued senders have, and only then -EPIPE.
 * Who waits at a channel when its scope is left gets -EPIPE; to use its handle after that is misuse, as with every
 * handle that has gone stale. Strands of the scope itself have ended by then. Others may be between two operations, and
 * would not be told: so who has handed the channel to such strands closes it, and waits until they are done with it,
 * before the scope is left.
 */
#ifndef STRAND_CHAN_H
#define STRAND_CHAN_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The handle of a channel, a value. */
typedef struct {
    uint64_t bits[2];
} strand_chan; /* {0}: none; goes stale when its scope has been left */

/** The type of a handle of a channel of values of one type, arrays and addresses of functions too. A const type is
 *  refused where the channel is opened: who receives writes to it. */
#define STRAND_CHAN(type)                                                                                              \
    union {                                                                                                            \
        strand_chan untyped;                                                                                           \
        __typeof__(type) *element;                                                                                     \
    }

/** What a channel may be told at its making. Zero is the default of each. */
typedef struct strand_chan_attr {
    size_t size;      /* sizeof(strand_chan_attr); required */
    const char *name; /* for people; copied, up to 31 bytes; NULL: "channel" */
    /* Gets each value that is left in the channel at its end, by its address, as a cleanup attribute's function does;
     * may not block, nor throw: that is misuse; on any thread of the run. */
    void (*drop)(void *element);
} strand_chan_attr;

/** Attributes in the place of an argument, as STRAND_ATTR makes them of strands. */
#define STRAND_CHAN_ATTR(...) STRAND_SIZED_(strand_chan_attr, __VA_ARGS__)

/**
 * Make a channel in a scope: for values of `size` bytes (0 is allowed), with room for `capacity` of them. attr may be
 * NULL. Throws STRAND_SYSTEM if memory is refused. Owner of the scope only, unless it is open. The channel ends when
 * its scope has been left and all strands of it have ended: who waits there then gets -EPIPE; values that are left in
 * it go to the drop function.
 */
strand_chan strand_chan_open(strand_scope scope, size_t size, size_t capacity, const strand_chan_attr *attr);

/** Send a copy of *value, which may be NULL only if values have no size. Waits until a receiver takes it, or there is
 * room. Returns 0, or -EPIPE: it is closed, and nothing was sent. Interrupted, it has sent nothing. Here and in receive
 * a value on the stack of an opened fibre takes memory while the caller waits: STRAND_SYSTEM if that is refused. */
STRAND_BLOCKS STRAND_CHECKED int strand_chan_send(strand_chan chan, const void *value);
/** Receive into *value. Waits for a value. Returns 0, or -EPIPE: it is closed, and nothing is left in it. Interrupted,
 *  it has received nothing. */
STRAND_BLOCKS STRAND_CHECKED int strand_chan_receive(strand_chan chan, void *value);
/** The same without waiting: -EAGAIN if that would have been needed. Not cancellation points. */
STRAND_CHECKED int strand_chan_try_send(strand_chan chan, const void *value);
STRAND_CHECKED int strand_chan_try_receive(strand_chan chan, void *value);
/**
 * Put a copy of *value into a channel from any thread, a plain one too. Never waits: a value for which there is no room
 * stands in the queue, as that of a sender does. From a strand of the channel's run the value is in the channel when
 * the call returns. From elsewhere it is on its way, and those of one thread keep their order. Returns 0: it is
 * received, or goes to the drop function; -EPIPE: the channel is closed, or gone; -ENOMEM; -EINVAL: value is NULL, and
 * should not be. The run has to last until the call has returned.
 */
STRAND_CHECKED int strand_chan_post(strand_chan chan, const void *value);
/** Close a channel: no more can be sent. Closing it again changes nothing. Never interrupted. */
void strand_chan_close(strand_chan chan);
/** How many values can be received at once, and how many are there room for; queued senders are not counted. */
size_t strand_chan_length(strand_chan chan);
size_t strand_chan_capacity(strand_chan chan);

/** A send, or a receive, as a case of a select. The value has to stay until the select returns. */
strand_case strand_on_send(strand_chan chan, const void *value) STRAND_KEEPS_(2);
strand_case strand_on_receive(strand_chan chan, void *value);

/** The same for a channel of one type; `type` is that of its handle, `value` a pointer to an element. Channel and value
 *  are evaluated once, in C++ too. */
#define STRAND_CHAN_OPEN(type, scope, capacity) STRAND_CHAN_OPEN_WITH(type, scope, capacity, NULL)
#define STRAND_CHAN_OPEN_WITH(type, scope, capacity, attr)                                                             \
    STRAND_CHAN_TYPED_(type, strand_chan_open((scope), STRAND_CHAN_SIZE_(type), (capacity), (attr)))
#define STRAND_SEND(chan, value) strand_chan_send((chan).untyped, STRAND_SENT_(chan, value))
#define STRAND_RECEIVE(chan, value) strand_chan_receive((chan).untyped, STRAND_RECEIVED_(chan, value))
#define STRAND_TRY_SEND(chan, value) strand_chan_try_send((chan).untyped, STRAND_SENT_(chan, value))
#define STRAND_TRY_RECEIVE(chan, value) strand_chan_try_receive((chan).untyped, STRAND_RECEIVED_(chan, value))
#define STRAND_POST(chan, value) strand_chan_post((chan).untyped, STRAND_SENT_(chan, value))
#define STRAND_CHAN_CLOSE(chan) strand_chan_close((chan).untyped)
#define STRAND_CHAN_LENGTH(chan) strand_chan_length((chan).untyped)
#define STRAND_CHAN_CAPACITY(chan) strand_chan_capacity((chan).untyped)
#define STRAND_ON_SEND(chan, value) strand_on_send((chan).untyped, STRAND_SENT_(chan, value))
#define STRAND_ON_RECEIVE(chan, value) strand_on_receive((chan).untyped, STRAND_RECEIVED_(chan, value))

/* ---- behind the macros ----------------------------------------------------------------------------------- */

#ifdef __cplusplus
}
template <class a, class b, class result> struct strand_if_same_ {
};
template <class a, class result> struct strand_if_same_<a, a, result> {
    typedef result is;
};
template <class type> struct strand_plain_ {
    typedef type is;
    static constexpr bool already = true;
};
template <class type> struct strand_plain_<const type> {
    typedef type is;
    static constexpr bool already = false;
};
/* `pointer` is that of a channel's type to its elements, and only named: the channel is evaluated elsewhere, once. */
template <class pointer, class element>
inline typename strand_if_same_<pointer, typename strand_plain_<element>::is *, const element *>::is
strand_sent_(element *value)
{
    return value;
}
template <class pointer, class element>
inline typename strand_if_same_<pointer, element *, element *>::is strand_received_(element *value)
{
    return value;
}
template <class pointer> struct strand_element_;
template <class element> struct strand_element_<element *> {
    static_assert(__is_trivially_copyable(element), "the values of a channel are copied as bytes");
    static_assert(strand_plain_<element>::already, "the values of a channel are received into, so they are not const");
    static constexpr size_t size = sizeof(element);
};
#define STRAND_SENT_(chan, value) strand_sent_<decltype((chan).element)>(value)
#define STRAND_RECEIVED_(chan, value) strand_received_<decltype((chan).element)>(value)
#define STRAND_CHAN_SIZE_(type) strand_element_<decltype(type::element)>::size
#define STRAND_CHAN_TYPED_(type, chan) (type{chan})
#else
#define STRAND_SENT_(chan, value)                                                                                      \
    STRAND_POINTS_(value, "the value to be sent is not the address of an element of the channel",                      \
                   __typeof__(&*(chan).element) : 1, const __typeof__(*(chan).element) * : 1, default : 0)
#define STRAND_RECEIVED_(chan, value)                                                                                  \
    STRAND_POINTS_(value, "the value is not received into the address of an element of the channel",                   \
                   __typeof__(&*(chan).element) : 1, default : 0)
/* value, if the associations give 1 for its type; else this text is the compiler's error */
#define STRAND_POINTS_(value, text, ...)                                                                               \
    ((void)sizeof(struct {                                                                                             \
         _Static_assert(_Generic((value), __VA_ARGS__), text);                                                         \
         char unused;                                                                                                  \
     }),                                                                                                               \
     (value))
#define STRAND_CHAN_SIZE_(type)                                                                                        \
    (sizeof(*((type *)0)->element) +                                                                                   \
     0 * sizeof(struct {                                                                                               \
         _Static_assert(_Generic(((type *)0)->element, const __typeof__(*((type *)0)->element) * : 0, default : 1),    \
                        "the values of a channel are received into, so they are not const");                           \
         char unused;                                                                                                  \
     }))
#define STRAND_CHAN_TYPED_(type, chan) ((type){chan})
#endif

#endif
