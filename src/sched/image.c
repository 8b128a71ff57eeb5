/*
 * Images up to IMAGE_LARGE bytes are cut from chunks; larger ones are mappings of their own. A chunk is IMAGE_CHUNK
 * bytes of a region that is aligned to its size, so the descriptor of an image's chunk is found by its address. All
 * that is written while images are free lies in the descriptors, but for the links of the free ones. Of chunks that are
 * empty the store keeps the pages of a few: the fibre that they came from may be closed, and then nobody trims it.
 *
 * Mappings up to IMAGE_KEPT bytes have classes too, and the store keeps those that were put back for whoever asks for
 * one of the class next: a strand that is suspended now deep, now shallow would map and unmap memory at each switch.
 * It keeps as many bytes of them as are in use, and KEPT_SLACK at least; the one that was put back first goes first.
 */
#include "image.h"

#include "budget.h"
#include "driver.h"
#include "opened.h"

#include <errno.h>

#define IMAGE_REGION ((size_t)4 << 20)
enum {
    IMAGE_LARGE = 4096,
    IMAGE_FINE =
        512, /* up to here a class is IMAGE_STEP bytes more than the one before, then an eighth of a doubling */
    IMAGE_STEP = 16,
    IMAGE_KEPT = 1 << 20, /* up to here a mapping is of a class; what is larger than that is of its pages */
    FINE_CLASSES = IMAGE_FINE / IMAGE_STEP,
    REGION_CHUNKS = IMAGE_REGION / IMAGE_CHUNK - 1 /* the descriptors stand in the first one's place */
};
enum { CHUNKS_SLACK = 16 }; /* a mebibyte */
#define KEPT_SLACK ((size_t)1 << 20)
_Static_assert(FINE_CLASSES + 8 * 3 == IMAGE_CLASSES, "512 to 4096 is three doublings");
_Static_assert(8 * 8 == IMAGE_KEPT_CLASSES, "4096 to 1 MiB is eight doublings");

struct image_chunk {
    struct link link;   /* in a class's list of those with room, or in the store's of free ones */
    void *free;         /* images that were put back, linked by their first word */
    uint32_t cut, used; /* images cut so far; of them in use */
    uint32_t size;      /* of an image */
    bool clean;         /* free, and its pages are the system's */
};

struct image_region {
    struct image_region *next;
    void *mapped; /* twice its size, from here */
    uint32_t cut; /* chunks handed out so far */
    struct image_chunk chunks[REGION_CHUNKS];
};
_Static_assert(sizeof(struct image_region) <= IMAGE_CHUNK, "the descriptors fit");

/* A mapping that is kept: at its beginning. */
struct kept {
    struct link link; /* in its class's list, the last one put back first */
    struct link age;  /* in the store's, the first one put back first */
    size_t bytes;
};

/* ---- classes ------------------------------------------------------------------------------------------------- */

static uint32_t class_of(size_t bytes)
{
    if (bytes <= IMAGE_FINE)
        return bytes ? (uint32_t)((bytes - 1) / IMAGE_STEP) : 0;
    uint32_t doubling = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^doubling < bytes <= 2^(doubling + 1) */
    uint32_t eighth = (uint32_t)((bytes - 1) >> (doubling - 3)) & 7;
    return FINE_CLASSES + (doubling - 9) * 8 + eighth;
}

static uint32_t size_of(uint32_t class)
{
    if (class < FINE_CLASSES)
        return (class + 1) * IMAGE_STEP;
    uint32_t doubling = 9 + (class - FINE_CLASSES) / 8, eighth = (class - FINE_CLASSES) % 8;
    return (1u << doubling) + ((eighth + 1) << (doubling - 3));
}

size_t image_round(size_t bytes)
{
    size_t page = arch_page_size(), size = bytes <= IMAGE_KEPT ? size_of(class_of(bytes)) : bytes;
    return bytes <= IMAGE_LARGE ? size : (size + page - 1) & ~(page - 1);
}

/* ---- the store: chunks ------------------------------------------------------------------------------------------ */

