/*
 * Decoding and printing of programs. Any bytes are a program: what is missing at the end counts as zero, which ends a
 * block.
 */
#include "program.h"

#include <string.h>

struct reader {
    const uint8_t *data;
    size_t size, at;
};

static uint8_t take(struct reader *r)
{
    return r->at < r->size ? r->data[r->at++] : 0;
}

static const struct {
    const char *word;
    uint8_t operands, blocks;
} ops[OPS] = {
    [OP_SPAWN] = {"spawn", 2, 1},
    [OP_SCOPE] = {"scope", 1, 1},
    [OP_DEADLINE] = {"deadline", 1, 1},
    [OP_SHIELD] = {"shield", 0, 1},
    [OP_TRY] = {"try", 1, 2},
    [OP_CLEANUP] = {"with a clean-up", 1, 2},
    [OP_YIELD] = {"yield", 0, 0},
    [OP_CHECKPOINT] = {"checkpoint", 0, 0},
    [OP_SLEEP] = {"sleep", 1, 0},
    [OP_JOIN] = {"join child", 1, 0},
    [OP_WAIT] = {"wait for strand", 1, 0},
    [OP_SCOPE_JOIN] = {"join scope", 1, 0},
    [OP_FIRST] = {"first of scope", 1, 0},
    [OP_NEXT] = {"next of scope", 1, 0},
    [OP_FAILURE] = {"failure of scope", 1, 0},
    [OP_COUNT] = {"count scope", 1, 0},
    [OP_CANCEL] = {"cancel strand", 2, 0},
    [OP_CANCEL_SCOPE] = {"cancel scope", 2, 0},
    [OP_HAND_OFF] = {"hand off", 2, 0},
    [OP_THROW] = {"throw", 1, 0},
    [OP_RETHROW] = {"rethrow", 0, 0},
    [OP_KEEP] = {"keep what was caught", 0, 0},
    [OP_THROW_KEPT] = {"throw what was kept", 0, 0},
    [OP_BREAK] = {"break", 1, 0},
    [OP_RETURN] = {"return", 0, 0},
    [OP_MISUSE] = {"misuse", 1, 0},
};

bool op_has_block(enum op op)
{
    return ops[op].blocks > 0;
}

static int16_t decode_block(struct program *program, struct reader *r, int depth)
{
    int16_t first = 0, *link = &first;
    while (r->at < r->size && program->count < NODES) {
        enum op op = take(r) % OPS;
        if (op == OP_END)
            break;
        if (depth == DEPTH && ops[op].blocks)
            continue;
        int16_t index = (int16_t)program->count++;
        struct node *node = &program->nodes[index];
        *node = (struct node){.op = (uint8_t)op};
        if (ops[op].operands > 0)
            node->a = take(r);
        if (ops[op].operands > 1)
            node->b = take(r);
        if (ops[op].blocks > 0)
            node->first = decode_block(program, r, depth + 1);
        if (ops[op].blocks > 1)
            node->second = decode_block(program, r, depth + 1);
        *link = index;
        link = &node->next;
    }
    return first;
}

void program_decode(struct program *program, const uint8_t *data, size_t size)
{
    struct reader r = {data, size, 0};
    memset(program, 0, sizeof *program);
    program->seed = take(&r);
    program->seed |= (uint64_t)take(&r) << 8;
    uint8_t how = take(&r);
    program->threads = how % 4 + 1;
    program->scheduler = how & 4 ? "global" : "stealing";
    program->count = 1;
    program->nodes[0].first = decode_block(program, &r, 0);
}

static void print_block(const struct program *program, int16_t first, int depth, FILE *to)
{
    for (int16_t i = first; i; i = program->nodes[i].next) {
        const struct node *node = &program->nodes[i];
        fprintf(to, "%4d %*s%s", i, 2 * depth, "", ops[node->op].word);
        if (ops[node->op].operands > 0)
            fprintf(to, " %u", node->a);
        if (ops[node->op].operands > 1)
            fprintf(to, ", %u", node->b);
        fputc('\n', to);
        print_block(program, node->first, depth + 1, to);
        if (ops[node->op].blocks > 1 && node->second) {
            fprintf(to, "     %*s%s\n", 2 * depth, "", node->op == OP_TRY ? "caught:" : "cleaning up:");
            print_block(program, node->second, depth + 1, to);
        }
    }
}

void program_print(const struct program *program, FILE *to)
{
    fprintf(to, "fuzz: seed %llu, %d threads, scheduler %s\n", (unsigned long long)program->seed, program->threads,
            program->scheduler);
    print_block(program, program->nodes[0].first, 0, to);
}
