/*
 * Exceptions and stacks in words, and the ends of the program.
 */
#ifndef STRAND_PRINT_H
#define STRAND_PRINT_H

#include "core.h"

/* Where the calling strand is; me is NULL outside of strands. */
void print_here(int fd, struct cb *me);
/* One line per frame: "    at function+0x12". */
void print_frames(int fd, void **ips, size_t count);
/* Both exceptions, then abort. */
__attribute__((noreturn)) void print_and_die(const char *what, strand_exception *e, strand_exception *other);
/* A stack has overflowed, by a fault at address, or (NULL) found at a switch. The fault goes on; the canary's finder
 * aborts. */
void overflow_report(struct thread *thread, void *address, void *ucontext);
/* A C++ exception is about to leave a strand's function; the C++ runtime ends the program. */
void print_foreign(void);
void print_terminating(void);
/* To the log hook, or to standard error. NULL: nothing happens. */
void log_exception(struct runtime *runtime, const char *what, const strand_exception *e);
void log_text(struct runtime *runtime, const char *text);

#endif
