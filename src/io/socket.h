/*
 * What the files on sockets share.
 */
#ifndef IO_SOCKET_H
#define IO_SOCKET_H

#include "../../include/strand/socket.h"

#include <stdbool.h>

enum { BACKLOG = 4096 }; /* the longest queue of a listener; the system may allow less */

/* Whether an address of IPv6 stands for all addresses of both families. Then *four gets that of IPv4, for a machine
 * without IPv6. */
bool socket_is_for_all(const strand_address *address, strand_address *four);

#endif
