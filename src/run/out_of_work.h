/*
 * A run that is out of work.
 */
#ifndef RUN_OUT_OF_WORK_H
#define RUN_OUT_OF_WORK_H

#include "run.h"

/* The process has threads outside of the run, which might act on it. */
bool out_of_work_has_strangers(struct runtime *runtime);

/* The run is dry, and no strand waits for that. Under quiescent_lock. Returns the root strand, which the caller has to
 * make runnable; or NULL: a thread outside of the run may still act on it. Then *sure is false if that is all that is
 * known; it is true before. Ends the program if the options ask for it, or the root can't be interrupted. */
struct member *out_of_work_judge(struct thread *thread, struct run *run, bool *sure);
/* The judgement was not sure: logs once that nothing goes on, after a while. asked: as of quiescence_comes. */
void out_of_work_doubt(struct thread *thread, struct run *run, uint32_t asked);

#endif
