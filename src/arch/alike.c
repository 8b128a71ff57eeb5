/*
 * Traces of very many suspended contexts, most of which have the same frames as others: a walk by libunwind costs a
 * microsecond a frame, comparing two stacks a few words. Walking itself is in trace.c.
 */
#include "trace.h"

#include <string.h>

/* The end of a frame is found from the return address and, in some functions, from RBP. So two stacks have the same
 * frames if, at the same distances from their contexts, they have the same return addresses, and the same values of RBP
 * where those are stored, as far as these point into the stack. */
enum { LINKS_MOST = 56, PATTERN_IPS = 48, PATTERNS = 64, FRAME_RBP = 0x30, FRAME_RIP = 0x38 };

struct link_word {
    void *ip;
    uint32_t at, rbp_at; /* distances; rbp_at: 0 if nothing was stored there */
    uint64_t rbp;        /* distance + 1; 0: it does not point into the stack */
};

struct pattern {
    void *ip; /* NULL: unused */
    uint64_t rbp;
    uint32_t links, count;
    struct link_word link[LINKS_MOST];
    void *ips[PATTERN_IPS];
};

struct arch_patterns {
    struct pattern *order[PATTERNS]; /* most recently used first */
    struct pattern all[PATTERNS];
    uint32_t used;
};

size_t arch_patterns_size(void)
{
    return sizeof(struct arch_patterns);
}

static uint64_t word_at(const struct remains *remains, uint64_t distance)
{
    unw_word_t word = 0;
    (void)trace_memory(NULL, remains->frame + distance, &word, 0, (void *)(uintptr_t)remains);
    return word;
}

static uint64_t in_stack(const struct remains *remains, uintptr_t top, uint64_t address)
{
    return address >= remains->frame && address < top ? address - remains->frame + 1 : 0;
}

static bool matches(const struct pattern *pattern, const struct remains *remains, uintptr_t top)
{
    uintptr_t size = top - remains->frame;
    if (word_at(remains, FRAME_RIP) != (uintptr_t)pattern->ip ||
        in_stack(remains, top, word_at(remains, FRAME_RBP)) != pattern->rbp)
        return false;
    for (uint32_t i = 0; i < pattern->links; i++) {
        const struct link_word *link = &pattern->link[i];
        if (link->at > size - sizeof(void *) || word_at(remains, link->at) != (uintptr_t)link->ip)
            return false;
        if (link->rbp_at && in_stack(remains, top, word_at(remains, link->rbp_at)) != link->rbp)
            return false;
    }
    return true;
}

/* The cursor has just stepped to a frame. Returns false if the frame can't be described. */
static bool describe(const struct arch_tracer *tracer, unw_cursor_t *cursor, const struct remains *remains,
                     uintptr_t top, void *ip, struct link_word *link)
{
    unw_word_t sp;
    unw_save_loc_t saved;
    if (tracer->remote.reg(cursor, UNW_REG_SP, &sp) != 0 || !in_stack(remains, top, sp - sizeof(void *)) ||
        word_at(remains, sp - sizeof(void *) - remains->frame) != (uintptr_t)ip ||
        tracer->remote.saved(cursor, UNW_X86_64_RBP, &saved) != 0)
        return false;
    *link = (struct link_word){.ip = ip, .at = (uint32_t)(sp - sizeof(void *) - remains->frame)};
    if (saved.type == UNW_SLT_MEMORY && in_stack(remains, top, saved.u.addr)) {
        link->rbp_at = (uint32_t)(saved.u.addr - remains->frame);
        link->rbp = in_stack(remains, top, word_at(remains, link->rbp_at));
    }
    return true;
}

/* Walk frame by frame, and record the pattern. */
static void learn(const struct arch_tracer *tracer, const struct remains *remains, uintptr_t top,
                  struct pattern *pattern)
{
    struct taken taken = {.ips = pattern->ips, .max = PATTERN_IPS};
    void *first = (void *)(uintptr_t)word_at(remains, FRAME_RIP);
    bool known = true;
    unw_cursor_t cursor;
    unw_word_t ip;
    pattern->links = 0;
    pattern->rbp = in_stack(remains, top, word_at(remains, FRAME_RBP));
    trace_take(&taken, first);
    if (tracer && tracer->remote.init(&cursor, tracer->remote.space, (void *)(uintptr_t)remains) >= 0)
        while (pattern->links < LINKS_MOST && tracer->remote.step(&cursor) > 0 &&
               tracer->remote.reg(&cursor, UNW_REG_IP, &ip) == 0 && trace_take(&taken, (void *)ip))
            if (known && (known = describe(tracer, &cursor, remains, top, (void *)ip, &pattern->link[pattern->links])))
                pattern->links++;
    pattern->count = (uint32_t)trace_without_entry(pattern->ips, taken.count);
    pattern->ip = known ? first : NULL;
}

/* The least recently used pattern makes room. */
static struct pattern *to_front(struct arch_patterns *patterns, uint32_t at)
{
    struct pattern *pattern = patterns->order[at];
    memmove(&patterns->order[1], &patterns->order[0], at * sizeof *patterns->order);
    patterns->order[0] = pattern;
    return pattern;
}

size_t arch_trace_alike(struct arch_patterns *patterns, arch_context context, const void *saved, size_t saved_size,
                        const char *top, void **ips, size_t max)
{
    struct remains remains = {
        .frame = (uintptr_t)context, .saved = saved, .saved_base = (uintptr_t)context, .saved_size = saved_size};
    struct pattern *pattern = NULL;
    for (uint32_t i = 0; i < patterns->used && !pattern; i++)
        if (matches(patterns->order[i], &remains, (uintptr_t)top))
            pattern = to_front(patterns, i);
    if (!pattern) {
        if (patterns->used < PATTERNS) {
            patterns->order[patterns->used] = &patterns->all[patterns->used];
            patterns->used++;
        }
        pattern = to_front(patterns, patterns->used - 1);
        learn(arch_state.tracer, &remains, (uintptr_t)top, pattern);
    }
    size_t count = pattern->count < max ? pattern->count : max;
    memcpy(ips, pattern->ips, count * sizeof *ips);
    return count;
}
