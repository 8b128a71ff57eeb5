/*
 * Options of a seeded run: from STRAND_SEED and STRAND_SIM in the environment, which take precedence, and from
 * strand_options.
 */
#include "../strand/sized.h"
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The notation of seeds: a number, in a build with STEPS=1 after an s. */
#define STEPS_SIGN 's'

static const struct {
    const char *name;
    size_t at;
    size_t size;
    uint64_t most;
} fields[] = {
    {"depth", offsetof(struct strand_sim, depth), sizeof(uint32_t), UINT32_MAX},
    {"length", offsetof(struct strand_sim, length), sizeof(uint32_t), UINT32_MAX},
    {"coarse", offsetof(struct strand_sim, coarse), sizeof(bool), 1},
    {"max_steps", offsetof(struct strand_sim, max_steps), sizeof(uint64_t), UINT64_MAX},
    {"memory", offsetof(struct strand_sim, memory), sizeof(uint32_t), UINT32_MAX},
    {"resets", offsetof(struct strand_sim, resets), sizeof(uint32_t), UINT32_MAX},
    {"silence", offsetof(struct strand_sim, silence), sizeof(uint32_t), UINT32_MAX},
    {"losses", offsetof(struct strand_sim, losses), sizeof(uint32_t), UINT32_MAX},
    {"repeats", offsetof(struct strand_sim, repeats), sizeof(uint32_t), UINT32_MAX},
    {"delays", offsetof(struct strand_sim, delays), sizeof(uint32_t), UINT32_MAX},
    {"real", offsetof(struct strand_sim, real), sizeof(bool), 1},
    {"shared_stacks", offsetof(struct strand_sim, shared_stacks), sizeof(bool), 1},
};
enum { FIELDS = sizeof fields / sizeof *fields };
#define ENDS " ," /* end a word */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 16;
}

/* Parse a number: decimal, or hexadecimal after 0x, up to one of `ends`, or the end. */
static bool number(const char *text, const char *ends, uint64_t *out, const char **end)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    int base = hexadecimal ? 16 : 10;
    const char *at = text + 2 * hexadecimal, *first = at;
    uint64_t value = 0;
    for (; digit(*at) < base; at++)
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit(*at), &value))
            return false;
    *out = value;
    *end = at;
    return at > first && (!*at || strchr(ends, *at));
}

/* Parse a value: a number, or the word for STRAND_SIM_WALK. */
static bool value_of(const char *text, bool is_depth, uint64_t *out, const char **end)
{
    static const char walk[] = "walk";
    size_t length = sizeof walk - 1;
    if (!is_depth || strncmp(text, walk, length) != 0 || (text[length] && !strchr(ENDS, text[length])))
        return number(text, ENDS, out, end);
    *out = STRAND_SIM_WALK;
    *end = text + length;
    return true;
}

/* Parse one "name=value". */
static bool take_word(struct strand_sim *options, const char *word, const char **end)
{
    for (int i = 0; i < FIELDS; i++) {
        size_t length = strlen(fields[i].name);
        uint64_t value;
        if (strncmp(word, fields[i].name, length) != 0 || word[length] != '=')
            continue;
        bool is_depth = fields[i].at == offsetof(struct strand_sim, depth);
        if (!value_of(word + length + 1, is_depth, &value, end) || value > fields[i].most)
            return false;
        memcpy((char *)options + fields[i].at, &value, fields[i].size); /* little-endian */
        return true;
    }
    return false;
}

static int take_words(struct strand_sim *options, const char *words, char *text, size_t room)
{
    while (*words) {
        const char *end = words;
        if (*words == ' ' || *words == ',') {
            words++;
        } else if (take_word(options, words, &end)) {
            words = end;
        } else {
            snprintf(text, room, "STRAND_SIM in the environment has '%.40s', which is not one of its options", words);
            return -EINVAL;
        }
    }
    return 0;
}

/* Returns 1, or a negated errno code. */
static int take_seed(struct sim *sim, const char *seed, char *text, size_t room)
{
    const char *digits = *seed == STEPS_SIGN ? seed + 1 : seed, *end;
    if (!number(digits, "", &sim->seed, &end)) {
        snprintf(text, room, "STRAND_SEED in the environment is '%.40s', which is not a number", seed);
        return -EINVAL;
    }
    sim->atomic_steps = digits != seed;
    if (sim->atomic_steps && !SIM_HAS_ATOMIC_STEPS) {
        snprintf(text, room,
                 "STRAND_SEED in the environment is '%.40s', a seed of a build with STEPS=1, which this is not", seed);
        return -EINVAL;
    }
    return 1;
}

bool options_copy(struct strand_sim *out, const struct strand_sim *options)
{
    if (!options)
        return true;
    if (!size_is_plausible(options->size, offsetof(struct strand_sim, length)))
        return false;
    sized_take(out, sizeof *out, options, options->size);
    return true;
}

/* The depth for order.c, where 0 is a walk. */
static uint32_t depth_of(uint32_t asked, uint64_t seed)
{
    enum { ONE_IN = 4, DEEPEST = 5 };
    if (!asked)
        return seed % ONE_IN ? 0 : 1 + (uint32_t)(seed / ONE_IN % DEEPEST);
    return asked == STRAND_SIM_WALK ? 0 : asked;
}

int options_take(struct sim *sim, const struct sim_request *asked, char *text, size_t room)
{
    const char *seed = arch_env("STRAND_SEED"), *words = arch_env("STRAND_SIM");
    bool by_environment = seed && *seed;
    if (!by_environment && !asked->has_seed)
        return 0;
    sim->seed = asked->seed;
    sim->atomic_steps = SIM_HAS_ATOMIC_STEPS;
    if (!options_copy(&sim->options, asked->sim)) {
        snprintf(text, room, "strand_sim.size is %zu, not sizeof(strand_sim)", asked->sim->size);
        return -EINVAL;
    }
    const strand_sim_report *report = sim->options.report;
    if (report && !size_is_plausible(report->size, sizeof report->size)) {
        snprintf(text, room, "strand_sim_report.size is %zu, not sizeof(strand_sim_report)", report->size);
        return -EINVAL;
    }
    int error = words ? take_words(&sim->options, words, text, room) : 0;
    if (!error && sim->options.depth > DEPTH_MOST && sim->options.depth != STRAND_SIM_WALK) {
        snprintf(text, room, "strand_sim.depth is %u, not 0 to %d, nor STRAND_SIM_WALK", sim->options.depth,
                 DEPTH_MOST);
        error = -EINVAL;
    }
    if (!error && by_environment)
        error = take_seed(sim, seed, text, room);
    sim->options.depth = depth_of(sim->options.depth, sim->seed);
    return error < 0 ? error : 1;
}

int options_check(const struct sim_request *asked, char *text, size_t room)
{
    struct sim sim = {0};
    int result = options_take(&sim, asked, text, room);
    return result < 0 ? result : 0;
}
