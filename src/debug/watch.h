/*
 * Observers and reporters of a run: for src/run, which installs them.
 */
#ifndef DEBUG_WATCH_H
#define DEBUG_WATCH_H

#include "../strand/print.h"

extern const struct reports debug_reports;

/* Record how much the strands of a run use of their stacks (options.census). Returns 0 or -ENOMEM. */
int census_open(struct runtime *runtime);
/* sched_ops.census */
void census_note(struct thread *thread, struct member *member, size_t used, enum census_what what);
/* Print the figures, and discard them. */
void census_close(struct runtime *runtime);

/* Until quit_close, a dedicated thread writes a dump to standard error on SIGQUIT (options.dump_on_quit). The run uses
 * atomic operations. Returns 0 or a negated errno code, and then there is nothing to close. */
int quit_open(struct runtime *runtime);
void quit_close(struct runtime *runtime);

/* Until watchdog_close, a dedicated thread reports strands that occupy their thread for too long (options.watchdog).
 * Returns like quit_open. */
int watchdog_open(struct runtime *runtime);
void watchdog_close(struct runtime *runtime);
/* sched_ops.moved */
void watchdog_moved(struct subprocess *sub);

/* Printed by the SIGQUIT thread, and when a run is found to be out of work; debug_reports has the others. */
void dump_on_quit(struct thread *thread, int fd);
int dump_from(struct thread *thread, int fd);
void dump_report(struct thread *thread);
void graph_report(struct thread *thread);
bool graph_summary(struct thread *thread, char *text, size_t size);

#endif
