/*
 * The virtual date of a seeded run, and simulated descriptors that wait for one. A date differs from the virtual time
 * by an offset, which strand_sim_date changes.
 */
#include "net.h"

#include "../sched/fds.h"
#include "../strand/misuse.h"

#include <errno.h>
#include <string.h>

int64_t calendar_now(struct subprocess *sub)
{
    const struct sim *sim = sim_of(sub);
    int64_t date;
    return __builtin_add_overflow(sim->now, sim->date_offset, &date) ? INT64_MAX : date;
}

/* The virtual time of a date; a sum that is too large is far enough away. */
static int64_t time_of(const struct sim *sim, int64_t date)
{
    int64_t time;
    if (!__builtin_sub_overflow(date, sim->date_offset, &time))
        return time;
    return date < 0 ? 0 : ARCH_FOREVER - 1;
}

static void await_date(struct sim *sim, struct port *port)
{
    net_forget(sim, port);
    port->since = time_of(sim, port->date);
    net_report(sim, port, ARCH_IN, port->was_set || port->since < sim->now ? sim->now : port->since);
}

int calendar_wait(struct subprocess *sub, int64_t date)
{
    struct sim *sim = sim_of(sub);
    struct port *port = net_make_port(sim, PORT_CLOCK);
    int fd = port ? net_enrol(sim, port) : -ENOMEM;
    if (fd < 0) {
        sim_free(sim, port);
        return fd;
    }
    port->date = date;
    await_date(sim, port);
    return fd;
}

int calendar_ready(const struct sim *sim, const struct port *port)
{
    return port->was_set || port->since <= sim->now ? ARCH_IN : 0;
}

int64_t calendar_read(struct sim *sim, struct port *port, void *buffer, size_t size)
{
    uint64_t once = 1;
    if (!calendar_ready(sim, port))
        return -EAGAIN;
    if (port->was_set) {
        port->was_set = false;
        return -ECANCELED;
    }
    memcpy(buffer, &once, size < sizeof once ? size : sizeof once);
    return sizeof once;
}

int strand_sim_date(strand_date date)
{
    struct thread *thread = must_be_strand("strand_sim_date");
    struct sim *sim = thread->platform ? sim_of(thread->sub) : NULL;
    if (!sim || sim->options.real)
        return -ENOTSUP;
    if (__builtin_sub_overflow(date.ns, sim->now, &sim->date_offset))
        sim->date_offset = date.ns < 0 ? INT64_MIN : INT64_MAX;
    for (int fd = 0; sim->net && fd < sim->net->room; fd++) {
        struct port *port = sim->net->ports[fd];
        if (port && port->state == PORT_CLOCK) {
            port->was_set = true;
            await_date(sim, port);
        }
    }
    return 0;
}
