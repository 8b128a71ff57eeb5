/*
 * The policy for a run that is out of work.
 */
#ifndef RUN_OUT_OF_WORK_H
#define RUN_OUT_OF_WORK_H

#include "run.h"

/* Returns whether the process has threads outside of the run, which might act on it. */
bool out_of_work_has_outside_threads(struct runtime *runtime);

/* Judges a run that is quiescent and in which no strand waits for that. Under quiescent_lock. Returns the root strand,
 * which the caller must make runnable, or NULL: a thread outside of the run may still act on it. The caller sets *sure
 * to true. The call sets it to false if the process has threads outside the run, which may still act on it. Ends the
 * program if the options ask for it, or the root can't be interrupted. */
struct member *out_of_work_judge(struct thread *thread, struct run *run, bool *sure);
/* Logs once, after a while, that nothing goes on. Called after a judgement that was not sure. asked: as of
 * quiescence_comes. */
void out_of_work_doubt(struct thread *thread, struct run *run, uint32_t asked);

#endif
