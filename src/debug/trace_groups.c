/*
 * Groups of strands at the same place in the code: a hash table of fixed size.
 */
#include "trace_groups.h"

#include "pools.h"

#include "../strand/exception.h"
#include "../strand/print.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS_MOST = 2048, HEADS = 4096 };

struct group {
    /* The key. */
    uint64_t hash;
    const char *file;
    int line;
    const struct pool *pool; /* NULL: the run's first */
    uint8_t doing;           /* enum doing */
    uint8_t blocked;         /* blocked.h, if the strands are blocked */
    uint32_t frames;
    void *ips[FRAMES_MOST];
    /* The strands. */
    char name[32];
    bool names_differ, objects_differ;
    size_t count, cancelled, inactive, saved;
    uint64_t first, last; /* ids */
    uint64_t object;      /* that they wait for */
    size_t used_least, used_most;
    int64_t since_least, since_most; /* when they blocked */
    uint32_t next;                   /* 1 + the index of the next group of this hash */
};

struct groups {
    uint32_t heads[HEADS];
    uint32_t used;
    size_t others; /* strands without room in any group */
    struct group all[GROUPS_MOST];
};

size_t trace_groups_size(void)
{
    return sizeof(struct groups);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct group *key)
{
    uint64_t hash = mix(mix(mix(0, (uintptr_t)key->file), (uint64_t)key->line), key->doing << 8 | key->blocked);
    hash = mix(hash, (uintptr_t)key->pool);
    for (uint32_t i = 0; i < key->frames; i++)
        hash = mix(hash, (uintptr_t)key->ips[i]);
    return hash;
}

static bool equals(const struct group *a, const struct group *b)
{
    return a->hash == b->hash && a->file == b->file && a->line == b->line && a->pool == b->pool &&
           a->doing == b->doing && a->blocked == b->blocked && a->frames == b->frames &&
           !memcmp(a->ips, b->ips, a->frames * sizeof *a->ips);
}

/* Find the group for the key in `all[used]`, or make it one. NULL: there is no room. */
static struct group *find(struct groups *groups)
{
    struct group *key = &groups->all[groups->used];
    key->hash = hash_of(key);
    uint32_t *head = &groups->heads[key->hash % HEADS];
    for (uint32_t at = *head; at; at = groups->all[at - 1].next)
        if (equals(&groups->all[at - 1], key))
            return &groups->all[at - 1];
    if (groups->used == GROUPS_MOST - 1) /* the last entry only serves as a key */
        return NULL;
    key->count = key->cancelled = key->inactive = key->saved = 0;
    key->names_differ = key->objects_differ = false;
    key->used_least = SIZE_MAX;
    key->used_most = 0;
    key->since_least = INT64_MAX;
    key->since_most = INT64_MIN;
    key->next = *head;
    *head = ++groups->used;
    return key;
}

static void record(struct group *group, const struct view *view, struct cb *c, uint64_t id,
                   const struct frame_span *span)
{
    const char *name = cb_name(c);
    if (!group->count++) {
        group->first = group->last = id;
        group->object = c->blocked_on;
        snprintf(group->name, sizeof group->name, "%s", name);
    }
    group->names_differ |= strncmp(group->name, name, sizeof group->name) != 0;
    group->objects_differ |= group->object != c->blocked_on;
    group->first = id < group->first ? id : group->first;
    group->last = id > group->last ? id : group->last;
    group->cancelled += (atomic_load_explicit(&c->word, memory_order_relaxed) & WORD_CANCELLED) != 0;
    group->inactive += span->saved != NULL;
    group->saved += span->saved ? inspect_saved(c) : 0;
    size_t used = inspect_used(view, c, span);
    if (used && used < group->used_least)
        group->used_least = used;
    if (used > group->used_most)
        group->used_most = used;
    if (c->since < group->since_least)
        group->since_least = c->since;
    if (c->since > group->since_most)
        group->since_most = c->since;
}

void trace_groups_add(struct groups *groups, const struct view *view, struct cb *c, uint64_t id)
{
    struct frame_span span = {0};
    struct group *key = &groups->all[groups->used];
    struct scope *anchor = plain_load(&c->anchor, memory_order_relaxed);
    bool over = atomic_load_explicit(&c->ends, memory_order_acquire) & ENDS_OVER; /* [E5] */
    if (!over)
        span = inspect_span(view, c);
    key->file = anchor ? anchor->block.file : NULL;
    key->line = anchor ? anchor->block.line : 0;
    key->pool = over || pool_is_first(c->member.fibre->pool) ? NULL : c->member.fibre->pool;
    key->doing = over ? DOING_NOTHING : inspect_doing(c, &span);
    key->blocked = key->doing == DOING_BLOCKED ? c->blocked : BLOCKED_NOT;
    key->frames = over ? 0 : (uint32_t)inspect_frames(view, c, &span, key->ips, FRAMES_MOST);
    struct group *group = find(groups);
    if (group)
        record(group, view, c, id, &span);
    else
        groups->others++;
}

