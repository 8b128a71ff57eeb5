/*
 * Guard pages of stacks: required ones, ones that are mappings, and none.
 */
#include "fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 150 }; /* more stacks than the first region has room for */

static void *child(void *arg)
{
    strand_yield();
    return arg;
}

static void *root(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < CHILDREN; i++)
        strand_spawn(scope, child, NULL);
    strand_scope_join(scope);
    return FAULT_DONE;
}

enum { FEW = 10, STACK = 64 * 1024 };

static void *few(void *arg)
{
    (void)arg;
    STRAND_SCOPE(scope);
    for (int i = 0; i < FEW; i++)
        strand_spawn(scope, child, NULL);
    strand_scope_join(scope);
    return FAULT_DONE;
}

/* Whether the mapping around an address begins less than a stack below, where one ends that can't be written to. */
static bool is_guarded(uintptr_t at)
{
    char text[32 * 1024], rights[8];
    uintptr_t guard = 0, from, to;
    FILE *maps = fopen("/proc/self/maps", "re");
    FAULT_CHECK(maps != NULL);
    setvbuf(maps, NULL, _IONBF, 0);
    size_t length = fread(text, 1, sizeof text - 1, maps);
    text[length] = '\0';
    fclose(maps);
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, rights) != 3)
            break;
        if (from <= at && at < to)
            return from == guard && at - from < STACK;
        guard = rights[1] == 'w' ? 0 : to;
    }
    return false;
}

static void *guarded_child(void *arg)
{
    char here = 0;
    strand_yield();
    FAULT_CHECK(is_guarded((uintptr_t)&here));
    return arg;
}

static void *few_guarded(void *arg)
{
    STRAND_SCOPE(scope);
    for (int i = 0; i < FEW; i++)
        strand_spawn(scope, guarded_child, NULL);
    strand_scope_join(scope);
    guarded_child(arg);
    return FAULT_DONE;
}

FAULT_WORKLOAD(guards, RUN_ALONE, root, .options.stack_size = 16 * 1024, .options.guards = STRAND_GUARDS_REQUIRED)
FAULT_WORKLOAD(mappings, RUN_SEEDED | RUN_PAIR, few, .variable = "STRAND_GUARDS", .value = "mprotect")
FAULT_WORKLOAD(required, RUN_ALONE, few_guarded, .options.stack_size = STACK, .options.guards = STRAND_GUARDS_REQUIRED,
               .variable = "STRAND_GUARDS", .value = "mprotect")
