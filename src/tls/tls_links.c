/*
 * Contexts that lead to other contexts: to a successor, and to those of the names that clients ask for.
 *
 * PARTIES  Any thread: it links contexts, closes them, or looks for the context that a stream uses.
 *
 * STATE    `successor` and `names` of every context are guarded by one lock of the process: whether a link would close
 * a cycle depends on links of many contexts. Each link has a reference to the context that it leads to. `next` makes
 * lists without memory: of contexts that a search has reached, under the lock for writing, and of contexts that are
 * being freed, which no link leads to any more.
 *
 * INVARIANTS
 *   [TK1] Links make no cycle: the search for one and the new link are one step. So references reach 0, and the way
 *     along successors has an end.
 *
 * NOT DONE A lock for each context: two threads that link two contexts to each other would both find no cycle. Freeing
 *     by recursion: a chain of successors may be long.
 *
 * TESTED BY tests/spec/tls_hosts.c
 */
#include "tls.h"

/* ---- lists ----------------------------------------------------------------------------------------------------- */

/* Append to a list that ends in itself, unless the context is in it. */
static void reach(strand_tls_context **last, strand_tls_context *context)
{
    if (!context || context->next)
        return;
    context->next = context;
    (*last)->next = context;
    *last = context;
}

/* Take a list apart. Returns whether `sought` is in it. */
static bool forget_reached(strand_tls_context *at, const strand_tls_context *sought)
{
    for (bool found = false;;) {
        strand_tls_context *next = at->next;
        found |= at == sought;
        at->next = NULL;
        if (next == at)
            return found;
        at = next;
    }
}

/* Whether links lead from a context to another one, or it is that. Under the lock for writing. */
static bool leads_to(strand_tls_context *from, const strand_tls_context *to)
{
    strand_tls_context *last = from;
    from->next = from;
    for (strand_tls_context *at = from;; at = at->next) {
        reach(&last, at->successor);
        for (struct tls_name *name = at->names; name; name = name->next)
            reach(&last, name->context);
        if (at->next == at)
            return forget_reached(from, to);
    }
}

/* ---- references ------------------------------------------------------------------------------------------------ */

static strand_tls_context *keep(strand_tls_context *context)
{
    CRYPTO_THREAD_write_lock(context->lock);
    context->references++;
    CRYPTO_THREAD_unlock(context->lock);
    return context;
}

/* Returns whether it was the last reference. */
static bool drop_reference(strand_tls_context *context)
{
    if (!context->lock)
        return true; /* it was never whole */
    CRYPTO_THREAD_write_lock(context->lock);
    bool last = --context->references == 0;
    CRYPTO_THREAD_unlock(context->lock);
    return last;
}

/* Give a reference back. The last one puts the context into the list of those that are freed. (ThreadSanitizer does not
 * see the order that CRYPTO_atomic_add makes.) */
static void release(strand_tls_context *context, strand_tls_context **dying)
{
    if (!context || !drop_reference(context))
        return;
    context->next = *dying;
    *dying = context;
}

static void release_links(strand_tls_context *context, strand_tls_context **dying)
{
    release(context->successor, dying);
    for (struct tls_name *name = context->names, *next; name; name = next) {
        next = name->next;
        release(name->context, dying);
        OPENSSL_free(name);
    }
}

void strand_tls_context_close(strand_tls_context *context)
{
    strand_tls_context *dying = NULL;
    release(context, &dying);
    while (dying) {
        strand_tls_context *dead = dying;
        dying = dead->next;
        release_links(dead, &dying);
        tls_context_free(dead);
    }
}

/* ---- links ------------------------------------------------------------------------------------------------------ */

/* Under the lock. */
static strand_tls_context *last_of(strand_tls_context *context)
{
    while (context->successor)
        context = context->successor;
    return context;
}

strand_tls_context *tls_context_current(strand_tls_context *context)
{
    tls_links_read();
    strand_tls_context *current = keep(last_of(context));
    tls_links_leave();
    return current;
}

strand_tls_context *tls_context_named(strand_tls_context *context, const char *asked)
{
    tls_links_read();
    struct tls_name *entry = context->names;
    while (entry && !tls_names_fit(entry->name, asked))
        entry = entry->next;
    strand_tls_context *found = entry ? keep(last_of(entry->context)) : NULL;
    tls_links_leave();
    return found;
}

int strand_tls_context_replace(strand_tls_context *context, strand_tls_context *other)
{
    if (!context || !other)
        return -EINVAL;
    tls_links_write();
    strand_tls_context *old = NULL;
    bool cycle = leads_to(other, context); /* [TK1] */
    if (!cycle) {
        old = context->successor;
        context->successor = keep(other);
    }
    tls_links_leave();
    strand_tls_context_close(old);
    return cycle ? -EINVAL : 0;
}

int strand_tls_context_name(strand_tls_context *context, const char *name, strand_tls_context *other)
{
    if (!context || !name || !*name || !other)
        return -EINVAL;
    size_t size = strlen(name) + 1;
    struct tls_name *entry = OPENSSL_malloc(sizeof *entry + size);
    if (!entry)
        return -ENOMEM;
    *entry = (struct tls_name){.context = other};
    memcpy(entry->name, name, size);
    tls_links_write();
    bool cycle = leads_to(other, context); /* [TK1] */
    if (!cycle) {
        struct tls_name **end = &context->names;
        while (*end)
            end = &(*end)->next;
        keep(other);
        *end = entry;
    }
    tls_links_leave();
    if (cycle)
        OPENSSL_free(entry);
    return cycle ? -EINVAL : 0;
}
