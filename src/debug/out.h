/*
 * Text for a descriptor, without malloc: kept in a mapping that grows, or in a few bytes of the caller's from which it
 * is written now and then.
 */
#ifndef DEBUG_OUT_H
#define DEBUG_OUT_H

#include "../strand/core.h"

struct out {
    int fd;
    int error; /* the first; what is said after it is lost */
    char *text;
    size_t used, room;
    bool streams;        /* `text` is the caller's */
    struct runtime *log; /* to the log hook of this run, instead of the descriptor; NULL: not */
};

/* To the log hook, if there is one, else to standard error: what is said goes there in one text, or in several of whole
 * lines if it streams. After opening. */
void out_log(struct out *out, struct runtime *runtime);
/* Kept until out_close. Returns 0 or a negated errno code. */
int out_open(struct out *out, int fd);
/* Written by out_flush, and when the room is full. */
void out_open_streaming(struct out *out, int fd, char *room, size_t size);
/* One line, of which 399 bytes are shown at most. */
void out_say(struct out *out, size_t indent, const char *format, ...) __attribute__((format(printf, 3, 4)));
void out_flush(struct out *out);
/* Give the memory back; what was not flushed is dropped. */
void out_close(struct out *out);

#endif
