/*
 * Two ends of a pipe or of a connection, which are closed with the block.
 */
#ifndef SPEC_ENDS_H
#define SPEC_ENDS_H

#include "test.h"

#include "strand/io.h"

struct ends {
    int in, out; /* out: -1 if a test has closed it */
};

static inline void close_ends(const struct ends *ends)
{
    CHECK_EQ(strand_close(ends->in), 0);
    if (ends->out >= 0)
        CHECK_EQ(strand_close(ends->out), 0);
}
#define ENDS __attribute__((cleanup(close_ends))) struct ends

static inline struct ends of_pipe(void)
{
    int fds[2];
    CHECK_EQ(strand_pipe(fds), 0);
    return (struct ends){fds[0], fds[1]};
}

static inline struct ends of_tcp(void)
{
    struct ends ends;
    int listener = strand_listen_tcp("127.0.0.1", 0);
    ends.out = strand_dial_tcp("127.0.0.1", strand_tcp_port(listener));
    ends.in = strand_accept(listener);
    CHECK(ends.in >= 0 && ends.out >= 0);
    CHECK_EQ(strand_close(listener), 0);
    return ends;
}

#endif