void image_store_open(struct image_store *store)
{
    *store = (struct image_store){.lock = ATOMIC_FLAG_INIT};
    list_init(&store->free);
    list_init(&store->kept_by_age);
    for (int i = 0; i < IMAGE_KEPT_CLASSES; i++)
        list_init(&store->kept[i]);
}

void image_store_close(struct image_store *store)
{
    struct link *link;
    while ((link = list_pop_front(&store->kept_by_age))) {
        struct kept *kept = CONTAINER(link, struct kept, age);
        arch_unmap(kept, kept->bytes);
    }
    while (store->regions) {
        struct image_region *region = store->regions;
        store->regions = region->next;
        arch_unmap(region->mapped, 2 * IMAGE_REGION);
    }
}

/* Aligned to its size: of twice as many addresses, which cost nothing. */
static struct image_region *map_region(void)
{
    void *memory;
    if (arch_map(2 * IMAGE_REGION, &memory) < 0)
        return NULL;
    struct image_region *region = (struct image_region *)(((uintptr_t)memory + IMAGE_REGION - 1) & ~(IMAGE_REGION - 1));
    region->mapped = memory;
    return region;
}

/* Under the lock: one that was never in use. NULL: no memory. */
static struct image_chunk *cut_chunk(struct image_store *store)
{
    struct image_region *region = store->regions;
    if (!region || region->cut == REGION_CHUNKS) {
        region = map_region();
        if (!region)
            return NULL;
        region->next = store->regions;
        store->regions = region;
    }
    return &region->chunks[region->cut++];
}

static int try_chunk(struct thread *thread, bool must, struct image_chunk **out)
{
    struct image_store *store = &thread->sub->images;
    struct image_chunk *chunk = NULL;
    int error = 0;
    spin_lock(&store->lock, thread);
    if (store->free_count) { /* those with pages come first, and are counted */
        chunk = CONTAINER(list_pop_front(&store->free), struct image_chunk, link);
        store->free_count--;
    } else if (!budget_take(thread, IMAGE_CHUNK, must)) {
        error = -EAGAIN;
    } else {
        struct link *link = list_pop_front(&store->free);
        chunk = link ? CONTAINER(link, struct image_chunk, link) : cut_chunk(store);
        if (!chunk) {
            budget_give(thread->sub, IMAGE_CHUNK);
            error = -ENOMEM;
        }
    }
    store->chunks_used += chunk != NULL;
    spin_unlock(&store->lock);
    *out = chunk;
    return error;
}

static int take_chunk(struct thread *thread, bool must, struct image_chunk **out)
{
    int error = try_chunk(thread, must, out);
    while (UNLIKELY(error == -EAGAIN) && budget_make_room(thread))
        error = try_chunk(thread, must, out);
    return error;
}

static struct image_region *region_of(const void *at)
{
    return (struct image_region *)((uintptr_t)at & ~(IMAGE_REGION - 1));
}

static char *memory_of(struct image_chunk *chunk)
{
    struct image_region *region = region_of(chunk);
    return (char *)region + (size_t)(chunk - region->chunks + 1) * IMAGE_CHUNK;
}

static struct image_chunk *chunk_of(void *image)
{
    struct image_region *region = region_of(image);
    return &region->chunks[((uintptr_t)image - (uintptr_t)region) / IMAGE_CHUNK - 1];
}

/* More of them are free, with pages, than may be kept for those who want one next: a quarter of what is in use. */
static bool has_many(const struct image_store *store)
{
    return store->free_count > CHUNKS_SLACK && store->free_count > store->chunks_used / 4;
}

/* Of so many at most. Returns how many bytes went back to the system. */
static size_t discard_free(struct thread *thread, struct image_store *store, size_t most, bool all)
{
    size_t given = 0;
    while (given / IMAGE_CHUNK < most) {
        struct link *link = NULL;
        spin_lock(&store->lock, thread);
        if (store->free_count && (all || has_many(store))) {
            link = list_pop_front(&store->free);
            store->free_count--;
            budget_give(thread->sub, IMAGE_CHUNK); /* at once: who finds no free one finds room [B1] */
        }
        spin_unlock(&store->lock);
        if (!link)
            break;
        struct image_chunk *chunk = CONTAINER(link, struct image_chunk, link);
        arch_discard(memory_of(chunk), IMAGE_CHUNK);
        given += IMAGE_CHUNK;
        spin_lock(&store->lock, thread);
        chunk->clean = true;
        list_push_back(&store->free, link); /* those with pages come first */
        spin_unlock(&store->lock);
    }
    return given;
}

