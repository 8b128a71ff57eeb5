/*
 * What the fuzzer runs: a small program, a tree of operations, decoded from the bytes of an input. It has no loops, so
 * every node is run once at most, and the node's number names what it makes: a strand, a scope, a clean-up.
 */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NODES = 128, DEPTH = 8 };

/* The first number of an operand chooses among what the model says there is at that moment, modulo how many. */
enum op {
    OP_END,
    OP_SPAWN,    /* into scope a; b: with attributes, of which kind; first: what the strand does */
    OP_SCOPE,    /* a: flags; first */
    OP_DEADLINE, /* a: how far away; first */
    OP_SHIELD,   /* first */
    OP_TRY,      /* a: what it catches, and in which form; first, second: the handler */
    OP_CLEANUP,  /* a: what becomes of its exceptions; first: the block; second: the clean-up */
    OP_YIELD,
    OP_CHECKPOINT,
    OP_SLEEP,        /* a: how long */
    OP_JOIN,         /* a: which child */
    OP_WAIT,         /* a: for which strand */
    OP_SCOPE_JOIN,   /* a: which scope */
    OP_FIRST,        /* a */
    OP_NEXT,         /* a */
    OP_FAILURE,      /* a */
    OP_COUNT,        /* a */
    OP_CANCEL,       /* a: which strand; b: whether with a reason */
    OP_CANCEL_SCOPE, /* a, b */
    OP_HAND_OFF,     /* a: which child; b: to which scope */
    OP_THROW,        /* a: which kind */
    OP_RETHROW,      /* what the handler has caught */
    OP_KEEP,         /* what the handler has caught is kept */
    OP_THROW_KEPT,
    OP_BREAK, /* a: out of how many blocks */
    OP_RETURN,
    OP_MISUSE, /* a: which; in a process of its own */
    OPS
};

struct node {
    uint8_t op, a, b;
    int16_t first, second, next; /* nodes; 0: none */
};

struct program {
    uint64_t seed;
    int threads;
    const char *scheduler;
    int count;
    struct node nodes[NODES]; /* node 0 is the root strand: its `first` */
};

void program_decode(struct program *program, const uint8_t *data, size_t size);
/* In words, indented. */
void program_print(const struct program *program, FILE *to);
bool op_has_block(enum op op);

#endif
