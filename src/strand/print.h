/*
 * Exceptions and stacks in words, and the ends of the program.
 */
#ifndef STRAND_PRINT_H
#define STRAND_PRINT_H

#include "core.h"

/* Formatted, up to 511 bytes, in one call and without memory. */
void print_text(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where the calling strand is; me is NULL outside of strands. */
void print_here(int fd, struct cb *me);
/* What a strand does that is blocked so: "waits for mutex", before the name of what it waits for. "" for BLOCKED_NOT.
 */
const char *blocked_words(unsigned blocked);
/* One line per frame: "    at function+0x12". */
void print_frames(int fd, void **ips, size_t count);
/* Both exceptions, then abort. */
__attribute__((noreturn)) void print_and_die(const char *what, strand_exception *e, strand_exception *other);
/* The stack of the thread's strand has overflowed. ucontext: of the fault, which goes on after the report; NULL: the
 * canary was found damaged, and the program ends here. */
enum overflow { OVERFLOW_GUARD, OVERFLOW_STEPPED_OVER, OVERFLOW_CANARY };
void overflow_report(struct thread *thread, enum overflow how, void *ucontext);
/* The C++ runtime ends the program. */
void print_terminating(void);
/* An exception can't get through the function that has this address: for arch_on_lost. */
void print_lost(void *ip);
/* All strands of the thread's run, as strand_dump writes them: made by src/debug. Returns 0 or a negated errno code. */
int dump_from(struct thread *thread, int fd);
/* The same to the log; the thread may be one of a pool's that runs no strand, and holds no lock of its pool. */
void dump_report(struct thread *thread);
/* The same for quit_open's thread. */
void dump_on_quit(struct thread *thread, int fd);
/* Who waits for whom in the thread's run, as strand_waits_print writes it, to the log hook or to standard error; and
 * the same in one line of at most `size` - 1 bytes, of which 180 are enough, and whether strands wait for each other.
 * Made by src/debug. By a strand, or by a pool's thread that runs none and holds no lock; the other threads are held
 * meanwhile. Without memory the first is a plain list of the strands, and the line says that there is none. */
void graph_report(struct thread *thread);
bool graph_summary(struct thread *thread, char *text, size_t size);
/* Of a run whose strands' stacks are to be counted: made by src/debug. Returns 0 or -ENOMEM. */
int census_open(struct runtime *runtime);
/* sched_ops.census */
void census_note(struct thread *thread, struct member *member, size_t used, enum census_what what);
/* Print it, and forget it. */
void census_close(struct runtime *runtime);
/* From now on, until quit_close, SIGQUIT has a thread of its own write such a dump to standard error: made by
 * src/debug. The run uses atomic operations. Returns 0 or a negated errno code, and then there is nothing to be closed.
 */
int quit_open(struct runtime *runtime);
void quit_close(struct runtime *runtime);
/* From now on, until watchdog_close, a thread of its own reports what options.watchdog is about: made by src/debug. The
 * same of what it returns. */
int watchdog_open(struct runtime *runtime);
void watchdog_close(struct runtime *runtime);
/* sched_ops.moved */
void watchdog_moved(struct subprocess *sub);
/* To the log hook, or to standard error: a line for the exception, and one for each that it carries and that is no
 * interruption; at most as many as strand_exception_print has. NULL: nothing happens. */
void log_exception(struct runtime *runtime, const char *what, const strand_exception *e);
void log_text(struct runtime *runtime, const char *text);

#endif
