/*
 * Allocation of stacks. A region is one mapping that is cut into stacks of one size; it lives as long as the run.
 * Cutting sets a stack up: its header, its colour and, unless a batch has installed it before, its guard page. Later
 * uses recycle the stack, with the pages that it has touched. A thread caches free stacks, up to a number, and returns
 * the others to the run, for other threads. Pages of free stacks that were not needed there for a while return to the
 * system (stacks_begin_round).
 */
#include "stack.h"

#include "budget.h"

#include <errno.h>
#include <stdlib.h>

struct stack_region {
    struct stack_region *next;
    char *base;
    size_t bytes;
    size_t stack;   /* the size of each */
    size_t used;    /* bytes cut so far */
    size_t guarded; /* bytes of stacks whose guard pages are installed */
    int64_t guard_mappings;
    /* Free stacks without pages: index * HOLLOW + enum arch_guard. The array has room for all stacks of the region, so
     * that returning pages needs no memory. */
    uint32_t hollow_count, hollow[];
};
enum { HOLLOW = 4 };

/* STACK_MANY: fewer spare stacks than this are not worth a wake-up. */
enum { STACK_COLOURS = 16, STACK_BATCH = 16, GUARD_BATCH = 64, STACK_MANY = 256 };
#define STACK_REGION_FIRST ((size_t)2 << 20)
#define STACK_REGION_MOST ((size_t)64 << 20)

void stacks_open(struct stacks *stacks, size_t usual, bool required)
{
    *stacks = (struct stacks){.lock = ATOMIC_FLAG_INIT, .usual = usual, .required = required};
}

static void free_region(struct stack_region *region)
{
    arch_unmap(region->base, region->bytes);
    arch_guards_unmapped(region->guard_mappings);
    free(region);
}

void stacks_close(struct stacks *stacks)
{
    while (stacks->regions) {
        struct stack_region *region = stacks->regions;
        stacks->regions = region->next;
        free_region(region);
    }
}

void stacks_take_stage(struct stacks *stacks)
{
    struct stack_region *region = arch_stage_take(ARCH_STAGE_STACKS);
    if (region && region->stack == stacks->usual)
        stacks->regions = region;
    else if (region)
        free_region(region);
}

/* Whether the region is small, and its guards are not mappings. */
static bool is_worth_keeping(const struct stacks *stacks, const struct stack_region *region)
{
    return region->stack == stacks->usual && region->bytes <= STACK_REGION_FIRST && !region->guard_mappings &&
           region->guarded >= region->used;
}

void stacks_give_stage(struct stacks *stacks)
{
    struct stack_region **link = &stacks->regions;
    while (*link && !is_worth_keeping(stacks, *link))
        link = &(*link)->next;
    struct stack_region *region = *link;
    if (!region)
        return;
    *link = region->next;
    region->next = NULL;
    region->used = 0;
    region->hollow_count = 0;
    if ((region = arch_stage_give(ARCH_STAGE_STACKS, region)))
        free_region(region);
}

size_t stack_round(size_t size)
{
    size_t page = arch_page_size(), least = page + arch_signal_frame() + STACK_BESIDE_SIGNAL;
    if (size > (size_t)1 << 46)
        return 0;
    size_t rounded = 4 * page;
    while (rounded < size || rounded < least)
        rounded *= 2;
    return rounded;
}

static unsigned class_of(size_t size)
{
    return (unsigned)__builtin_ctzll(size);
}

static int region_for(struct stacks *stacks, size_t size, struct stack_region **out)
{
    size_t bytes = STACK_REGION_FIRST;
    for (struct stack_region *region = stacks->regions; region; region = region->next) {
        if (region->stack != size)
            continue;
        if (region->used < region->bytes) {
            *out = region;
            return 0;
        }
        if (bytes <= region->bytes)
            bytes = region->bytes < STACK_REGION_MOST ? region->bytes * 2 : region->bytes;
        break; /* the newest region of a size comes first */
    }
    if (bytes < size)
        bytes = size;
    struct stack_region *region = malloc(sizeof *region + bytes / size * sizeof region->hollow[0]);
    if (!region)
        return -ENOMEM;
    void *base;
    int error = arch_map(bytes, &base);
    while (error && bytes / 2 >= size) { /* less may fit */
        bytes /= 2;
        error = arch_map(bytes, &base);
    }
    if (error) {
        free(region);
        return error;
    }
    *region = (struct stack_region){.next = stacks->regions, .base = base, .bytes = bytes, .stack = size};
    stacks->regions = region;
    *out = region;
    return 0;
}

/* The canary of a stack without a guard page, which the fibre must never reach. It has several words because a frame
 * may have gaps. */
enum { CANARY_WORDS = 32 };
static uint64_t *canary_of(const struct stack *stack)
{
    return (uint64_t *)(void *)stack->low;
}

/* Installs a guard page. One system call also installs those of the next stacks: as many as the region has stacks
 * already, at most GUARD_BATCH. */
