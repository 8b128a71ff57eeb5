/*
 * Names, and the allocation of `struct more`. The names of a system are in one table, by parent and name, under one
 * lock: its holder keeps all actors in it from ending.
 */
#include "more.h"

#include "cell.h"
#include "registry.h"

#include "../strand/misuse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ------------------------------------------------------------------------------------------------ */

static struct more *make(struct thread *thread, struct cell *cell, const char *name)
{
    size_t length = strlen(name);
    struct more *more = platform_calloc(thread, 1, sizeof *more + length + 1);
    if (!more)
        return NULL;
    more->kind = cell_kind(cell);
    more->cell = cell;
    more->stash_last = &more->stash;
    list_init(&more->watchers);
    list_init(&more->askers);
    memcpy(more->name, name, length);
    return more;
}

static void attach(struct cell *cell, struct more *more)
{
    plain_store(&cell->form, (uintptr_t)more | FORM_MORE, memory_order_release); /* [PB1] */
}

struct more *more_of(struct thread *thread, struct cell *cell)
{
    struct more *more = cell_more(cell), *mine = more ? NULL : make(thread, cell, "");
    if (!mine)
        return more;
    uint64_t word = cell_lock_living(thread, cell);
    more = cell_more(cell);
    if (!more)
        attach(cell, more = mine);
    cell_unlock(cell, word);
    if (more != mine)
        free(mine);
    return more;
}

struct more *more_under_lock(struct thread *thread, struct cell *cell)
{
    struct more *more = cell_more(cell);
    if (!more && (more = make(thread, cell, "")))
        attach(cell, more);
    return more;
}

/* ---- the table of names ------------------------------------------------------------------------------------ */

static uint32_t hash_of(const struct cell *parent, const char *name, size_t length)
{
    uint64_t hash = (uintptr_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32 ^ hash);
}

static struct more **find(struct names *names, const struct cell *parent, const char *name, size_t length,
                          uint32_t hash)
{
    struct more **at = &names->buckets[hash & (names->room - 1)];
    while (*at && ((*at)->hash != hash || (*at)->cell->parent != parent || strncmp((*at)->name, name, length) != 0 ||
                   (*at)->name[length]))
        at = &(*at)->next;
    return at;
}

static bool grow(struct thread *thread, struct names *names)
{
    size_t room = names->room ? 2 * names->room : 16;
    struct more **buckets = platform_calloc(thread, room, sizeof *buckets), *next;
    if (!buckets)
        return names->room; /* it only gets slower */
    for (size_t i = 0; i < names->room; i++)
        for (struct more *more = names->buckets[i]; more; more = next) {
            next = more->next;
            more->next = buckets[more->hash & (room - 1)];
            buckets[more->hash & (room - 1)] = more;
        }
    free(names->buckets);
    names->buckets = buckets;
    names->room = room;
    return true;
}

static int enter(struct thread *thread, struct names *names, struct more *more)
{
    size_t length = strlen(more->name);
    more->hash = hash_of(more->cell->parent, more->name, length);
    int error = 0;
    spin_lock(&names->lock, thread);
    if (names->count >= names->room && !grow(thread, names))
        error = -ENOMEM;
    struct more **at = error ? NULL : find(names, more->cell->parent, more->name, length, more->hash);
    if (at && *at)
        error = -EEXIST;
    if (!error) {
        *at = more;
        names->count++;
    }
    spin_unlock(&names->lock);
    return error;
}

static bool is_name(const char *name)
{
    size_t length = strnlen(name, NAME_MOST + 1);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == '/' || name[i] == '\177')
            return false;
    return length && length <= NAME_MOST && *name != '$';
}

int more_name(struct thread *thread, struct cell *cell, const char *name)
{
    if (!is_name(name))
        return -EINVAL;
    struct more *more = make(thread, cell, name), *before = cell_more(cell);
    if (!more)
        return -ENOMEM;
    more->levels = before ? before->levels : NULL;
    int error = enter(thread, &more->kind->system->names, more);
    if (error) {
        free(more);
        return error;
    }
    attach(cell, more);
    free(before);
    return 0;
}

