/*
 * The functions that the stacks of a run need of its threads: this layer registers them with src/stack.
 */
#ifndef SCHED_STACK_OPS_H
#define SCHED_STACK_OPS_H

struct stack_ops;
struct thread;

extern const struct stack_ops thread_stack_ops;

/* Makes a thread that is about to begin check canaries, if there are stacks without guard pages. */
void thread_prepare_canaries(struct thread *thread);

#endif
