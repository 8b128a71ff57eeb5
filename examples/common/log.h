/*
 * A log: lines are gathered in memory and written by one strand, through strand_offload.
 */
#ifndef EXAMPLES_LOG_H
#define EXAMPLES_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log {
    const char *path; /* NULL: there is no file that could be opened again */
    int fd;           /* -1: none is kept */
    int wake[2];
    size_t piece;         /* so much can be written to what is ready, and does not block */
    pthread_mutex_t lock; /* never held across a suspension; protects the next four */
    char *lines, *writing;
    size_t used;
    uint64_t lost;      /* lines that the file did not take */
    int error;          /* why; 0: it was not ready for too long */
    _Atomic bool stuck; /* a line timed out, and none has been written since */
};

/* Returns 0 or a negated errno code. path "-": standard output; NULL: no log. */
int log_open(struct log *log, const char *path);
/* Goes on in a new file of the same name: the old one may have been renamed. False: the log is no file. */
bool log_reopen(struct log *log);
void *log_write(void *log); /* the strand that writes; ends after log_close */
void log_close(struct log *log);
void log_free(struct log *log); /* what is in memory yet is lost */

/* Waits for room, without being interrupted, for as long as `patience` and until there is hurry; then the line is
 * lost. */
void log_add(struct log *log, const char *line, size_t length, int64_t patience, const _Atomic bool *hurry);
/* Appends to a line at `at`, up to `most`, in a form in which what comes from outside can't forge a line. Returns where
 * it ends. */
size_t log_append(char *line, size_t at, size_t most, const char *text, size_t length);
/* False for a pipe that is full: the log may go to one that nobody reads, and a write would block. */
bool log_takes(int fd);

#endif