static void leave(struct thread *thread, struct names *names, struct more *more)
{
    spin_lock(&names->lock, thread);
    *find(names, more->cell->parent, more->name, strlen(more->name), more->hash) = more->next;
    names->count--;
    spin_unlock(&names->lock);
}

void more_unname(struct thread *thread, struct cell *cell)
{
    struct more *more = cell_more(cell);
    if (UNLIKELY(more && *more->name))
        leave(thread, &more->kind->system->names, more);
}

/* ---- paths ------------------------------------------------------------------------------------------------- */

/* Write "/name"; returns its length. */
static size_t step_of(const struct cell *cell, char step[NAME_MOST + 2])
{
    const struct more *more = cell_more(cell);
    return (size_t)(more && *more->name ? snprintf(step, NAME_MOST + 2, "/%s", more->name)
                                        : snprintf(step, NAME_MOST + 2, "/$%" PRIu64, ref_serial(cell_ref(cell))));
}

/* Without recursion: the tree may be deeper than the caller's stack. */
size_t cell_path(const struct cell *cell, char *text, size_t room)
{
    char step[NAME_MOST + 2];
    size_t length = 0;
    if (!cell->parent)
        return (size_t)snprintf(text, room, "/");
    for (const struct cell *at = cell; at->parent; at = at->parent)
        length += step_of(at, step);
    size_t end = length;
    for (const struct cell *at = cell; at->parent; at = at->parent) {
        size_t size = step_of(at, step), begin = end - size;
        if (begin + 1 < room)
            memcpy(text + begin, step, end < room ? size : room - 1 - begin);
        end = begin;
    }
    if (room)
        text[length < room ? length : room - 1] = '\0';
    return length;
}

void cell_path_end(const struct cell *cell, char *text, size_t room)
{
    static const char more[] = "...";
    char step[NAME_MOST + 2];
    size_t begin = room - 1; /* the text so far starts there, at the end of the buffer */
    if (!cell->parent)
        text[--begin] = '/';
    for (const struct cell *at = cell; at->parent; at = at->parent) {
        size_t size = step_of(at, step);
        if (size + (at->parent->parent ? sizeof more - 1 : 0) > begin) {
            begin -= sizeof more - 1;
            memcpy(text + begin, more, sizeof more - 1);
            break;
        }
        begin -= size;
        memcpy(text + begin, step, size);
    }
    memmove(text, text + begin, room - 1 - begin);
    text[room - 1 - begin] = '\0';
}

size_t strand_actor_path(strand_actor actor, char *text, size_t room)
{
    struct thread *thread = must_be_strand("strand_actor_path");
    struct cell *cell = ref_cell(actor);
    uint64_t word;
    if (room) {
        must_be_there(text, "buffer for the path", "strand_actor_path");
        *text = '\0';
    }
    if (!ref_is_ours(thread, actor) || !cell_lock(thread, cell, ref_serial(actor), &word))
        return 0;
    size_t length = cell_path(cell, text, room);
    cell_unlock(cell, word);
    return length;
}

strand_actor strand_actor_find(strand_actors handle, const char *path)
{
    struct thread *thread = must_be_strand("strand_actor_find");
    struct system *system = registry_find(thread, handle, "strand_actor_find");
    struct names *names = &system->names;
    must_be_there(path, "path", "strand_actor_find");
    strand_actor found = {{0, 0}};
    struct cell *at = ref_cell(system->root);
    if (*path != '/')
        return found;
    spin_lock(&names->lock, thread);
    if (cell_is_there(thread, system->root))
        found = system->root;
    for (path++; *path && found.bits[1];) {
        const char *slash = strchr(path, '/');
        size_t length = slash ? (size_t)(slash - path) : strlen(path);
        struct more *more = names->room ? *find(names, at, path, length, hash_of(at, path, length)) : NULL;
        if (more)
            found = cell_ref(at = more->cell);
        else
            found = (strand_actor){{0, 0}};
        path += length + (path[length] == '/');
    }
    spin_unlock(&names->lock);
    return found;
}
