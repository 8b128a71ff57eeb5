/*
 * Reports of misuse. The user's hook runs first; then the report goes to standard error, and the program is aborted.
 */
#include "misuse.h"

#include "exception.h"
#include "hook.h"
#include "interrupt.h"
#include "print.h"
#include "sized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *misuse_made_scope(struct scope *scope, char *buffer, size_t size)
{
    snprintf(buffer, size, "the scope was opened at " BLOCK_LOCATION " by strand '%s'",
             BLOCK_LOCATION_OF(&scope->block), cb_name(scope->block.owner));
    return buffer;
}

const char *misuse_made_strand(struct cb *c, char *buffer, size_t size)
{
    char where[LOCATION_WORDS];
    if (!c->site)
        snprintf(buffer, size, "strand #%llu is the root strand", (unsigned long long)cb_id(c));
    else
        snprintf(buffer, size, "strand '%s' #%llu was spawned in %s", cb_name(c), (unsigned long long)cb_id(c),
                 print_location_line(c->site, where, sizeof where));
    return buffer;
}

const char *misuse_made_stale(strand handle, char *buffer, size_t size)
{
    struct cb *c = (struct cb *)(uintptr_t)handle.bits[0];
    char where[LOCATION_WORDS];
    if (!arch_in_handles(c) || !word_was(atomic_load_explicit(&c->word, memory_order_relaxed), handle.bits[1]) ||
        !c->site)
        return "";
    snprintf(buffer, size, "strand #%llu had been spawned in %s", (unsigned long long)handle.bits[1],
             print_location_line(c->site, where, sizeof where));
    return buffer;
}

const char *misuse_made_at(const char *noun, const void *object, char *buffer, size_t size)
{
    snprintf(buffer, size, "the %s is at %p", noun, object);
    return buffer;
}

/* Calls the hook of the run, if there is one, then writes to standard error. */
static void report(const struct runtime *runtime, const char *function, const char *what, const char *made)
{
    const strand_misuse report = {sizeof report, function, what, made};
    if (runtime && runtime->options.on_misuse)
        runtime->options.on_misuse(&report, runtime->options.hook_arg);
    print_text(2, "libstrand: misuse of %s: %s\n", function, what);
    if (made[0])
        print_text(2, "  %s\n", made);
    if (runtime && runtime->deadlock[0])
        print_text(2, "  it follows the deadlock that was reported above: %s\n", runtime->deadlock);
}

COLD void misuse(const char *function, const char *made, const char *format, ...)
{
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    struct thread *thread = thread_self();
    report(thread ? runtime_of(thread) : NULL, function, what, made);
    (void)arch_process_start(); /* if no run has started yet, the trace would otherwise lack names */
    print_here(2, thread && thread->current ? current_of(thread) : NULL);
    abort();
}

COLD void misuse_size_(size_t size, const char *type, const char *function)
{
    misuse(function, "", "%s.size is %zu, not sizeof(%s)", type, size, type);
}

/* Prints no trace: at the fork another thread may have held a lock of libunwind. */
COLD void misuse_forked(struct runtime *runtime, const char *function)
{
    char made[128] = "";
    struct thread *orphan = arch_orphan();
    struct fibre *fibre = orphan && (!runtime || orphan->sub == &runtime->sub) ? orphan->current : NULL;
    if (!runtime && orphan)
        runtime = runtime_of(orphan);
    if (fibre && fibre->current)
        snprintf(made, sizeof made, "strand '%s' #%llu has forked", cb_name(cb_of(fibre->current)),
                 (unsigned long long)cb_id(cb_of(fibre->current)));
    report(runtime, function,
           "this process is the child of a fork, and the run has stayed in the parent: only strand_run, exec and _exit "
           "are possible here",
           made);
    abort();
}

/* The remedy for a plain thread that calls the function. */
static const char *for_plain_threads(const char *function)
{
    static const struct {
        const char *function, *instead;
    } all[] = {
        {"strand_must", "check the result themselves"},
        {"strand_close", "close descriptors by close"},
        {"strand_throw", "return an error"},
        {"strand_rethrow", "return an error"},
        {"STRAND_TRY", "have no exceptions to catch"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(function, all[i].function) == 0)
            return all[i].instead;
    return "send by strand_chan_post or by a port";
}

COLD void misuse_plain_thread_(const char *function)
{
    if (arch_orphan())
        misuse_forked(NULL, function);
    misuse(function, "",
           "it was called from a plain thread, not from a strand: call it within strand_run. Plain threads %s",
           for_plain_threads(function));
}

COLD void misuse_foreign(const char *function, const char *noun)
{
    misuse(function, "", "the %s belongs to another run: runs share only ports", noun);
}

COLD void misuse_null_(const char *function, const char *noun)
{
    misuse(function, "", "the %s is NULL", noun);
}

COLD void misuse_block_skipped_(struct cb *me, const struct block *block)
{
    char made[256] = "";
    if (block)
        snprintf(made, sizeof made, "the %s was opened at %s:%d",
                 block->type == BLOCK_SCOPE ? "scope" : "deadline block", block->file, block->line);
    misuse(
        "longjmp", made,
        "strand '%s' #%llu has jumped out of a %s, whose clean-up has not run: its strands would be lost. Jump within "
        "the block only; to leave it, return or throw an exception",
        cb_name(me), (unsigned long long)cb_id(me), block ? "scope or a deadline block" : "try block or a shield");
}

COLD struct misuse_section_words misuse_section_words(struct cb *me)
{
    const struct own *own = own_of(me);
    struct misuse_section_words words = {"inside a no-suspend section", ""};
    if (own->section_line == SECTION_OF_HOOK) {
        const struct hook *hook = (const struct hook *)own->section_file;
        snprintf(words.where, sizeof words.where, "inside %s", hook->name);
        const char *made = hook->made(hook, words.made, sizeof words.made);
        if (made != words.made)
            snprintf(words.made, sizeof words.made, "%s", made);
        return words;
    }
    if (me->section_by_mutex)
        snprintf(words.where, sizeof words.where,
                 "while the strand holds a pthread mutex or another lock of its thread: unlock it first, or use "
                 "strand_mutex, strand_rwlock or strand_once_run");
    snprintf(words.made, sizeof words.made, "the %s at %s:%d",
             me->section_by_mutex ? "lock was taken" : "section was opened", own->section_file, own->section_line);
    return words;
}

COLD void misuse_in_section_(struct cb *me, const char *function)
{
    struct misuse_section_words words = misuse_section_words(me);
    misuse(function, words.made, "it may block, %s", words.where);
}

COLD void misuse_hook_thrown_(struct hook *hook)
{
    char where[MADE_WORDS];
    const strand_exception *e = hook->me && own_of(hook->me)->flight ? own_of(hook->me)->flight->exception : NULL;
    misuse(hook->name, hook->made(hook, where, sizeof where),
           "the function has thrown%s%s%s: it has to return, so catch exceptions in it", e ? " '" : "",
           e ? e->text : "", e ? "'" : "");
}