static int guard_next(struct stack_region *region, char *low, bool limit_mappings)
{
    if (region->used == region->guarded) {
        size_t count = region->used / region->stack, left = (region->bytes - region->used) / region->stack;
        count = count < GUARD_BATCH ? count : GUARD_BATCH;
        region->guarded += region->stack * arch_guards_install(low, region->stack, count < left ? count : left);
    }
    if (region->used < region->guarded)
        return ARCH_GUARD_PAGE;
    int guard = arch_guard_install(low, limit_mappings);
    region->guarded += guard >= 0 ? region->stack : 0;
    return guard;
}

/* Turns zeroed memory into a stack. guard: as in struct stack. */
static struct stack *set_up(struct stacks *stacks, char *low, size_t size, int guard)
{
    struct stack *stack = (struct stack *)(void *)(low + size - sizeof *stack - (sizeof *stack & 15));
    stack = (struct stack *)((uintptr_t)stack & ~(uintptr_t)(CACHE_LINE - 1));
    stack->low = low;
    stack->size = size;
    stack->guard = guard;
    stack->idle = NULL;
    stack->top = (char *)stack - (size_t)(stacks->colour++ % STACK_COLOURS) * CACHE_LINE;
    if (!stack->guard)
        for (int i = 0; i < CANARY_WORDS; i++)
            canary_of(stack)[i] = STACK_CANARY;
    return stack;
}

static int cut(struct stack_user *user, size_t size, struct stack **out)
{
    struct stacks *stacks = &user->memory->stacks;
    struct stack_region *region;
    int error = region_for(stacks, size, &region);
    if (error)
        return error;
    if (!budget_take(user, size, false))
        return -EAGAIN;
    char *low = region->base + region->used;
    int guard = guard_next(region, low, !stacks->required);
    if (guard < 0 && stacks->required) {
        budget_give(user->memory, size);
        return guard;
    }
    region->used += size;
    region->guard_mappings += guard == ARCH_GUARD_MAPPING;
    *out = set_up(stacks, low, size, guard < 0 ? 0 : guard);
    stacks->made++;
    return 0;
}

/* ---- stacks without pages -------------------------------------------------------------------------------- */

/* The newest region that has stacks of this size without pages, or NULL. */
static struct stack_region *region_with_hollow(const struct stacks *stacks, size_t size)
{
    struct stack_region *region = stacks->regions;
    while (region && (region->stack != size || !region->hollow_count))
        region = region->next;
    return region;
}

/* Takes a stack without pages; they return when they are touched. */
static int fill(struct stack_user *user, struct stack_region *region, struct stack **out)
{
    struct stacks *stacks = &user->memory->stacks;
    if (!budget_take(user, region->stack, false))
        return -EAGAIN;
    uint32_t which = region->hollow[--region->hollow_count];
    stacks->hollow--;
    *out = set_up(stacks, region->base + which / HOLLOW * region->stack, region->stack, (int)(which % HOLLOW));
    return 0;
}

static struct stack_region *region_of(const struct stacks *stacks, const struct stack *stack)
{
    struct stack_region *region = stacks->regions;
    while ((size_t)(stack->low - region->base) >= region->bytes)
        region = region->next;
    return region;
}

static void empty(struct stack_user *user, struct stack *stack)
{
    struct stacks *stacks = &user->memory->stacks;
    struct stack_region *region = region_of(stacks, stack);
    size_t index = (size_t)(stack->low - region->base) / region->stack, guarded = stack->guard ? arch_page_size() : 0;
    region->hollow[region->hollow_count++] = (uint32_t)index * HOLLOW + (uint32_t)stack->guard;
    stacks->hollow++;
    arch_discard(stack->low + guarded, region->stack - guarded);
    budget_give(user->memory, region->stack);
}

static void warn_once(struct stack_user *user)
{
    struct stack_memory *memory = user->memory;
    if (!atomic_exchange_explicit(&memory->stacks.warned, true, memory_order_seq_cst)) /* [GD1] */
        memory->ops->unguarded(memory);
}

static struct stack *pop(struct stack **list)
{
    struct stack *stack = *list;
    if (stack)
        *list = stack->next;
    return stack;
}

static void push(struct stack **list, struct stack *stack)
{
    stack->next = *list;
    *list = stack;
}

/* The lock is held in both. */
static struct stack *take_spare(struct stacks *stacks, unsigned class)
{
    struct stack *stack = pop(&stacks->free[class]);
    if (stack && --stacks->spare < stacks->least)
        stacks->least = stacks->spare;
    return stack;
}

static void give_spare(struct stacks *stacks, struct stack *stack)
{
    push(&stacks->free[class_of(stack->size)], stack);
    if (++stacks->spare > STACK_MANY)
        atomic_store_explicit(&stacks->many, true, memory_order_relaxed);
}

/* Takes a stack of that size, free or new. The lock is held. */
static int take(struct stack_user *user, size_t size, struct stack **out)
{
    struct stacks *stacks = &user->memory->stacks;
    if ((*out = take_spare(stacks, class_of(size))))
        return 0;
    struct stack_region *region = UNLIKELY(stacks->hollow) ? region_with_hollow(stacks, size) : NULL;
    return region ? fill(user, region, out) : cut(user, size, out);
}

