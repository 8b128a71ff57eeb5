/*
 * udp_echo: what its servers in C share: the load, a process of its own that is started by the server, so that the
 * server knows its end. A server sends back each datagram to where it came from, up to an empty one, which is the last.
 */
#ifndef BENCH_UDP_H
#define BENCH_UDP_H

#include "echo.h"

/* The size of a datagram, and how many a server takes with one call. */
enum { UDP_MESSAGE = 64, UDP_BATCH = 32, UDP_IN_FLIGHT = 64 };

BENCH_API void udp_start_load(const char *runtime, int port)
{
    echo_start("/udp_load", runtime, UDP_IN_FLIGHT, port);
}

#endif
