/*
 * Saved stacks up to SAVED_LARGE bytes are cut from chunks; larger ones are mappings of their own. A chunk is
 * SAVED_CHUNK bytes of a region that is aligned to its size, so the address of a saved stack leads to its chunk's
 * descriptor. Except for the links of free saved stacks, everything that is written while they are free is in the
 * descriptors. The store keeps the pages of a few empty chunks: the shared stack that they came from may be closed, and
 * then no thread trims it.
 *
 * Mappings up to SAVED_KEPT bytes have classes too. The store keeps returned mappings for the next request of their
 * class: a strand whose depth differs from one suspension to the next would otherwise map and unmap memory at each
 * switch. The store keeps as many bytes of them as are in use, and at least KEPT_SLACK; the oldest one goes first.
 */
#include "saved.h"

#include "budget.h"
#include "readers.h"

#include <errno.h>

#define SAVED_REGION ((size_t)4 << 20)
enum {
    SAVED_LARGE = 4096,
    SAVED_FINE =
        512, /* up to here a class is SAVED_STEP bytes larger than the previous one, then an eighth of a doubling */
    SAVED_STEP = 16,
    SAVED_KEPT = 1 << 20, /* up to here a mapping has a class; larger ones are rounded up to pages */
    FINE_CLASSES = SAVED_FINE / SAVED_STEP,
    REGION_CHUNKS = SAVED_REGION / SAVED_CHUNK - 1 /* the descriptors take the place of the first chunk */
};
enum { CHUNKS_SLACK = 16 }; /* a mebibyte */
#define KEPT_SLACK ((size_t)1 << 20)
_Static_assert(FINE_CLASSES + 8 * 3 == SAVED_CLASSES, "512 to 4096 is three doublings");
_Static_assert(8 * 8 == SAVED_KEPT_CLASSES, "4096 to 1 MiB is eight doublings");

struct saved_chunk {
    struct link link;   /* in a class's list of chunks with room, or in the store's list of free ones */
    void *free;         /* returned saved stacks, linked by their first word */
    uint32_t cut, used; /* saved stacks cut so far; how many are in use */
    uint32_t size;      /* of a saved stack */
    bool clean;         /* free, and without pages */
};

struct saved_region {
    struct saved_region *next;
    void *mapped; /* maps twice its size, from here */
    uint32_t cut; /* chunks handed out so far */
    struct saved_chunk chunks[REGION_CHUNKS];
};
_Static_assert(sizeof(struct saved_region) <= SAVED_CHUNK, "the descriptors fit");

/* At the beginning of a kept mapping. */
struct kept {
    struct link link; /* in its class's list, the newest first */
    struct link age;  /* in the store's list, the oldest first */
    size_t bytes;
};

/* ---- classes ------------------------------------------------------------------------------------------------- */

static uint32_t class_of(size_t bytes)
{
    if (bytes <= SAVED_FINE)
        return bytes ? (uint32_t)((bytes - 1) / SAVED_STEP) : 0;
    uint32_t doubling = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^doubling < bytes <= 2^(doubling + 1) */
    uint32_t eighth = (uint32_t)((bytes - 1) >> (doubling - 3)) & 7;
    return FINE_CLASSES + (doubling - 9) * 8 + eighth;
}

static uint32_t size_of(uint32_t class)
{
    if (class < FINE_CLASSES)
        return (class + 1) * SAVED_STEP;
    uint32_t doubling = 9 + (class - FINE_CLASSES) / 8, eighth = (class - FINE_CLASSES) % 8;
    return (1u << doubling) + ((eighth + 1) << (doubling - 3));
}

size_t saved_round(size_t bytes)
{
    size_t page = arch_page_size(), size = bytes <= SAVED_KEPT ? size_of(class_of(bytes)) : bytes;
    return bytes <= SAVED_LARGE ? size : (size + page - 1) & ~(page - 1);
}

/* ---- the store: chunks ------------------------------------------------------------------------------------------ */

void saved_store_open(struct saved_store *store)
{
    *store = (struct saved_store){.lock = ATOMIC_FLAG_INIT};
    list_init(&store->free);
    list_init(&store->kept_by_age);
    for (int i = 0; i < SAVED_KEPT_CLASSES; i++)
        list_init(&store->kept[i]);
}

