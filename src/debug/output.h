/*
 * Text output to a descriptor, without malloc: in a mapping that grows, or in a small buffer of the caller that is
 * flushed when full.
 */
#ifndef DEBUG_OUTPUT_H
#define DEBUG_OUTPUT_H

#include "../strand/core.h"

struct output {
    int fd;
    int error; /* the first error; later text is lost */
    char *text;
    size_t used, room;
    bool streams;        /* `text` belongs to the caller */
    struct runtime *log; /* the run whose log hook gets the text instead of the descriptor; NULL: none */
};

/* Send the text to the log hook, if there is one, or else to standard error: in one piece, or in several of whole lines
 * if it streams. Called after opening. */
void output_log(struct output *out, struct runtime *runtime);
/* Keep the text until output_close. Returns 0 or a negated errno code. */
int output_open(struct output *out, int fd);
/* Write the text when the buffer is full, and by output_flush. */
void output_open_streaming(struct output *out, int fd, char *room, size_t size);
/* Add one line, cut to 399 bytes. */
void output_say(struct output *out, size_t indent, const char *format, ...) __attribute__((format(printf, 3, 4)));
void output_flush(struct output *out);
/* Free the memory; text that was not flushed is dropped. */
void output_close(struct output *out);

#endif
