/*
 * A clock for tests of TLS that goes as the test wants.
 */
#ifndef SPEC_TLS_CLOCK_H
#define SPEC_TLS_CLOCK_H

#include "test.h"

#include <time.h>

/* OpenSSL's clock: seconds after the system's. */
static _Atomic long later;

time_t time(time_t *result)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
    if (result)
        *result = now.tv_sec + later;
    return now.tv_sec + later;
}

#endif
