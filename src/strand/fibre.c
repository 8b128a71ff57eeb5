/*
 * Opening shared fibres, inspecting them, trimming them.
 */
#include "fibre.h"

#include "end.h"
#include "entry.h"
#include "exception.h"
#include "handle.h"
#include "misuse.h"
#include "print.h"
#include "scope.h"
#include "throw.h"

#include "../stack/saved.h"
#include "../stack/stack.h"
#include "sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MOST = 1 << 16, ALL_SAMPLED = 8, SAMPLED = 3 };

/* ---- the life of a handle -------------------------------------------------------------------------------- */

/* The handle is retired, and there are no references. */
static void finish(struct thread *thread, struct fibres *fibres)
{
    for (uint32_t i = 0; i < fibres->count; i++)
        shared_fibre_release(thread, fibres->list[i], SHARED_KNOWN);
    if (fibres->list != &fibres->one)
        free(fibres->list);
    arch_san_release(fibres);
    slab_put(&worker_of(thread)->objects, fibres);
}

static void end_with_scope(struct thread *thread, struct owned *owned)
{
    struct fibres *fibres = CONTAINER(owned, struct fibres, owned);
    if (handle_retire(thread, &fibres->word))
        finish(thread, fibres);
}

static const char *made(const void *object, char *buffer, size_t size)
{
    const struct fibres *fibres = object;
    char where[LOCATION_WORDS];
    snprintf(buffer, size, "the fibre '%s' was opened in %s", fibres->name,
             print_location_line(fibres->site, where, sizeof where));
    return buffer;
}

static const struct handle_noun fibre_noun = {"fibre", MARK_FIBRE, offsetof(struct fibres, word), false, made};

struct fibres *fibres_ref(struct thread *thread, strand_fibre handle, const char *function)
{
    return handle_ref_object(thread, &fibre_noun, handle.bits, function);
}

void fibres_unref(struct thread *thread, struct fibres *fibres)
{
    if (handle_ref_release(thread, &fibres->word))
        finish(thread, fibres);
}

/* ---- opening --------------------------------------------------------------------------------------------- */

/* A field that the caller's header knows. */
#define ATTR(attr, field)                                                                                              \
    ((attr) && (attr)->size >= offsetof(strand_fibre_attr, field) + sizeof((attr)->field) ? (attr)->field : 0)

static int open_all(struct thread *thread, struct fibres *fibres, uint32_t count, size_t stack_size)
{
    while (fibres->count < count) {
        struct shared_fibre **shared = &fibres->list[fibres->count];
        int error = shared_fibre_open(thread, thread->pool, stack_size, shared);
        if (error)
            return error;
        struct hosting *hosting = hosting_of(*shared);
        memcpy(hosting->name, fibres->name, sizeof hosting->name);
        hosting->number = fibres->count++;
    }
    return 0;
}

