/*
 * Channels pass values between strands.
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
 * A channel copies values as bytes. In C++ the element type must therefore be trivially copyable; send a pointer to any
 * other object, and let the receiver free it.
 *
 * A channel has any number of senders and receivers and serves both sides in FIFO order. A channel of capacity 0 is a
 * rendezvous: a send returns when a receiver has the value. After a close, receivers first get the values in the buffer
 * and those of queued senders, and then -EPIPE.
 *
 * A channel belongs to a scope and ends when the scope has been left. Strands of the scope have ended by then. A strand
 * outside the scope that waits at the channel gets -EPIPE; one that uses the stale handle later is misuse. If strands
 * outside the scope use the channel, close it and wait for them before leaving the scope.
 *
 * Which callers:
 *
 *   any thread of the process      strand_chan_post, STRAND_POST
 *   strands of the channel's run   all other functions
 *   a signal handler               no function; strand/port.h has what a handler can send to
 *
 * Suspension: only strand_chan_send, strand_chan_receive, STRAND_SEND and STRAND_RECEIVE may suspend the caller. They
 * are cancellation points. All other functions never suspend.
 *
 * Cost: 10 to 20 ns and the copy of the value, unless a function says otherwise. A send or a receive that waits adds a
 * switch to another strand and back; a rendezvous takes about 30 ns. Waking a strand on a sleeping thread takes a
 * system call.
 */
#ifndef STRAND_CHAN_H
#define STRAND_CHAN_H

#include "select.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A handle of a channel: a plain value that may be copied. {0} names no channel. A handle goes stale when the
 * channel's scope has been left; using a stale handle is misuse. */
typedef struct {
    uint64_t bits[2];
} strand_chan;

/** The type of a handle of a channel whose values have one type. The type may be an array or a pointer to a function.
 * STRAND_CHAN_OPEN does not compile with a const type, because receivers write to the element. */
#define STRAND_CHAN(type)                                                                                              \
    union {                                                                                                            \
        strand_chan untyped;                                                                                           \
        __typeof__(type) *element;                                                                                     \
    }

/** Optional attributes of a channel. Zero is the default of each field but `size`. */
typedef struct strand_chan_attr {
    size_t size;      /* sizeof(strand_chan_attr); required */
    const char *name; /* diagnostics only; copied, up to 31 bytes; NULL means "channel" */
    /* Called with the address of each value that is left in the channel when it ends, on any thread of the run.
     * Blocking and throwing in it are misuse. NULL does nothing. */
    void (*drop)(void *element);
} strand_chan_attr;

/** Write attributes as an argument, with `size` filled in: STRAND_CHAN_ATTR(.name = "lines"). */
#define STRAND_CHAN_ATTR(...) STRAND_SIZED_(strand_chan_attr, __VA_ARGS__)

/**
 * Open a channel in a scope. `size` is the size of a value in bytes and may be 0. `capacity` is the number of values
 * that the buffer holds; 0 makes a rendezvous. `attr` may be NULL; the call copies it. Only the owner of the scope may
 * call this function, or any strand of the run if the scope is open (STRAND_SCOPE_OPEN). The call does not suspend.
 * Cost: two allocations, one of them of `size` * `capacity` bytes, which the channel keeps until it ends.
 *
 * The channel ends when its scope has been left and all strands of the scope have ended. Strands that wait at the
 * channel then get -EPIPE, and the values that are left in it go to the function attr->drop.
 *
 * Returns the handle of the channel. Throws STRAND_SYSTEM with -ENOMEM if there is no memory; with -EOVERFLOW if `size`
 * * `capacity` exceeds PTRDIFF_MAX; with -ECANCELED if the scope is open and has been left.
 */
strand_chan strand_chan_open(strand_scope scope, size_t size, size_t capacity, const strand_chan_attr *attr);

/**
 * Send a copy of *value. The call waits until a receiver takes the value or the buffer has room. `value` may be NULL
 * only if the size of the channel's values is 0. On a shared fibre, a caller that waits needs memory for a value that
 * lies on its stack.
 *
 * Returns 0, or -EPIPE if the channel is closed; nothing was sent then. An interrupted call has sent nothing. Throws
 * STRAND_SYSTEM if there is no memory. Cost: 10 to 20 ns and the copy; a call that waits adds a switch to another
 * strand and back.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_chan_send(strand_chan chan, const void *value);
/**
 * Receive a value into *value. The call waits for a value. On a shared fibre, a caller that waits needs memory if
 * `value` points to its stack.
 *
 * Returns 0, or -EPIPE if the channel is closed and empty. An interrupted call has received nothing. Throws
 * STRAND_SYSTEM if there is no memory. Cost: 10 to 20 ns and the copy; a call that waits adds a switch to another
 * strand and back.
 */
STRAND_BLOCKS STRAND_CHECKED int strand_chan_receive(strand_chan chan, void *value);
/** Send a copy of *value without waiting. `value` is as for strand_chan_send. Returns 0, -EAGAIN if the call would have
 * to wait for room or a receiver, or -EPIPE if the channel is closed; with an error nothing was sent. */
STRAND_CHECKED int strand_chan_try_send(strand_chan chan, const void *value);
/** Receive a value into *value without waiting. Returns 0, -EAGAIN if the call would have to wait for a value, or
 * -EPIPE if the channel is closed and empty; with an error *value is unchanged. */
STRAND_CHECKED int strand_chan_try_receive(strand_chan chan, void *value);
/**
 * Put a copy of *value into a channel from any thread of the process, plain threads included. The call never waits: a
 * value that finds no room is queued like the value of a waiting sender. A value that a strand of the channel's run
 * posts is in the channel when the call returns. A value from elsewhere arrives later; the values of one thread keep
 * their order. The run must last until the call has returned. Cost: from outside the run an allocation, and a system
 * call if that wakes a thread.
 *
 * Returns 0 if the value is or will be in the channel; it is then received or goes to the drop function. Returns -EPIPE
 * if the channel is closed or gone, -ENOMEM if there is no memory, or -EINVAL if `value` is NULL and values have a
 * size.
 */
STRAND_CHECKED int strand_chan_post(strand_chan chan, const void *value);
/** Close a channel. Later sends return -EPIPE; receivers still get the values in the buffer and those of queued
 * senders. Closing a closed channel has no effect. Cost: O(waiters). */
void strand_chan_close(strand_chan chan);
/** Get the number of values in the buffer. Queued senders do not count. Other strands may change it at once. */
size_t strand_chan_length(strand_chan chan);
/** Get the number of values that the buffer can hold; 0 for a rendezvous. */
size_t strand_chan_capacity(strand_chan chan);

/** Make the case of sending a copy of *value. *value must stay valid and unchanged until the select returns. The case's
 * result is 0, or -EPIPE if the channel is closed. Cost: a few ns. */
strand_case strand_on_send(strand_chan chan, const void *value) STRAND_KEEPS_(2);
/** Make the case of receiving a value into *value, which must stay valid until the select returns. The case's result is
 * 0, or -EPIPE if the channel is closed and empty. Cost: a few ns. */
strand_case strand_on_receive(strand_chan chan, void *value);

/** Typed forms of the functions of a channel, which take a handle of a STRAND_CHAN type. `type` is the type of the
 * handle, and `value` points to an element of the channel; a pointer to another type does not compile. Each macro
 * evaluates the channel and the value once. STRAND_SEND(chan, value) returns what strand_chan_send returns, and so
 * on. */
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
extern "C++" {
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
}
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
