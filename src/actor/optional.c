/*
 * Names, and the allocation of `struct optional`. The names of a system are in one table, by parent and name, under one
 * lock: its holder keeps all actors in it from ending.
 */
#include "optional.h"

#include "cell.h"
#include "registry.h"

#include "../strand/misuse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ------------------------------------------------------------------------------------------------ */

static struct optional *make(struct thread *thread, struct cell *cell, const char *name)
{
    size_t length = strlen(name);
    struct optional *optional = platform_calloc(thread, 1, sizeof *optional + length + 1);
    if (!optional)
        return NULL;
    optional->type = cell_type(cell);
    optional->cell = cell;
    optional->stash_last = &optional->stash;
    list_init(&optional->watchers);
    list_init(&optional->askers);
    memcpy(optional->name, name, length);
    return optional;
}

static void attach(struct cell *cell, struct optional *optional)
{
    plain_store(&cell->form, (uintptr_t)optional | FORM_OPTIONAL, memory_order_release); /* [PB1] */
}

struct optional *optional_of(struct thread *thread, struct cell *cell)
{
    struct optional *optional = cell_optional(cell), *mine = optional ? NULL : make(thread, cell, "");
    if (!mine)
        return optional;
    uint64_t word = cell_lock_living(thread, cell);
    optional = cell_optional(cell);
    if (!optional)
        attach(cell, optional = mine);
    cell_unlock(cell, word);
    if (optional != mine)
        free(mine);
    return optional;
}

struct optional *optional_under_lock(struct thread *thread, struct cell *cell)
{
    struct optional *optional = cell_optional(cell);
    if (!optional && (optional = make(thread, cell, "")))
        attach(cell, optional);
    return optional;
}

/* ---- the table of names ------------------------------------------------------------------------------------ */

static uint32_t hash_of(const struct cell *parent, const char *name, size_t length)
{
    uint64_t hash = (uintptr_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32 ^ hash);
}

static struct optional **find(struct names *names, const struct cell *parent, const char *name, size_t length,
                              uint32_t hash)
{
    struct optional **at = &names->buckets[hash & (names->room - 1)];
    while (*at && ((*at)->hash != hash || (*at)->cell->parent != parent || strncmp((*at)->name, name, length) != 0 ||
                   (*at)->name[length]))
        at = &(*at)->next;
    return at;
}

static bool grow(struct thread *thread, struct names *names)
{
    size_t room = names->room ? 2 * names->room : 16;
    struct optional **buckets = platform_calloc(thread, room, sizeof *buckets), *next;
    if (!buckets)
        return names->room; /* it only gets slower */
    for (size_t i = 0; i < names->room; i++)
        for (struct optional *optional = names->buckets[i]; optional; optional = next) {
            next = optional->next;
            optional->next = buckets[optional->hash & (room - 1)];
            buckets[optional->hash & (room - 1)] = optional;
        }
    free(names->buckets);
    names->buckets = buckets;
    names->room = room;
    return true;
}

static int enter(struct thread *thread, struct names *names, struct optional *optional)
{
    size_t length = strlen(optional->name);
    optional->hash = hash_of(optional->cell->parent, optional->name, length);
    int error = 0;
    spin_lock(&names->lock, thread);
    if (names->count >= names->room && !grow(thread, names))
        error = -ENOMEM;
    struct optional **at = error ? NULL : find(names, optional->cell->parent, optional->name, length, optional->hash);
    if (at && *at)
        error = -EEXIST;
    if (!error) {
        *at = optional;
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

int optional_name(struct thread *thread, struct cell *cell, const char *name)
{
    if (!is_name(name))
        return -EINVAL;
    struct optional *optional = make(thread, cell, name), *before = cell_optional(cell);
    if (!optional)
        return -ENOMEM;
    optional->levels = before ? before->levels : NULL;
    int error = enter(thread, &optional->type->system->names, optional);
    if (error) {
        free(optional);
        return error;
    }
    attach(cell, optional);
    free(before);
    return 0;
}

static void leave(struct thread *thread, struct names *names, struct optional *optional)
{
    spin_lock(&names->lock, thread);
    *find(names, optional->cell->parent, optional->name, strlen(optional->name), optional->hash) = optional->next;
    names->count--;
    spin_unlock(&names->lock);
}

void optional_unname(struct thread *thread, struct cell *cell)
{
    struct optional *optional = cell_optional(cell);
    if (UNLIKELY(optional && *optional->name))
        leave(thread, &optional->type->system->names, optional);
}

/* ---- paths ------------------------------------------------------------------------------------------------- */

/* Write "/name"; returns its length. */
static size_t step_of(const struct cell *cell, char step[NAME_MOST + 2])
{
    const struct optional *optional = cell_optional(cell);
    return (size_t)(optional && *optional->name
                        ? snprintf(step, NAME_MOST + 2, "/%s", optional->name)
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
    static const char cut[] = "...";
    char step[NAME_MOST + 2];
    size_t begin = room - 1; /* the text so far starts there, at the end of the buffer */
    if (!cell->parent)
        text[--begin] = '/';
    for (const struct cell *at = cell; at->parent; at = at->parent) {
        size_t size = step_of(at, step);
        if (size + (at->parent->parent ? sizeof cut - 1 : 0) > begin) {
            begin -= sizeof cut - 1;
            memcpy(text + begin, cut, sizeof cut - 1);
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
        struct optional *optional = names->room ? *find(names, at, path, length, hash_of(at, path, length)) : NULL;
        if (optional)
            found = cell_ref(at = optional->cell);
        else
            found = (strand_actor){{0, 0}};
        path += length + (path[length] == '/');
    }
    spin_unlock(&names->lock);
    return found;
}
