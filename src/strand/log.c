/*
 * The log of a run: its hook, or standard error.
 */
#include "log.h"

#include "carry.h"
#include "hook.h"
#include "print.h"

#include <stdio.h>

/* The hook must not suspend: the library also logs in the middle of a switch, and under locks. */
static const char *made_of_log(const struct hook *hook, char *buffer, size_t size)
{
    snprintf(buffer, size, "it was called with: %s", (const char *)hook->object);
    return buffer;
}

void log_text(struct runtime *runtime, const char *text)
{
    if (!runtime->options.on_log) {
        print_text(2, "libstrand: %s\n", text);
        return;
    }
    struct hook hook HOOK = {.name = "options.on_log", .made = made_of_log, .object = (void *)(uintptr_t)text};
    hook_enter(&hook);
    runtime->options.on_log(text, runtime->options.hook_arg);
    must_be_here(runtime, "options.on_log");
    hook_over(&hook);
}

void log_exception(struct runtime *runtime, const char *what, const strand_exception *e)
{
    char text[512];
    struct carried all[CARRIED_ROOM];
    size_t more = 0, count = e ? carried_list(e, all, &more) : 0;
    for (size_t i = 0; i < count; i++) {
        const struct carried *line = &all[i];
        more += line->unshown;
        if (line->again || (i && strand_exception_is(line->e, &STRAND_INTERRUPTED))) /* not a failure */
            continue;
        snprintf(text, sizeof text, "%s: %s%s: %s", what, carried_words(line->as), line->e->kind->name, line->e->text);
        log_text(runtime, text);
    }
    if (more) {
        snprintf(text, sizeof text, "%s: ... and %zu more suppressed", what, more);
        log_text(runtime, text);
    }
    carried_over(all, count);
}
