/*
 * What watches a run, and what reports on it: for src/run, which puts it into a run.
 */
#ifndef DEBUG_WATCH_H
#define DEBUG_WATCH_H

#include "../strand/print.h"

extern const struct reports debug_reports;

/* Count how much the strands of a run use of their stacks (options.census). Returns 0 or -ENOMEM. */
int census_open(struct runtime *runtime);
/* sched_ops.census */
void census_note(struct thread *thread, struct member *member, size_t used, enum census_what what);
/* Print the figures, and forget them. */
void census_close(struct runtime *runtime);

/* Until quit_close, SIGQUIT has a thread of its own write a dump to standard error (options.dump_on_quit). The run uses
 * atomic operations. Returns 0 or a negated errno code, and then there is nothing to close. */
int quit_open(struct runtime *runtime);
void quit_close(struct runtime *runtime);

/* Until watchdog_close, a thread of its own reports strands that hold their thread for too long (options.watchdog).
 * Returns what quit_open returns. */
int watchdog_open(struct runtime *runtime);
void watchdog_close(struct runtime *runtime);
/* sched_ops.moved */
void watchdog_moved(struct subprocess *sub);

/* What a dump of SIGQUIT's thread and a verdict of being out of work print; debug_reports has the others. */
void dump_on_quit(struct thread *thread, int fd);
int dump_from(struct thread *thread, int fd);
void dump_report(struct thread *thread);
void graph_report(struct thread *thread);
bool graph_summary(struct thread *thread, char *text, size_t size);

#endif
