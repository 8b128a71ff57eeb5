/*
 * Streams whose bytes are known by their places: a strand that writes one, and a strand that reads and compares it.
 */
#ifndef SPEC_COUNTED_H
#define SPEC_COUNTED_H

#include "ends.h"

#include <sys/socket.h>

/* Byte `at` of each stream; the period is no power of two. */
static inline unsigned char byte_at(uint64_t at)
{
    return (unsigned char)(at % 251);
}

/* The library has not made them, and they block. */
static inline struct ends of_blocking(void)
{
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return (struct ends){fds[0], fds[1]};
}

struct reader {
    int fd;
    uint64_t at;  /* of the next byte in the stream */
    uint64_t got; /* so far */
};

static inline void *read_to_the_end(void *arg)
{
    struct reader *reader = arg;
    enum { ROOM = 1 << 16 };
    unsigned char *buffer = malloc(ROOM);
    int64_t got;
    CHECK(buffer);
    while ((got = strand_read(reader->fd, buffer, ROOM)) > 0) {
        for (int64_t i = 0; i < got; i++)
            if (buffer[i] != byte_at(reader->at + (uint64_t)i))
                CHECK_FAIL("byte %lld is a wrong one", (long long)(reader->at + (uint64_t)i));
        reader->at += (uint64_t)got;
        reader->got += (uint64_t)got;
    }
    free(buffer);
    return arg;
}

struct writer {
    int fd; /* closed at the end */
    uint64_t at, size;
};

static inline void *write_and_close(void *arg)
{
    struct writer *writer = arg;
    enum { ROOM = 1 << 16 };
    unsigned char *buffer = malloc(ROOM);
    CHECK(buffer);
    for (uint64_t left = writer->size; left;) {
        size_t part = left < ROOM ? (size_t)left : ROOM;
        for (size_t i = 0; i < part; i++)
            buffer[i] = byte_at(writer->at + i);
        CHECK_EQ(strand_write_all(writer->fd, buffer, part), part);
        writer->at += part;
        left -= part;
    }
    free(buffer);
    CHECK_EQ(strand_close(writer->fd), 0);
    return arg;
}

#endif
