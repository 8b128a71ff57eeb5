/*
 * The third stage: parts of the same key are added up. A key belongs to one grouper, so nobody shares a table.
 */
#include "pipeline.h"

#include <stdlib.h>
#include <string.h>

void drop_group(void *pointer)
{
    struct group **group = pointer;
    free(*group);
    *group = NULL;
}

/* ---- a table: open addressing, at most half full --------------------------------------------- */

struct table {
    struct group **slots;
    size_t room, count; /* room is a power of two, or 0 */
};

static void table_free(struct table *table)
{
    for (size_t i = 0; i < table->room; i++)
        free(table->slots[i]);
    free(table->slots);
}

static bool same(const struct key *a, const struct key *b)
{
    return a->hash == b->hash && a->status == b->status && a->length == b->length &&
           memcmp(a->text, b->text, a->length) == 0;
}

/* Where the key is, or would be. The lower bits of the hash have chosen the grouper already. */
static struct group **find(const struct table *table, const struct key *key)
{
    size_t i = (size_t)(key->hash >> 20);
    while (table->slots[i & (table->room - 1)] && !same(&table->slots[i & (table->room - 1)]->key, key))
        i++;
    return &table->slots[i & (table->room - 1)];
}

static void make_room(struct table *table)
{
    struct table old = *table;
    table->room = old.room ? old.room * 2 : 64;
    table->slots = calloc(table->room, sizeof *table->slots);
    if (!table->slots) {
        *table = old;
        must_have(NULL);
    }
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i])
            *find(table, &old.slots[i]->key) = old.slots[i];
    free(old.slots);
}

static struct group *group_new(const struct key *key)
{
    struct group *group = must_have(malloc(sizeof *group + key->length));
    *group = (struct group){.key = *key};
    group->key.text = memcpy(group + 1, key->text, key->length);
    return group;
}

static void add(struct table *table, const struct part *part)
{
    if (table->count >= table->room / 2)
        make_room(table);
    struct group **slot = find(table, &part->key);
    if (!*slot) {
        *slot = group_new(&part->key);
        table->count++;
    }
    (*slot)->sum.requests += part->sum.requests;
    (*slot)->sum.bytes += part->sum.bytes;
}

/* ---- a grouper ------------------------------------------------------------------------------- */

struct grouper {
    batch_chan input;
    group_chan output;
};

static void *group_batches(void *arg)
{
    struct grouper *grouper = arg;
    struct table table __attribute__((cleanup(table_free))) = {0};
    struct batch *batch __attribute__((cleanup(drop_batch))) = NULL;
    for (; STRAND_RECEIVE(grouper->input, &batch) == 0; drop_batch(&batch))
        for (size_t i = 0; i < batch->count; i++)
            add(&table, &batch->parts[i]);
    for (size_t i = 0; i < table.room; i++) {
        if (table.slots[i])
            strand_must(STRAND_SEND(grouper->output, &table.slots[i]));
        table.slots[i] = NULL;
    }
    return NULL;
}

/* Each grouper gets a copy of its record, for that in here is gone before it reads it. */
void *group_stage(void *arg)
{
    struct pipeline *p = arg;
    STRAND_SCOPE_WITH(groupers, STRAND_TOGETHER);
    for (int i = 0; i < p->groupers; i++) {
        struct grouper grouper = {p->batches[i], p->results};
        strand_spawn_with(groupers, STRAND_ATTR(.name = "grouper"), group_batches, &grouper, sizeof grouper);
    }
    strand_scope_join(groupers);
    STRAND_CHAN_CLOSE(p->results);
    return NULL;
}
