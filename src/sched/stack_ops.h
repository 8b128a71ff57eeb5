/*
 * What the stacks of a run need of its threads: the functions that this layer registers with src/stack.
 */
#ifndef SCHED_STACK_OPS_H
#define SCHED_STACK_OPS_H

struct stack_ops;
struct thread;

extern const struct stack_ops thread_stack_ops;

/* A thread that is about to begin: it checks the canaries of stacks if there are any without guard pages. */
void thread_prepare_canaries(struct thread *thread);

#endif