static int take_locked(struct stack_user *user, size_t size, struct stack **out)
{
    struct stacks *stacks = &user->memory->stacks;
    stack_memory_lock(&stacks->lock, user);
    int error = take(user, size, out);
    if (!error && size == user->kept) {
        struct stack *more;
        while (user->cache.count < STACK_BATCH && stacks->free[class_of(size)] && take(user, size, &more) == 0) {
            more->next = user->cache.free;
            user->cache.free = more;
            user->cache.count++;
        }
    }
    stack_memory_unlock(&stacks->lock);
    return error;
}

int stack_get_slow_(struct stack_user *user, size_t size, struct stack **out)
{
    int error = stack_memory_refuses(user) ? -ENOMEM : take_locked(user, size, out);
    if (!error && !(*out)->guard)
        warn_once(user);
    return error;
}

COLD int stack_get_patiently(struct stack_user *user, size_t size, struct stack **out)
{
    int error;
    do
        error = stack_get(user, size, out);
    while (error == -EAGAIN && budget_make_room(user));
    return error;
}

static struct stack *take_kept(struct stack_user *user)
{
    user->cache.count--;
    return pop(&user->cache.free);
}

/* If the thread keeps such stacks, its cache is full: a batch goes along, which leaves room for the next ones. */
void stack_put_slow_(struct stack_user *user, struct stack *stack)
{
    struct stacks *stacks = &user->memory->stacks;
    int more = stack->size == user->kept ? STACK_BATCH : 0;
    stack_memory_lock(&stacks->lock, user);
    give_spare(stacks, stack);
    for (; more && user->cache.count; more--)
        give_spare(stacks, take_kept(user));
    stack_memory_unlock(&stacks->lock);
    budget_ended(user);
}

bool stacks_hollow(struct stack_user *user)
{
    struct stacks *stacks = &user->memory->stacks;
    struct stack *stack = NULL;
    stack_memory_lock(&stacks->lock, user);
    for (unsigned i = 0; i < STACK_CLASSES && !stack; i++)
        stack = take_spare(stacks, i);
    if (stack)
        empty(user, stack);
    stack_memory_unlock(&stacks->lock);
    return stack != NULL;
}

/* Repeatedly used stacks leave `many` set for one more round. */
size_t stacks_begin_round(struct stack_user *user)
{
    struct stacks *stacks = &user->memory->stacks;
    stack_memory_lock(&stacks->lock, user);
    size_t unused = stacks->least;
    stacks->least = stacks->spare;
    atomic_store_explicit(&stacks->many, stacks->spare - unused > STACK_MANY, memory_order_relaxed);
    stack_memory_unlock(&stacks->lock);
    return unused;
}

void stack_cache_flush(struct stack_user *user)
{
    while (user->cache.count)
        stack_put_slow_(user, take_kept(user));
}

char *stack_floor(const struct stack *stack)
{
    return stack->low + (stack->guard ? arch_page_size() : CANARY_WORDS * sizeof(uint64_t));
}

/* A canary's page stays: the bytes above the canary are wiped. */
char *stack_discard(const struct stack *stack, char *used)
{
    size_t page = arch_page_size();
    char *floor = stack_floor(stack), *low = stack->low + page;
    char *from = (char *)((uintptr_t)used & ~(page - 1)), *end = used < low ? used : low;
    if (from > low)
        arch_discard(low, (size_t)(from - low));
    if (end > floor) {
        arch_san_unwritten(floor, (size_t)(end - floor));
        arch_wipe(floor, (size_t)(end - floor), 0);
    }
    return used < low ? used : from;
}

bool stack_overrun(const struct stack *stack)
{
    bool whole = true;
    for (int i = 0; !stack->guard && i < CANARY_WORDS; i++)
        whole &= canary_of(stack)[i] == STACK_CANARY;
    return !whole;
}

bool stack_guards(const struct stack *stack, const void *address)
{
    return stack->guard && (const char *)address >= stack->low && (const char *)address < stack->low + arch_page_size();
}

bool stack_is_anothers(struct stack_user *user, const char *sp)
{
    struct stacks *stacks = &user->memory->stacks;
    stack_memory_lock(&stacks->lock, user);
    const struct stack_region *region = stacks->regions;
    while (region && (size_t)(sp - region->base) >= region->bytes)
        region = region->next;
    stack_memory_unlock(&stacks->lock);
    return region != NULL;
}

/* A stack pointer that is further away belongs to another stack. A call, or a function with a red zone, writes a little
 * below it. */
bool stack_stepped_over(const struct stack *stack, const void *address, const char *sp)
{
    enum { BELOW = 256 };
    const char *at = address, *low = stack->low;
    return sp < low && (size_t)(low - sp) < STACK_REGION_MOST && at >= sp - BELOW && at < stack_floor(stack);
}
