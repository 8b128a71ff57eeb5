/*
 * Ports of numbers, and threads that send to them: what several files of tests share.
 */
#ifndef SPEC_PORTS_H
#define SPEC_PORTS_H

#include "test.h"

#include "strand/port.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static inline int send_long(strand_port port, long value)
{
    return strand_port_send(port, &value, sizeof value);
}

/* Sends it when there is room. */
static inline int send_surely(strand_port port, long value)
{
    int error;
    while ((error = send_long(port, value)) == -EAGAIN)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return error;
}

/* -1: the port is over. */
static inline long received_from(strand_port port)
{
    long value = -1;
    int64_t size = strand_port_receive(port, &value, sizeof value);
    if (size < 0)
        CHECK_EQ(size, -EPIPE);
    else
        CHECK_EQ(size, sizeof value);
    return value;
}

static inline size_t taken_of(strand_port port)
{
    strand_port_info info = {.size = sizeof info};
    CHECK_EQ(strand_port_info_get(port, &info), 0);
    return info.taken;
}

#endif
