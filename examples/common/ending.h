/*
 * How a server ends by signals. The first one ends what it takes on; connections have time to finish. A second one, or
 * the end of that time, cancels them. SIGHUP is for files that are opened again.
 */
#ifndef EXAMPLES_ENDING_H
#define EXAMPLES_ENDING_H

#include "log.h"

#include <strand.h>
#include <strand/io.h>

struct ending {
    void *server;
    bool (*reload)(void *server); /* for SIGHUP. False: there is nothing to open again, and it is a signal as others */
    void (*stop)(void *server);   /* take no more on */
    _Atomic bool *cancelled;      /* set before connections are cancelled */
    int64_t time;                 /* ns that connections have to finish */
    struct log *log;
    strand_signals signals;
    strand connections, writer; /* owned: what keeps the connections, and what writes the log */
};

/* Waits for the first signal, and then until all connections have ended and the log is written. Joins both strands. */
void end_by_signals(const struct ending *ending);

#endif
