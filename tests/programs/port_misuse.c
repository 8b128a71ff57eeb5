/*
 * Misuse of ports.
 */
#include "cases.h"

#include "strand/port.h"

enum { MESSAGE = 16 };
static char message[MESSAGE];

static NOINLINE strand_port open_it_here(strand_scope scope, const strand_port_attr *attr)
{
    strand_port port = strand_port_open(scope, MESSAGE, 2, attr);
    memset(message, 'm', sizeof message);
    return port;
}

static strand_port port_that_is_gone(void)
{
    STRAND_SCOPE(scope);
    return open_it_here(scope, NULL);
}

MISUSE(receive_from_a_port_that_is_gone, "strand_port_receive", "the port is gone")
DOES(strand_port_receive(port_that_is_gone(), message, sizeof message))

MISUSE(receive_from_no_port, "strand_port_receive", "there is no port behind {0}: strand_port_open makes one")
DOES(strand_port_receive((strand_port){{0, 0}}, message, sizeof message))

MISUSE(receive_into_too_little, "strand_port_receive", "the buffer has 8 bytes, and a message may have 16")
{
    STRAND_SCOPE(scope);
    strand_port port = open_it_here(scope, NULL);
    STRAND_IGNORE(strand_port_send(port, message, 1)); /* this one would fit */
    strand_port_receive(port, message, MESSAGE / 2);
    return arg;
}

MISUSE(open_a_port_without_slots, "strand_port_open", "there are 0 slots, not 1 to 1048576")
DOES(STRAND_SCOPE(scope); strand_port_open(scope, MESSAGE, 0, NULL))

static void *open_in(void *scope)
{
    open_it_here(*(strand_scope *)scope, NULL);
    return NULL;
}

MISUSE(open_a_port_in_a_foreign_scope, "strand_port_open", "only the strand that opened a scope may do that")
{
    static strand_scope of_the_parent;
    STRAND_SCOPE(scope);
    of_the_parent = scope;
    strand_join(strand_spawn(scope, open_in, &of_the_parent));
    return arg;
}

static strand_port lent;

static void *receive_what_is_lent(void *arg)
{
    strand_port_receive(lent, message, sizeof message);
    return arg;
}

MISUSE(receive_from_a_port_of_another_run, "strand_port_receive", "the port belongs to another run")
{
    STRAND_SCOPE(scope);
    lent = open_it_here(scope, NULL);
    strand_run(STRAND_OPTIONS(.own_threads = true, .on_misuse = tell), receive_what_is_lent, NULL);
    return arg;
}

static void throw_it(void *bytes, size_t size)
{
    (void)bytes, (void)size;
    strand_throw(&STRAND_ERROR, "on purpose");
}

MISUSE(throw_in_the_drop_of_a_port, "strand_port_attr.drop", "the function has thrown 'on purpose'")
{
    static const strand_port_attr attr = {.size = sizeof attr, .name = "letters", .drop = throw_it};
    STRAND_SCOPE(scope);
    STRAND_IGNORE(strand_port_send(open_it_here(scope, &attr), message, 1));
    return arg;
}