void saved_store_close(struct saved_store *store)
{
    struct link *link;
    while ((link = list_pop_front(&store->kept_by_age))) {
        struct kept *kept = CONTAINER(link, struct kept, age);
        arch_unmap(kept, kept->bytes);
    }
    while (store->regions) {
        struct saved_region *region = store->regions;
        store->regions = region->next;
        arch_unmap(region->mapped, 2 * SAVED_REGION);
    }
}

/* Maps twice the size for the alignment; unused addresses cost nothing. */
static struct saved_region *map_region(void)
{
    void *memory;
    if (arch_map(2 * SAVED_REGION, &memory) < 0)
        return NULL;
    struct saved_region *region = (struct saved_region *)(((uintptr_t)memory + SAVED_REGION - 1) & ~(SAVED_REGION - 1));
    region->mapped = memory;
    return region;
}

/* Cuts a chunk that was never in use. The lock is held. NULL: no memory. */
static struct saved_chunk *cut_chunk(struct saved_store *store)
{
    struct saved_region *region = store->regions;
    if (!region || region->cut == REGION_CHUNKS) {
        region = map_region();
        if (!region)
            return NULL;
        region->next = store->regions;
        store->regions = region;
    }
    return &region->chunks[region->cut++];
}

static int try_chunk(struct stack_user *user, bool must, struct saved_chunk **out)
{
    struct saved_store *store = &user->memory->saved;
    struct saved_chunk *chunk = NULL;
    int error = 0;
    stack_memory_lock(&store->lock, user);
    if (store->free_count) { /* chunks with pages come first, and are counted */
        chunk = CONTAINER(list_pop_front(&store->free), struct saved_chunk, link);
        store->free_count--;
    } else if (!budget_take(user, SAVED_CHUNK, must)) {
        error = -EAGAIN;
    } else {
        struct link *link = list_pop_front(&store->free);
        chunk = link ? CONTAINER(link, struct saved_chunk, link) : cut_chunk(store);
        if (!chunk) {
            budget_give(user->memory, SAVED_CHUNK);
            error = -ENOMEM;
        }
    }
    store->chunks_used += chunk != NULL;
    stack_memory_unlock(&store->lock);
    *out = chunk;
    return error;
}

static int take_chunk(struct stack_user *user, bool must, struct saved_chunk **out)
{
    int error = try_chunk(user, must, out);
    while (UNLIKELY(error == -EAGAIN) && budget_make_room(user))
        error = try_chunk(user, must, out);
    return error;
}

static struct saved_region *region_of(const void *at)
{
    return (struct saved_region *)((uintptr_t)at & ~(SAVED_REGION - 1));
}

static char *memory_of(struct saved_chunk *chunk)
{
    struct saved_region *region = region_of(chunk);
    return (char *)region + (size_t)(chunk - region->chunks + 1) * SAVED_CHUNK;
}

static struct saved_chunk *chunk_of(void *saved)
{
    struct saved_region *region = region_of(saved);
    return &region->chunks[((uintptr_t)saved - (uintptr_t)region) / SAVED_CHUNK - 1];
}

/* Whether more free chunks have pages than the store keeps for later requests: a quarter of the chunks in use. */
static bool has_many(const struct saved_store *store)
{
    return store->free_count > CHUNKS_SLACK && store->free_count > store->chunks_used / 4;
}

/* Returns the pages of at most `most` free chunks to the system. Returns the number of bytes. */
static size_t discard_free(struct stack_user *user, struct saved_store *store, size_t most, bool all)
{
    size_t given = 0;
    while (given / SAVED_CHUNK < most) {
        struct link *link = NULL;
        stack_memory_lock(&store->lock, user);
        if (store->free_count && (all || has_many(store))) {
            link = list_pop_front(&store->free);
            store->free_count--;
            budget_give(user->memory, SAVED_CHUNK); /* under the same lock: a thread that finds no free chunk finds room
                                                     * [B1] */
        }
        stack_memory_unlock(&store->lock);
        if (!link)
            break;
        struct saved_chunk *chunk = CONTAINER(link, struct saved_chunk, link);
        arch_discard(memory_of(chunk), SAVED_CHUNK);
        given += SAVED_CHUNK;
        stack_memory_lock(&store->lock, user);
        chunk->clean = true;
        list_push_back(&store->free, link); /* chunks with pages come first */
        stack_memory_unlock(&store->lock);
    }
    return given;
}

