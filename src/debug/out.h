/*
 * Text output to a descriptor, without malloc: in a mapping that grows, or in a small buffer of the caller that is
 * flushed when full.
 */
#ifndef DEBUG_OUT_H
#define DEBUG_OUT_H

#include "../strand/core.h"

struct out {
    int fd;
    int error; /* the first error; later text is lost */
    char *text;
    size_t used, room;
    bool streams;        /* `text` belongs to the caller */
    struct runtime *log; /* the run whose log hook gets the text instead of the descriptor; NULL: none */
};

/* Send the text to the log hook, if there is one, or else to standard error: in one piece, or in several of whole lines
 * if it streams. Called after opening. */
void out_log(struct out *out, struct runtime *runtime);
/* Keep the text until out_close. Returns 0 or a negated errno code. */
int out_open(struct out *out, int fd);
/* Write the text when the buffer is full, and by out_flush. */
void out_open_streaming(struct out *out, int fd, char *room, size_t size);
/* Add one line, cut to 399 bytes. */
void out_say(struct out *out, size_t indent, const char *format, ...) __attribute__((format(printf, 3, 4)));
void out_flush(struct out *out);
/* Free the memory; text that was not flushed is dropped. */
void out_close(struct out *out);

#endif
