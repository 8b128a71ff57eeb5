/*
 * Mutexes of the system's that are held across a suspension: found by those who ask for it (strand/check.h). A mutex
 * that is held makes a no-suspend section, which may_block looks at anyway: so there is nothing to pay for the others.
 */
#include "exception.h"
#include "misuse.h"
#include "section.h"

#include "../../include/strand/check.h"

#include <stdio.h>
#include <stdlib.h>

void strand_check_locked(const void *mutex, const char *file, int line)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current)
        return;
    struct cb *me = current_of(thread);
    struct checked *checked = malloc(sizeof *checked);
    if (!checked)
        return;
    *checked = (struct checked){own_of(me)->checked, mutex, file, line};
    own_of(me)->checked = checked;
    me->odd = true; /* its end looks at it */
    if (!own_of(me)->section_file || me->section_by_mutex)
        section_by_mutex(me);
}

void strand_check_unlocked(const void *mutex)
{
    struct thread *thread = thread_self();
    if (!thread || !thread->current)
        return;
    struct cb *me = current_of(thread);
    struct checked **at = &own_of(me)->checked;
    while (*at && (*at)->mutex != mutex)
        at = &(*at)->outer;
    struct checked *checked = *at;
    if (!checked)
        return;
    *at = checked->outer;
    free(checked);
    if (me->section_by_mutex)
        section_by_mutex(me);
}

COLD void check_at_end_(struct cb *c)
{
    char where[256];
    snprintf(where, sizeof where, "it was locked at %s:%d", own_of(c)->checked->file, own_of(c)->checked->line);
    misuse("pthread_mutex_lock", where, "strand '%s' has ended, and holds the mutex: unlock it before", cb_name(c));
}