/* Returns a stride that is coprime to count: its multiples visit all indexes, and consecutive ones lie far apart. */
static uint32_t stride_for(uint32_t count)
{
    for (uint32_t stride = (uint32_t)(count * UINT64_C(618) / 1000) + 1;; stride++) {
        uint32_t a = stride, b = count;
        while (b) {
            uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

/* Returns 0, or a negated errno code; on an error nothing stays allocated. */
static int make(struct thread *thread, uint32_t count, size_t stack_size, const char *name, void *site,
                struct fibres **out)
{
    struct fibres *fibres = platform_slab_get(thread, &worker_of(thread)->objects);
    if (!fibres)
        return -ENOMEM;
    arch_san_acquire(fibres);
    fibres->count = 0;
    fibres->site = site;
    atomic_init(&fibres->next_index, 0);
    atomic_init(&fibres->emptiest, 0);
    fibres->stride = stride_for(count);
    snprintf(fibres->name, sizeof fibres->name, "%s", name ? name : "fibre");
    fibres->owned.release = end_with_scope;
    fibres->list = count == 1 ? &fibres->one : platform_malloc(thread, count * sizeof(struct shared_fibre *));
    int error = fibres->list ? open_all(thread, fibres, count, stack_size) : -ENOMEM;
    atomic_store_explicit(&fibres->word, next_serial(worker_of(thread)) << WORD_SERIAL,
                          memory_order_release); /* [HN2] */
    if (error)
        end_with_scope(thread, &fibres->owned);
    else
        *out = fibres;
    return error;
}

static COLD __attribute__((noreturn)) void throw_open(struct thread *thread, struct cb *me, int error)
{
    char text[160], what[192];
    if (error == -ECANCELED)
        throw_system(me, error, "a fibre of an open scope that has been left");
    if (error != -EAGAIN)
        throw_system(me, error, "the stack of a fibre");
    snprintf(what, sizeof what, "the stack of a fibre; %s", print_refusal_words(thread, error, text, sizeof text));
    throw_system(me, error, what);
}

strand_fibre strand_fibre_open(strand_scope scope, const strand_fibre_attr *attr)
{
    struct thread *thread = must_be_strand("strand_fibre_open");
    struct cb *me = current_of(thread);
    if (attr)
        must_have_size(attr->size, offsetof(strand_fibre_attr, stack_size), "strand_fibre_attr", "strand_fibre_open");
    int count = ATTR(attr, count) ? ATTR(attr, count) : 1;
    if (count < 1 || count > COUNT_MOST)
        MISUSE("strand_fibre_open", "", "strand_fibre_attr.count is %d, not 1 to %d", count, COUNT_MOST);
    size_t asked = ATTR(attr, stack_size), size = asked ? stack_round(asked) : thread->sub->memory.stacks.usual;
    struct fibres *fibres;
    int error =
        size ? make(thread, (uint32_t)count, size, ATTR(attr, name), __builtin_return_address(0), &fibres) : -ENOMEM;
    uint64_t serial = error ? 0 : word_serial(atomic_load_explicit(&fibres->word, memory_order_relaxed));
    if (!error && (error = scope_own(thread, me, scope, &fibres->owned, "strand_fibre_open")))
        end_with_scope(thread, &fibres->owned);
    if (error)
        throw_open(thread, me, error);
    return (strand_fibre){{(uint64_t)(uintptr_t)fibres, serial | MARK_FIBRE}};
}

static uint32_t strands_of(struct shared_fibre *shared)
{
    return (uint32_t)atomic_load_explicit(&shared->refs, memory_order_relaxed);
}

static uint32_t with_fewer(const struct fibres *fibres, uint32_t a, uint32_t b)
{
    return strands_of(fibres->list[b]) < strands_of(fibres->list[a]) ? b : a;
}

static struct shared_fibre *choose_among_all(struct fibres *fibres, uint32_t index)
{
    uint32_t best = index % fibres->count;
    for (uint32_t i = 1; i < fibres->count; i++)
        best = with_fewer(fibres, best, (index + i) % fibres->count);
    return fibres->list[best];
}

/* Chooses the fibre at the index, unless a fibre with fewer strands is known: one of the SAMPLED that this call
 * examines, spread over the group, or `emptiest` of earlier calls. So a group fills up evenly, and an uneven one
 * becomes even again. */
static struct shared_fibre *choose_among_many(struct fibres *fibres, uint32_t index)
{
    uint32_t emptiest = atomic_load_explicit(&fibres->emptiest, memory_order_relaxed);
    for (uint32_t i = 0; i < SAMPLED; i++) {
        uint64_t sample = (uint64_t)index * SAMPLED + i;
        emptiest = with_fewer(fibres, emptiest, (uint32_t)(sample % fibres->count * fibres->stride % fibres->count));
    }
    atomic_store_explicit(&fibres->emptiest, emptiest, memory_order_relaxed);
    return fibres->list[with_fewer(fibres, index % fibres->count, emptiest)];
}

struct shared_fibre *fibres_choose(struct fibres *fibres)
{
    if (fibres->count == 1)
        return fibres->one;
    uint32_t index = atomic_fetch_add_explicit(&fibres->next_index, 1, memory_order_relaxed);
    return fibres->count <= ALL_SAMPLED ? choose_among_all(fibres, index) : choose_among_many(fibres, index);
}

/* ---- inspecting ---------------------------------------------------------------------------------------------- */

int strand_fibre_count(strand_fibre handle)
{
    struct thread *thread = must_be_strand("strand_fibre_count");
    struct fibres *fibres = fibres_ref(thread, handle, "strand_fibre_count");
    int count = (int)fibres->count;
    fibres_unref(thread, fibres);
    return count;
}

/* Returns the id of the active strand, or 0 if its memory serves another strand by now. */
static uint64_t id_of_active(struct shared_fibre *shared, struct member *active)
{
    uint64_t word = atomic_load_explicit(&cb_of(active)->word, memory_order_acquire); /* [HN2] */
    bool there = !(word & WORD_FREE) && plain_load(&active->fibre, memory_order_relaxed) == &shared->fibre;
    return there ? word_serial(word) : 0;
}

/* The bytes of stack that the active strand uses: at this moment if it is the caller, otherwise when it suspended. */
static size_t used_by(struct thread *thread, struct shared_fibre *shared, struct member *active)
{
    if (thread->current->current == active)
        return (size_t)(shared->stack.base - (char *)__builtin_frame_address(0));
    return (size_t)plain_load(&guest_of(active)->depth, memory_order_relaxed) * sizeof(uintptr_t);
}

/* Its strands may be switching on other threads meanwhile, so each figure is exact for some moment of its own. */
static void ask(struct thread *thread, struct shared_fibre *shared, strand_fibre_info *info)
{
    const struct shared_stack *stack = &shared->stack;
    struct guest *guest = plain_load(&stack->active, memory_order_acquire); /* [SF9] */
    struct member *active = guest ? member_of(guest) : NULL;
    info->active = active ? id_of_active(shared, active) : 0;
    info->stack_used = shared_above(stack) + (info->active ? used_by(thread, shared, active) : 0);
    info->stack_peak = shared_most(stack);
    info->stack_peak = info->stack_peak > info->stack_used ? info->stack_peak : info->stack_used;
    info->strands = strands_of(shared);
    info->overloaded = info->strands > 1;
    info->stack_size = shared->fibre.stack_size;
    info->stack_deepest = plain_load(&stack->deepest, memory_order_relaxed);
    info->stack_resident = shared_resident(stack);
    info->saved_bytes = plain_load(&stack->set.bytes, memory_order_relaxed);
    info->copies = atomic_load_explicit(&stack->copies, memory_order_relaxed);
}

void strand_fibre_info_get(strand_fibre handle, int index, strand_fibre_info *out)
{
    struct thread *thread = must_be_strand("strand_fibre_info_get");
    must_be_there(out, "buffer for the figures", "strand_fibre_info_get");
    must_have_size(out->size, sizeof out->size, "strand_fibre_info", "strand_fibre_info_get");
    struct fibres *fibres = fibres_ref(thread, handle, "strand_fibre_info_get");
    if (index < 0 || (uint32_t)index >= fibres->count)
        MISUSE("strand_fibre_info_get", "", "there is no fibre %d of %u", index, fibres->count);
    strand_fibre_info info = {0};
    ask(thread, fibres->list[index], &info);
    fibres_unref(thread, fibres);
    sized_give(out, out->size, &info, sizeof info);
}

size_t strand_fibre_trim(strand_fibre handle)
{
    struct thread *thread = must_be_strand("strand_fibre_trim");
    struct fibres *fibres = fibres_ref(thread, handle, "strand_fibre_trim");
    for (uint32_t i = 0; i < fibres->count; i++)
        shared_fibre_trim(thread, fibres->list[i]);
    fibres_unref(thread, fibres);
    return saved_store_trim(&thread->stacks, SIZE_MAX);
}

bool strand_on_shared_stack(const void *at)
{
    struct thread *thread = thread_self();
    return thread && thread->current && shared_fibre_has(thread->current, at);
}

/* ---- what goes wrong ------------------------------------------------------------------------------------- */

COLD void fibre_guest_starved(struct member *member, size_t bytes)
{
    print_text(2, "libstrand: no memory for the %zu bytes of the stack of strand '%s'; the program ends\n", bytes,
               cb_name(cb_of(member)));
    abort();
}