/* ---- in words -------------------------------------------------------------------------------------------- */

static void say_head(const struct group *group, struct output *out)
{
    char name[POOL_NAME_ROOM], to[48] = "", cancelled[48] = "";
    if (group->last != group->first)
        snprintf(to, sizeof to, " to #%llu", (unsigned long long)group->last);
    if (group->cancelled)
        snprintf(cancelled, sizeof cancelled, ", %zu of them cancelled", group->cancelled);
    output_say(out, 0, "%zu %s '%s'%s #%llu%s%s%s\n", group->count, group->count == 1 ? "strand" : "strands",
               group->name, group->names_differ ? " and others" : "", (unsigned long long)group->first, to, cancelled,
               group->doing == DOING_NOTHING ? ", ended, not joined" : "");
    if (group->file)
        output_say(out, 4, "in the scope of " BLOCK_LOCATION "\n", BLOCK_LOCATION_OF(group));
    if (group->pool)
        output_say(out, 4, "on pool '%s'\n", pool_name(group->pool, name));
}

static void say_doing(const struct group *group, const struct view *view)
{
    static const char *const words[] = {
        [DOING_NOT_STARTED] = "runnable: has not started", [DOING_RUNNING] = "running", [DOING_RUNNABLE] = "runnable"};
    int64_t now = platform_now(view->thread->sub);
    struct output *out = view->out;
    double least = (double)(now - group->since_most) / 1e6, most = (double)(now - group->since_least) / 1e6;
    char name[POOL_NAME_ROOM], object[48] = "";
    if (group->doing != DOING_BLOCKED) {
        output_say(out, 4, "%s\n", words[group->doing]);
        return;
    }
    const struct blocked_reason *reason = inspect_reason(view, group->blocked);
    if (!group->objects_differ && reason->on == ON_DESCRIPTOR)
        snprintf(object, sizeof object, " %d", (int)group->object);
    else if (!group->objects_differ && reason->on == ON_POOL)
        snprintf(object, sizeof object, " '%s'", pool_name_waited_for(group->object, name));
    else if (!group->objects_differ && reason->on == ON_ADDRESS)
        snprintf(object, sizeof object, " at %p", (void *)(uintptr_t)group->object);
    if (group->count == 1)
        output_say(out, 4, "blocked: %s%s, since %.1f ms\n", reason->words, object, least);
    else
        output_say(out, 4, "blocked: %s%s, since %.1f to %.1f ms\n", reason->words, object, least, most);
}

static void say_stack(const struct group *group, struct output *out)
{
    char saved[80] = "";
    if (group->inactive)
        snprintf(saved, sizeof saved, "; %zu inactive, saved in %zu bytes", group->inactive, group->saved);
    if (group->used_most && group->used_least == group->used_most)
        output_say(out, 4, "stack: %zu bytes used%s\n", group->used_most, saved);
    else if (group->used_most)
        output_say(out, 4, "stack: %zu to %zu bytes used%s\n", group->used_least, group->used_most, saved);
}

static void say_group(const struct group *group, const struct view *view)
{
    say_head(group, view->out);
    if (group->doing == DOING_NOTHING)
        return;
    say_doing(group, view);
    say_stack(group, view->out);
    inspect_say_frames(view, group->ips, group->frames, 6);
}

/* The largest group that was not printed yet. */
static struct group *largest(struct groups *groups)
{
    struct group *largest = NULL;
    for (uint32_t i = 0; i < groups->used; i++) {
        struct group *group = &groups->all[i];
        if (group->count > (largest ? largest->count : 0))
            largest = group;
    }
    return largest;
}

void trace_groups_say(struct groups *groups, const struct view *view)
{
    struct group *group;
    output_say(view->out, 0, "in %u groups of strands that stand at the same place\n", groups->used);
    while ((group = largest(groups))) {
        say_group(group, view);
        group->count = 0;
    }
    if (groups->others)
        output_say(view->out, 0, "%zu strands in further groups, for which there is no room\n", groups->others);
}
