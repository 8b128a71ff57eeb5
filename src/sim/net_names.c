/*
 * Names of simulated sockets, and which of them has a name.
 */
#include "net.h"

#include <stdio.h>
#include <string.h>

enum { NUMBERS = 65536 };

struct net_name net_name_of(const void *address, uint32_t length)
{
    enum { PATH_AT = 2 }; /* after the family */
    struct net_name name = {.number = arch_address_port(address, length)};
    if (name.number < 0 && length > PATH_AT)
        memcpy(name.path, (const char *)address + PATH_AT,
               length - PATH_AT < sizeof name.path ? length - PATH_AT : sizeof name.path);
    return name;
}

bool net_has_path(const struct net_name *name)
{
    return name->path[0] || name->path[1];
}

void net_put_name(const struct net_name *name, struct arch_name *out)
{
    char path[sizeof name->path + 1] = "";
    struct arch_address address;
    if (name->number >= 0) {
        (void)arch_address_tcp("127.0.0.1", name->number, false, false, &address, 1);
    } else {
        memcpy(path, name->path, sizeof name->path);
        if (!path[0] && path[1])
            path[0] = '@';
        (void)arch_address_of_name(path, &address);
    }
    memcpy(out->bytes, address.bytes, sizeof out->bytes);
    out->length = address.length;
}

void net_copy_address(struct arch_name *out, const void *address, uint32_t length)
{
    out->length = length < sizeof out->bytes ? length : sizeof out->bytes;
    memcpy(out->bytes, address, out->length);
}

static bool is_bound(const struct port *port, const struct net_name *name, bool datagrams)
{
    return port && (port->state == PORT_BOUND || port->state == PORT_LISTENS) && port->name.number == name->number &&
           (name->number < 0 || port->datagrams == datagrams) &&
           memcmp(port->name.path, name->path, sizeof name->path) == 0;
}

struct port *net_find_bound(const struct sim *sim, const struct net_name *name, bool datagrams)
{
    for (int fd = 0; fd < sim->net->room; fd++)
        if (is_bound(sim->net->ports[fd], name, datagrams))
            return sim->net->ports[fd];
    return NULL;
}

struct port *net_choose_bound(struct sim *sim, const struct net_name *name, bool datagrams)
{
    struct port *first = net_find_bound(sim, name, datagrams);
    uint32_t count = 0;
    if (!first || !first->shares)
        return first;
    for (int fd = 0; fd < sim->net->room; fd++)
        count += is_bound(sim->net->ports[fd], name, datagrams);
    uint32_t skip = order_chance(sim, count);
    for (int fd = first->fd;; fd++)
        if (is_bound(sim->net->ports[fd], name, datagrams) && !skip--)
            return sim->net->ports[fd];
}

int net_next_number(struct sim *sim, bool datagrams)
{
    struct net_name name = {0};
    do {
        name.number = sim->net->last_number = sim->net->last_number % (NUMBERS - 1) + 1;
    } while (net_find_bound(sim, &name, datagrams));
    return name.number;
}

void net_choose_path(struct sim *sim, struct net_name *name)
{
    do {
        snprintf(name->path + 1, sizeof name->path - 1, "%05x", (unsigned)++sim->net->last_path & 0xfffff);
    } while (net_find_bound(sim, name, true));
}
