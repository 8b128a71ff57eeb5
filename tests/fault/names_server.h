/*
 * A name server on the loopback, in a process of its own, for all points of the workload of names: so its calls neither
 * fail nor count.
 */
#ifndef FAULT_NAMES_SERVER_H
#define FAULT_NAMES_SERVER_H

#include "fault.h"

#include <sys/socket.h>

/* Start the server, unless it runs. It ends with the calling thread. */
void names_server_start(void);
/* Where it is reached by sockets of a family. Returns the length. */
socklen_t names_server_address(struct sockaddr_storage *address, int family);

#endif
