/*
 * What interprets a program: the operations by themselves (calls.c, acts.c), blocks (blocks.c), and what runs them
 * (tree.c). Every function runs as the strand that it is given.
 */
#ifndef FUZZ_RUN_H
#define FUZZ_RUN_H

#include "model.h"

#define ON_LEAVING(fn) __attribute__((cleanup(fn)))

/* How a block is left when no exception leaves it. Above 0: so many blocks more are left. */
enum { FALL = 0, RETURN = -1 };

extern struct program program;
extern const strand_kind kind_a, kind_b;

/* Chooses number `which`, modulo their count, of the nodes that `fits` accepts; or NO_ONE. */
int choose(struct mstrand *s, unsigned which, bool (*fits)(struct mstrand *s, int index));
bool is_child(struct mstrand *s, int i);
bool is_strand(struct mstrand *s, int i);
bool is_other(struct mstrand *s, int i);
bool is_mine(struct mstrand *s, int i);
bool is_mine_or_open(struct mstrand *s, int i);
bool is_scope(struct mstrand *s, int i);

/* calls.c: what may block, and spawning. */
void run_call(struct mstrand *s, const struct node *node);
void run_spawn(struct mstrand *s, int16_t index);
void *run_strand(void *s);

/* acts.c: what does not block, and throwing. */
void run_act(struct mstrand *s, int16_t index);
/* Payloads of exceptions that there are. */
int payloads(void);

/* misuse.c */
void run_misuse(struct mstrand *s, const struct node *node);
/* Runs the same run again in a child process, if it contains a misuse. */
void misuse_in_a_child(void (*run_again)(void));
void on_misuse(const strand_misuse *misuse, void *arg);

/* blocks.c */
int run_block(struct mstrand *s, int16_t first);
bool below(const strand_kind *kind, const strand_kind *other);

#endif