static void give_chunk(struct stack_user *user, struct saved_chunk *chunk)
{
    struct saved_store *store = &user->memory->saved;
    stack_memory_lock(&store->lock, user);
    chunk->clean = false;
    list_push_front(&store->free, &chunk->link);
    store->free_count++;
    store->chunks_used--;
    bool many = has_many(store);
    stack_memory_unlock(&store->lock);
    if (UNLIKELY(many))
        discard_free(user, store, SIZE_MAX, false);
}

/* ---- the store: mappings ----------------------------------------------------------------------------------------- */

static struct link *kept_in(struct saved_store *store, size_t bytes)
{
    return bytes <= SAVED_KEPT ? &store->kept[class_of(bytes) - SAVED_CLASSES] : NULL;
}

/* Takes a kept mapping out of the store, for the caller. The lock is held. */
static struct kept *leave_store(struct saved_store *store, struct kept *kept)
{
    list_remove(&kept->link);
    list_remove(&kept->age);
    store->kept_bytes -= kept->bytes;
    return kept;
}

/* Unmaps kept mappings, the oldest first, until at most `most` bytes are kept, or as many as are in use. Returns the
 * number of bytes. */
static size_t drop_kept(struct stack_user *user, struct saved_store *store, size_t most, bool in_use_too)
{
    size_t dropped = 0;
    for (;;) {
        struct kept *kept = NULL;
        stack_memory_lock(&store->lock, user);
        if (store->kept_bytes > most && (!in_use_too || store->kept_bytes > store->large_bytes)) {
            kept = leave_store(store, CONTAINER(store->kept_by_age.next, struct kept, age));
            budget_give(user->memory, kept->bytes); /* [B1] */
        }
        stack_memory_unlock(&store->lock);
        if (!kept)
            return dropped;
        size_t bytes = kept->bytes;
        dropped += bytes;
        if (!readers_defer(&user->memory->readers, (struct deferred *)(void *)kept, bytes))
            arch_unmap(kept, bytes);
    }
}

/* Takes a kept mapping, or returns NULL. */
static void *take_kept(struct stack_user *user, size_t bytes)
{
    struct saved_store *store = &user->memory->saved;
    struct link *same = kept_in(store, bytes);
    void *saved = NULL;
    stack_memory_lock(&store->lock, user);
    if (same && !list_empty(same))
        saved = leave_store(store, CONTAINER(same->next, struct kept, link));
    store->large_bytes += saved ? bytes : 0;
    stack_memory_unlock(&store->lock);
    return saved;
}

static int map_large(struct stack_user *user, size_t bytes, bool must, void **out)
{
    struct saved_store *store = &user->memory->saved;
    bool taken = budget_take(user, bytes, must);
    while (UNLIKELY(!taken) && budget_make_room(user))
        taken = budget_take(user, bytes, must);
    if (!taken)
        return -EAGAIN;
    if (arch_map(bytes, out) < 0 &&
        !(drop_kept(user, store, 0, false) && arch_map(bytes, out) == 0)) { /* kept mappings of other classes have
                                                                             * memory */
        budget_give(user->memory, bytes);
        return -ENOMEM;
    }
    stack_memory_lock(&store->lock, user);
    store->large_bytes += bytes;
    stack_memory_unlock(&store->lock);
    return 0;
}

/* A new mapping is zero, a kept one is not. */
static int take_large(struct stack_user *user, size_t bytes, bool must, void **out)
{
    *out = take_kept(user, bytes);
    return *out ? 0 : map_large(user, bytes, must, out);
}

