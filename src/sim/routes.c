/*
 * Addresses of a simulated network that do not answer as usual: strand_sim_route.
 */
#include "net.h"

#include "../strand/misuse.h"

#include <errno.h>

/* How long the system sends the first packet again. */
#define SILENT_NS (127 * STRAND_S)

struct route {
    struct route *next;
    struct arch_address host;
    enum strand_sim_route what;
    int64_t delay;
};

int route_of(const struct sim *sim, const void *address, int64_t *delay)
{
    static const int results[] = {[STRAND_SIM_OPEN] = 0,
                                  [STRAND_SIM_SILENT] = -ETIMEDOUT,
                                  [STRAND_SIM_REFUSED] = -ECONNREFUSED,
                                  [STRAND_SIM_UNREACHABLE] = -ENETUNREACH};
    const struct route *route = sim->routes;
    *delay = 0;
    while (route && !arch_address_is_host(address, &route->host))
        route = route->next;
    if (!route)
        return 0;
    *delay = route->what == STRAND_SIM_SILENT ? SILENT_NS : route->delay;
    return results[route->what];
}

void routes_close(struct sim *sim)
{
    while (sim->routes) {
        struct route *next = sim->routes->next;
        sim_free(sim, sim->routes);
        sim->routes = next;
    }
}

int strand_sim_route(const char *address, enum strand_sim_route route, int64_t delay_ns)
{
    struct thread *thread = must_be_strand("strand_sim_route");
    struct sim *sim = thread->platform ? sim_of(thread->sub) : NULL;
    must_be_there(address, "address", "strand_sim_route");
    if ((unsigned)route > STRAND_SIM_UNREACHABLE || delay_ns < 0)
        MISUSE("strand_sim_route", "", "%u is not a route, or its delay of %lld ns is negative", (unsigned)route,
               (long long)delay_ns);
    if (!sim || sim->options.real)
        return -ENOTSUP;
    struct arch_address host;
    if (!*address || arch_address_tcp(address, 0, false, false, &host, 1) != 1)
        return -EINVAL;
    struct route *new = sim_resize(sim, NULL, sizeof *new);
    if (!new)
        return -ENOMEM;
    *new = (struct route){.next = sim->routes, .host = host, .what = route, .delay = delay_ns};
    sim->routes = new;
    return 0;
}