static void give_chunk(struct thread *thread, struct image_chunk *chunk)
{
    struct image_store *store = &thread->sub->images;
    spin_lock(&store->lock, thread);
    chunk->clean = false;
    list_push_front(&store->free, &chunk->link);
    store->free_count++;
    store->chunks_used--;
    bool many = has_many(store);
    spin_unlock(&store->lock);
    if (UNLIKELY(many))
        discard_free(thread, store, SIZE_MAX, false);
}

/* ---- the store: mappings ----------------------------------------------------------------------------------------- */

static struct link *kept_in(struct image_store *store, size_t bytes)
{
    return bytes <= IMAGE_KEPT ? &store->kept[class_of(bytes) - IMAGE_CLASSES] : NULL;
}

/* It is the caller's now. The lock is held. */
static struct kept *leave_store(struct image_store *store, struct kept *kept)
{
    list_remove(&kept->link);
    list_remove(&kept->age);
    store->kept_bytes -= kept->bytes;
    return kept;
}

/* The oldest of them go until no more than `most` bytes are kept, or as many as are in use. Returns how many bytes. */
static size_t drop_kept(struct thread *thread, struct image_store *store, size_t most, bool in_use_too)
{
    size_t dropped = 0;
    for (;;) {
        struct kept *kept = NULL;
        spin_lock(&store->lock, thread);
        if (store->kept_bytes > most && (!in_use_too || store->kept_bytes > store->large_bytes)) {
            kept = leave_store(store, CONTAINER(store->kept_by_age.next, struct kept, age));
            budget_give(thread->sub, kept->bytes); /* [B1] */
        }
        spin_unlock(&store->lock);
        if (!kept)
            return dropped;
        size_t bytes = kept->bytes;
        dropped += bytes;
        if (!opened_put_off(thread->sub, (struct put_off *)(void *)kept, bytes))
            arch_unmap(kept, bytes);
    }
}

/* One of those that are kept, or NULL. */
static void *take_kept(struct thread *thread, size_t bytes)
{
    struct image_store *store = &thread->sub->images;
    struct link *same = kept_in(store, bytes);
    void *image = NULL;
    spin_lock(&store->lock, thread);
    if (same && !list_empty(same))
        image = leave_store(store, CONTAINER(same->next, struct kept, link));
    store->large_bytes += image ? bytes : 0;
    spin_unlock(&store->lock);
    return image;
}

static int map_large(struct thread *thread, size_t bytes, bool must, void **out)
{
    struct image_store *store = &thread->sub->images;
    bool taken = budget_take(thread, bytes, must);
    while (UNLIKELY(!taken) && budget_make_room(thread))
        taken = budget_take(thread, bytes, must);
    if (!taken)
        return -EAGAIN;
    if (arch_map(bytes, out) < 0 &&
        !(drop_kept(thread, store, 0, false) && arch_map(bytes, out) == 0)) { /* is there memory in other classes? */
        budget_give(thread->sub, bytes);
        return -ENOMEM;
    }
    spin_lock(&store->lock, thread);
    store->large_bytes += bytes;
    spin_unlock(&store->lock);
    return 0;
}

/* What is mapped is zero, what was kept is not. */
static int take_large(struct thread *thread, size_t bytes, bool must, void **out)
{
    *out = take_kept(thread, bytes);
    return *out ? 0 : map_large(thread, bytes, must, out);
}

