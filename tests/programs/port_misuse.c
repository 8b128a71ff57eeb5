/*
 * One misuse of ports per argument; the report goes to standard error, and the program has to end by abort().
 */
#include "strand.h"
#include "strand/pool.h"
#include "strand/port.h"

#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

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

static void *receive_from_a_port_that_is_gone(void *arg)
{
    strand_port_receive(port_that_is_gone(), message, sizeof message);
    return arg;
}

static void *receive_from_no_port(void *arg)
{
    strand_port_receive((strand_port){{0, 0}}, message, sizeof message);
    return arg;
}

static void *receive_into_too_little(void *arg)
{
    STRAND_SCOPE(scope);
    strand_port port = open_it_here(scope, NULL);
    STRAND_IGNORE(strand_port_send(port, message, 1)); /* this one would fit */
    strand_port_receive(port, message, MESSAGE / 2);
    return arg;
}

static void *open_a_port_without_slots(void *arg)
{
    STRAND_SCOPE(scope);
    strand_port_open(scope, MESSAGE, 0, NULL);
    return arg;
}

static void *open_in(void *scope)
{
    open_it_here(*(strand_scope *)scope, NULL);
    return NULL;
}

static void *open_a_port_in_a_foreign_scope(void *arg)
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

static void *receive_from_a_port_of_another_run(void *arg)
{
    STRAND_SCOPE(scope);
    lent = open_it_here(scope, NULL);
    strand_run(STRAND_OPTIONS(.own_threads = true), receive_what_is_lent, NULL);
    return arg;
}

static void throw_it(void *bytes, size_t size)
{
    (void)bytes, (void)size;
    strand_throw(&STRAND_ERROR, "on purpose");
}

static void *throw_in_the_drop_of_a_port(void *arg)
{
    static const strand_port_attr attr = {.size = sizeof attr, .name = "letters", .drop = throw_it};
    STRAND_SCOPE(scope);
    STRAND_IGNORE(strand_port_send(open_it_here(scope, &attr), message, 1));
    return arg;
}

static const struct {
    const char *name;
    strand_fn *fn;
} cases[] = {
    {"receive_from_a_port_that_is_gone", receive_from_a_port_that_is_gone},
    {"receive_from_no_port", receive_from_no_port},
    {"receive_into_too_little", receive_into_too_little},
    {"open_a_port_without_slots", open_a_port_without_slots},
    {"open_a_port_in_a_foreign_scope", open_a_port_in_a_foreign_scope},
    {"receive_from_a_port_of_another_run", receive_from_a_port_of_another_run},
    {"throw_in_the_drop_of_a_port", throw_in_the_drop_of_a_port},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            strand_run(NULL, cases[i].fn, NULL);
    puts("still alive");
    return 0;
}
