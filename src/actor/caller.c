/*
 * The caller as an actor: of functions that only an actor may call in its turn. They are declared in actor.h.
 */
#include "optional.h"

#include "../strand/misuse.h"

#include <stdio.h>

const char *caller_made_actor(const struct runner *r, char *buffer, size_t size)
{
    char path[128];
    if (!r || !r->activation)
        return "";
    cell_path_end(r->cell, path, sizeof path);
    int length = snprintf(buffer, size, "the caller is the actor %s of class '%s'", path, cell_type(r->cell)->label);
    if (r->in_hand && length >= 0 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, ", which handles a '%s'", r->in_hand->message.type->name);
    return buffer;
}

struct runner *must_be_actor(struct thread *thread, const char *function)
{
    struct runner *r = runner_self(thread);
    if (UNLIKELY(!r || !r->activation))
        MISUSE(function, "",
               "the caller is not an actor that handles a message: call it in a function of the actor's class");
    return r;
}