static void give_large(struct stack_user *user, void *saved, size_t bytes)
{
    struct saved_store *store = &user->memory->saved;
    struct link *same = kept_in(store, bytes);
    struct kept *kept = saved;
    stack_memory_lock(&store->lock, user);
    store->large_bytes -= bytes;
    if (same) {
        kept->bytes = bytes;
        list_push_front(same, &kept->link);
        list_push_back(&store->kept_by_age, &kept->age);
        store->kept_bytes += bytes;
    }
    bool many = store->kept_bytes > KEPT_SLACK && store->kept_bytes > store->large_bytes;
    stack_memory_unlock(&store->lock);
    if (!same) {
        budget_give(user->memory, bytes);
        if (!readers_defer(&user->memory->readers, saved, bytes))
            arch_unmap(saved, bytes);
    }
    if (many)
        drop_kept(user, store, KEPT_SLACK, true);
}

size_t saved_store_trim(struct stack_user *user, size_t most)
{
    struct saved_store *store = &user->memory->saved;
    return drop_kept(user, store, 0, false) + discard_free(user, store, most, true);
}

/* ---- saved stacks ------------------------------------------------------------------------------------------------ */

void saved_set_open(struct saved_set *set)
{
    for (int i = 0; i < SAVED_CLASSES; i++)
        list_init(&set->room[i]);
    set->bytes = 0;
}

void saved_set_close(struct stack_user *user, struct saved_set *set)
{
    ASSERT(!set->bytes);
    saved_set_trim(user, set);
}

void saved_set_trim(struct stack_user *user, struct saved_set *set)
{
    for (int i = 0; i < SAVED_CLASSES; i++) {
        struct link *next, *head = &set->room[i];
        for (struct link *link = head->next; link != head; link = next) {
            struct saved_chunk *chunk = CONTAINER(link, struct saved_chunk, link);
            next = link->next;
            if (chunk->used)
                continue;
            list_remove(link);
            give_chunk(user, chunk);
        }
    }
}

static int new_chunk(struct stack_user *user, struct saved_set *set, uint32_t class, bool must,
                     struct saved_chunk **out)
{
    int error = stack_memory_refuses(user) ? -ENOMEM : take_chunk(user, must, out);
    if (error)
        return error;
    **out = (struct saved_chunk){.size = size_of(class)};
    list_push_front(&set->room[class], &(*out)->link);
    return 0;
}

static int get_large(struct stack_user *user, struct saved_set *set, size_t bytes, bool must, void **out)
{
    int error = stack_memory_refuses(user) ? -ENOMEM : take_large(user, bytes, must, out);
    set->bytes += error ? 0 : bytes;
    return error;
}

int saved_get(struct stack_user *user, struct saved_set *set, size_t bytes, bool must, void **out)
{
    int error;
    if (UNLIKELY(bytes > SAVED_LARGE))
        return get_large(user, set, saved_round(bytes), must, out);
    uint32_t class = class_of(bytes);
    struct link *head = &set->room[class];
    struct saved_chunk *chunk = list_empty(head) ? NULL : CONTAINER(head->next, struct saved_chunk, link);
    if (UNLIKELY(!chunk) && (error = new_chunk(user, set, class, must, &chunk)))
        return error;
    void *saved = chunk->free;
    if (saved)
        chunk->free = *(void **)saved;
    else
        saved = memory_of(chunk) + (size_t)chunk->cut++ * chunk->size;
    chunk->used++;
    if (UNLIKELY(!chunk->free && ((size_t)chunk->cut + 1) * chunk->size > SAVED_CHUNK))
        list_remove(&chunk->link); /* full */
    set->bytes += chunk->size;
    *out = saved;
    return 0;
}

void saved_put(struct stack_user *user, struct saved_set *set, void *saved, size_t bytes)
{
    if (UNLIKELY(bytes > SAVED_LARGE)) {
        bytes = saved_round(bytes);
        set->bytes -= bytes;
        give_large(user, saved, bytes);
        return;
    }
    struct saved_chunk *chunk = chunk_of(saved);
    struct link *head = &set->room[class_of(bytes)];
    if (UNLIKELY(!chunk->link.next))
        list_push_front(head, &chunk->link);
    *(void **)saved = chunk->free;
    chunk->free = saved;
    chunk->used--;
    set->bytes -= chunk->size;
    /* One empty chunk of a class stays: the next saved stack is about to come. */
    if (UNLIKELY(!chunk->used) && head->next->next != head) {
        list_remove(&chunk->link);
        give_chunk(user, chunk);
    }
}
