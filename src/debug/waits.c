/* Who waits for whom, in words. */
#include "../strand/print.h"

#include <stdio.h>

void waits_report(struct thread *thread, const char *headline)
{
    log_text(runtime_of(thread), headline);
    (void)dump_from(thread, 2);
}

void waits_summary(struct thread *thread, char *text, size_t room)
{
    (void)thread;
    snprintf(text, room, "no strand can go on: they wait for each other");
}
