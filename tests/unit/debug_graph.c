/*
 * What the verdict that a run is deadlocked has to say (graph_report, graph_summary): by a strand, and by a pool's
 * thread that runs none.
 */
#include "arch_check.h"

#include "debug/debug_layer.h"
#include "sched/thread.h"

#include "../../include/strand/sync.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 181 };

static strand_mutex a, b;
static strand_event event;

/* The numbers of strands are not known beforehand. */
static const char *without_numbers(const char *text)
{
    static char plain[1024];
    size_t used = 0;
    while (*text && used < sizeof plain - 1) {
        plain[used++] = *text;
        text += 1 + (*text == '#' ? strspn(text + 1, "0123456789") : 0);
    }
    plain[used] = 0;
    return plain;
}

static const char *summary(void)
{
    char text[LINE];
    graph_summary(thread_self(), text, sizeof text);
    return without_numbers(text);
}

/* Let others run until the line is one of these: strands come in the order of their control blocks. */
static void await_either(const char *one, const char *other)
{
    while (strcmp(summary(), one) && strcmp(summary(), other))
        strand_sleep(STRAND_MS);
}

static void await_summary(const char *line)
{
    await_either(line, line);
}

static strand spawn_named(strand_scope scope, const char *name, strand_fn *fn)
{
    return strand_spawn_with(scope, STRAND_ATTR(.name = name), fn, NULL, 0);
}

static void *await_event(void *arg)
{
    strand_event_wait(&event);
    return arg;
}

static void *lock_both(void *arg)
{
    STRAND_LOCKED(&b);
    STRAND_LOCKED(&a);
    return arg;
}

/* ---- by a strand ------------------------------------------------------------------------------------------- */

static void *list_waits(void *arg)
{
    strand_event_clear(&event);
    STRAND_SCOPE(scope);
    await_summary("0 of 1 strands wait");
    spawn_named(scope, "one", await_event);
    await_summary("1 of 2 strands waits: 'one' # waits for event");
    strand_event_set(&event);
    strand_scope_join(scope);
    strand_mutex_lock(&a);
    spawn_named(scope, "other", lock_both);
    await_summary("1 of 2 strands waits: 'other' # waits for mutex");
    strand_mutex_unlock(&a);
    strand_scope_join(scope);
    return arg;
}

/* Whatever the room is, the line fits, and says how many it leaves out. */
static void *list_many(void *arg)
{
    char text[LINE];
    strand_event_clear(&event);
    STRAND_SCOPE(scope);
    for (int i = 0; i < 40; i++)
        spawn_named(scope, "with-a-name-of-some-length", await_event);
    do {
        strand_sleep(STRAND_MS);
        graph_summary(thread_self(), text, sizeof text);
    } while (strncmp(text, "40 of 41 strands wait: 'with-a-name-of-some-length' #", 52) != 0);
    int named = 0;
    for (const char *at = text; (at = strstr(at, "'with-")); at++)
        named++;
    const char *more = strstr(text, ", and ");
    CHECK(named > 1 && more && atoi(more + 6) == 40 - named);
    CHECK(!strcmp(strchr(more + 6, ' '), " more"));
    for (size_t size = 1; size < LINE; size++) {
        memset(text, 'x', sizeof text);
        graph_summary(thread_self(), text, size);
        CHECK(memchr(text, 0, size));
    }
    strand_event_set(&event);
    strand_scope_join(scope);
    return arg;
}

/* ---- by a pool's thread that runs none ----------------------------------------------------------------------- */

struct verdict {
    struct post post;
    char line[LINE];
    _Atomic int over, ended; /* it is asked for no more, and it comes no more */
};

static struct verdict verdict;
static char logged[4096];

static void note_log(const char *text, void *arg)
{
    (void)arg;
    snprintf(logged, sizeof logged, "%s", text);
}

/* Until all are blocked: the last of them may not be yet. */
static struct member *judge(struct post *post)
{
    struct thread *thread = thread_self();
    if (!thread->current)
        graph_summary(thread, verdict.line, sizeof verdict.line);
    if (!strncmp(verdict.line, "all ", 4))
        graph_report(thread);
    if (!strncmp(verdict.line, "all ", 4) || verdict.over)
        verdict.ended = 1;
    else
        pool_post(thread->pool, post);
    return NULL;
}

static void *wait_in_a_ring(void *patience)
{
    strand_event_clear(&event);
    STRAND_SCOPE(scope);
    spawn_named(scope, "third", await_event);
    await_summary("1 of 2 strands waits: 'third' # waits for event");
    strand_mutex_lock(&a);
    strand other = spawn_named(scope, "other", lock_both);
    await_either("2 of 3 strands wait: 'third' # waits for event, 'other' # waits for mutex",
                 "2 of 3 strands wait: 'other' # waits for mutex, 'third' # waits for event");
    verdict.post = (struct post){.run = judge};
    verdict.over = verdict.ended = 0;
    pool_post(thread_self()->pool, &verdict.post);
    STRAND_TRY {
        STRAND_DEADLINE(strand_in(*(int64_t *)patience));
        strand_mutex_lock(&b);
    }
    STRAND_CATCH(&STRAND_TIMED_OUT, e) {
        strand_mutex_unlock(&a);
    }
    STRAND_END
    verdict.over = 1;
    while (!verdict.ended)
        strand_sleep(STRAND_MS);
    strand_join(other);
    strand_event_set(&event);
    strand_scope_join(scope);
    return patience;
}

static void check_verdict(void)
{
    const char *line = without_numbers(verdict.line);
    CHECK(!strcmp(line, "all 3 strands wait, 2 of them for each other: 'root' # for the mutex of 'other' #, "
                        "'other' # for the mutex of 'root' #") ||
          !strcmp(line, "all 3 strands wait, 2 of them for each other: 'other' # for the mutex of 'root' #, "
                        "'root' # for the mutex of 'other' #"));
    CHECK(strstr(logged, "3 of 3 strands are blocked, 2 of them in 1 cycle\n") == logged);
    CHECK(strstr(logged, "\n2 strands wait for each other:\n    strand '"));
    CHECK(strstr(logged, "\n    or its deadline, in "));
    CHECK(logged[strlen(logged) - 1] != '\n');
}

int main(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        strand_options options = {.size = sizeof options, .threads = threads, .on_log = note_log};
        strand_run(&options, list_waits, NULL);
        strand_run(&options, list_many, NULL);
        verdict.line[0] = '\0';
        /* On a busy machine nobody may have the time to look before it is over. */
        for (int64_t patience = 500 * STRAND_MS; strncmp(verdict.line, "all ", 4); patience *= 2)
            strand_run(&options, wait_in_a_ring, &patience);
        check_verdict();
    }
    return failures != 0;
}