static void give_large(struct thread *thread, void *image, size_t bytes)
{
    struct image_store *store = &thread->sub->images;
    struct link *same = kept_in(store, bytes);
    struct kept *kept = image;
    spin_lock(&store->lock, thread);
    store->large_bytes -= bytes;
    if (same) {
        kept->bytes = bytes;
        list_push_front(same, &kept->link);
        list_push_back(&store->kept_by_age, &kept->age);
        store->kept_bytes += bytes;
    }
    bool many = store->kept_bytes > KEPT_SLACK && store->kept_bytes > store->large_bytes;
    spin_unlock(&store->lock);
    if (!same) {
        budget_give(thread->sub, bytes);
        if (!opened_put_off(thread->sub, image, bytes))
            arch_unmap(image, bytes);
    }
    if (many)
        drop_kept(thread, store, KEPT_SLACK, true);
}

size_t image_store_trim(struct thread *thread, struct image_store *store, size_t most)
{
    return drop_kept(thread, store, 0, false) + discard_free(thread, store, most, true);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

void images_open(struct images *images)
{
    for (int i = 0; i < IMAGE_CLASSES; i++)
        list_init(&images->room[i]);
    images->bytes = 0;
}

void images_close(struct thread *thread, struct images *images)
{
    ASSERT(!images->bytes);
    images_trim(thread, images);
}

void images_trim(struct thread *thread, struct images *images)
{
    for (int i = 0; i < IMAGE_CLASSES; i++) {
        struct link *next, *head = &images->room[i];
        for (struct link *link = head->next; link != head; link = next) {
            struct image_chunk *chunk = CONTAINER(link, struct image_chunk, link);
            next = link->next;
            if (chunk->used)
                continue;
            list_remove(link);
            give_chunk(thread, chunk);
        }
    }
}

static int new_chunk(struct thread *thread, struct images *images, uint32_t class, bool must, struct image_chunk **out)
{
    int error = driver_refuses(thread) ? -ENOMEM : take_chunk(thread, must, out);
    if (error)
        return error;
    **out = (struct image_chunk){.size = size_of(class)};
    list_push_front(&images->room[class], &(*out)->link);
    return 0;
}

static int get_large(struct thread *thread, struct images *images, size_t bytes, bool must, void **out)
{
    int error = driver_refuses(thread) ? -ENOMEM : take_large(thread, bytes, must, out);
    images->bytes += error ? 0 : bytes;
    return error;
}

int image_get(struct thread *thread, struct images *images, size_t bytes, bool must, void **out)
{
    int error;
    if (UNLIKELY(bytes > IMAGE_LARGE))
        return get_large(thread, images, image_round(bytes), must, out);
    uint32_t class = class_of(bytes);
    struct link *head = &images->room[class];
    struct image_chunk *chunk = list_empty(head) ? NULL : CONTAINER(head->next, struct image_chunk, link);
    if (UNLIKELY(!chunk) && (error = new_chunk(thread, images, class, must, &chunk)))
        return error;
    void *image = chunk->free;
    if (image)
        chunk->free = *(void **)image;
    else
        image = memory_of(chunk) + (size_t)chunk->cut++ * chunk->size;
    chunk->used++;
    if (UNLIKELY(!chunk->free && ((size_t)chunk->cut + 1) * chunk->size > IMAGE_CHUNK))
        list_remove(&chunk->link); /* full */
    images->bytes += chunk->size;
    *out = image;
    return 0;
}

void image_put(struct thread *thread, struct images *images, void *image, size_t bytes)
{
    if (UNLIKELY(bytes > IMAGE_LARGE)) {
        bytes = image_round(bytes);
        images->bytes -= bytes;
        give_large(thread, image, bytes);
        return;
    }
    struct image_chunk *chunk = chunk_of(image);
    struct link *head = &images->room[class_of(bytes)];
    if (UNLIKELY(!chunk->link.next))
        list_push_front(head, &chunk->link);
    *(void **)image = chunk->free;
    chunk->free = image;
    chunk->used--;
    images->bytes -= chunk->size;
    /* One empty chunk of a class stays: the next image is about to come. */
    if (UNLIKELY(!chunk->used) && head->next->next != head) {
        list_remove(&chunk->link);
        give_chunk(thread, chunk);
    }
}
