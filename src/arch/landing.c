/*
 * Predicts where an exception would land, before anything is unwound: whether a C++ function on the stack ends the
 * program instead of letting it through (noexcept). The unwinder shows the frames; for each frame this reads the table
 * that the function's personality would read (the LSDA of the Itanium C++ ABI, as gcc and clang write it). Anything
 * unknown counts as letting it through.
 *
 * g++ leaves a call that must not throw out of its function's table, unless objects are destroyed or types are caught
 * on the way. clang++ gives it a handler for everything. What a landing pad does then, its instructions tell (pad.c).
 */
#include "landing.h"

#include "eh.h"
#include "state.h"

#include <string.h>
#include <unwind.h>

/* ---- the language of a frame -------------------------------------------------------------------------------- */

/* The personality in the function's description: in the augmentation of its CIE. The second word of its FDE is the
 * distance to the CIE. */
static void *personality_of(uintptr_t ip)
{
    struct dwarf_eh_bases bases;
    const uint8_t *fde = _Unwind_Find_FDE ? _Unwind_Find_FDE((void *)ip, &bases) : NULL; /* NOLINT: as above */
    int32_t distance;
    if (!fde)
        return NULL;
    memcpy(&distance, fde + 4, sizeof distance);
    const uint8_t *cie = fde + 4 - distance;
    const char *augmentation = (const char *)cie + 9;
    const uint8_t *at = cie + 9 + strlen(augmentation) + 1;
    if (*augmentation != 'z' || cie[8] != 1)
        return NULL;
    (void)arch_eh_uleb128(&at); /* factors of code and data, the return address's register, the augmentation's size */
    (void)arch_eh_sleb128(&at);
    at++;
    (void)arch_eh_uleb128(&at);
    while (*++augmentation == 'L' || *augmentation == 'R')
        at++;
    uintptr_t personality = 0;
    uint8_t encoding = *at++;
    return *augmentation == 'P' && arch_eh_address(encoding, &at, &personality) ? (void *)personality : NULL;
}

bool arch_frame_is_c_(struct _Unwind_Context *context)
{
    return personality_of(_Unwind_GetIP(context) - 1) == __gcc_personality_v0;
}

static bool is_cxx(struct _Unwind_Context *context)
{
    const void *cxx = arch_state.cxx.personality;
    return cxx && personality_of(_Unwind_GetIP(context) - 1) == cxx;
}

/* ---- what a frame does with the exception ------------------------------------------------------------------- */

enum landing { LETS_THROUGH, CATCHES, ENDS_THE_PROGRAM };

static bool is_pad(const void *of, const uint8_t *code)
{
    const struct arch_eh_table *table = of;
    for (const uint8_t *at = table->calls; at < table->actions;)
        if (arch_eh_site_read(table, &at).pad == code)
            return true;
    return false;
}

/* Which exceptions a list of actions stops at its landing pad: those of no type, or of some. */
enum stops { STOPS_NONE, STOPS_TO_CLEAN_UP, STOPS_TO_CATCH, STOPS_TO_END };

/* A list ends by a clean-up where one has to be done for an exception of another type, or the program ends then. */
static enum stops stops_of(const struct arch_eh_table *table, uint64_t first)
{
    static const uint8_t everything[8];
    const uint8_t *action = table->actions + first - 1;
    size_t size = arch_eh_size(table->type_encoding);
    for (;;) {
        int64_t filter = arch_eh_sleb128(&action);
        const uint8_t *next = action;
        int64_t distance = arch_eh_sleb128(&next);
        if (!filter)
            return STOPS_TO_CLEAN_UP;
        if (!table->types)
            return STOPS_NONE;
        if (filter < 0 && !table->types[-filter - 1]) /* an empty list of types that may be thrown */
            return STOPS_TO_END;
        if (filter > 0 && size && memcmp(table->types - (size_t)filter * size, everything, size) == 0)
            return STOPS_TO_CATCH;
        if (!distance)
            return STOPS_NONE;
        action += distance;
    }
}

static enum landing landing_at(const struct arch_eh_table *table, const struct arch_eh_site *site,
                               const struct arch_catcher *catcher, uintptr_t frame)
{
    if (!site->pad)
        return LETS_THROUGH;
    enum stops stops = site->action ? stops_of(table, site->action) : STOPS_TO_CLEAN_UP;
    if (stops == STOPS_NONE)
        return LETS_THROUGH;
    unsigned ends = PAD_TERMINATES;
    if (stops != STOPS_TO_END)
        ends = arch_pad_ends(site->pad, catcher, catcher->count_passed(catcher, frame), is_pad, table);
    if (ends & PAD_TERMINATES && !(ends & (PAD_RESUMES | PAD_UNKNOWN)))
        return ENDS_THE_PROGRAM;
    /* g++ -O0 lists the clean-ups before what catches: then all paths lead to the handler. */
    return stops == STOPS_TO_CATCH || ends == PAD_CATCHES ? CATCHES : LETS_THROUGH;
}

/* What the C++ personality would do in the frame. */
static enum landing landing_in(struct _Unwind_Context *context, const struct arch_catcher *catcher)
{
    const uint8_t *lsda = _Unwind_GetLanguageSpecificData(context);
    uintptr_t function = _Unwind_GetRegionStart(context), ip = _Unwind_GetIP(context) - 1 - function;
    struct arch_eh_table table;
    struct arch_eh_site site;
    if (!lsda || !is_cxx(context) || !arch_eh_table_read(lsda, function, &table))
        return LETS_THROUGH;
    return arch_eh_site_find(&table, ip, &site) ? landing_at(&table, &site, catcher, _Unwind_GetCFA(context))
                                                : ENDS_THE_PROGRAM;
}

struct walk {
    uintptr_t limit;
    const struct arch_catcher *catcher;
    void *ends_at;
};

/* The frame that contains the limit is examined too: a noexcept function may be inlined there, inside its try block. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *walk = arg;
    enum landing landing = _Unwind_GetCFA(context) > walk->limit ? CATCHES : landing_in(context, walk->catcher);
    if (landing == ENDS_THE_PROGRAM)
        walk->ends_at = (void *)_Unwind_GetIP(context); /* NOLINT: an address of code */
    return landing == LETS_THROUGH ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

NOINLINE void *arch_unwind_ends_at(const void *limit, const struct arch_catcher *catcher)
{
    struct walk walk = {(uintptr_t)limit, catcher, NULL};
    (void)_Unwind_Backtrace(step, &walk);
    return walk.ends_at;
}
