/*
 * Curves, and what their letters come to.
 */
#include "turtle.h"

#include <ctype.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

enum { MARGIN = 8 };

const struct curve curves[] = {
    {"hilbert",
     "Hilbert's: through every point of a square",
     "A",
     {{'A', "+BF-AFA-FB+"}, {'B', "-AF+BFB+FA-"}},
     4,
     0,
     7,
     12},
    {"dragon",
     "the dragon of a strip of paper, folded again and again",
     "F",
     {{'F', "F+G"}, {'G', "F-G"}},
     4,
     0,
     14,
     24},
    {"levy", "Levy's C", "F", {{'F', "+F--F+"}}, 8, 0, 13, 24},
    {"koch", "Koch's snowflake", "F--F--F", {{'F', "F+F--F+F"}}, 6, 0, 5, 12},
    {"sierpinski", "Sierpinski's triangle, in one line", "F", {{'F', "G-F-G"}, {'G', "F+G+F"}}, 6, 0, 8, 15},
    {"gosper", "Gosper's", "F", {{'F', "F-G--G+F++FF+G-"}, {'G', "+F-GG--G-F++F+G"}}, 6, 0, 5, 9},
    {"plant", "a plant", "X", {{'X', "F+[[X]-X]-F[-FX]+X"}, {'F', "FF"}}, 16, 3, 6, 10},
    {0},
};

static int turned(const struct curve *curve, int heading, int turns)
{
    return (heading + turns + curve->headings) % curve->headings;
}

char reader_letter(struct reader *reader, const struct curve *curve)
{
    struct place *here = &reader->here;
    for (;; reader->at++) {
        switch (*reader->at) {
        case '+':
            here->heading = turned(curve, here->heading, 1);
            break;
        case '-':
            here->heading = turned(curve, here->heading, -1);
            break;
        case '[':
            reader->kept[reader->brackets++] = *here;
            break;
        case ']':
            *here = reader->kept[--reader->brackets];
            break;
        case 0:
            return 0;
        default:
            return *reader->at++;
        }
    }
}

struct place place_after(struct place here, const struct motion *motion)
{
    return (struct place){here.x + motion->end.x, here.y + motion->end.y, motion->end.heading};
}

const char *plan_rule(const struct plan *plan, char letter, int depth)
{
    for (const struct rule *rule = plan->curve->rules; depth > 0 && rule->letter; rule++)
        if (rule->letter == letter)
            return rule->word;
    return NULL;
}

const struct motion *plan_motion(const struct plan *plan, char letter, int depth, int heading)
{
    return &plan->motions[depth][letter - 'A'][heading];
}

/* The computed sine of quarter turns is not exactly 0, and their steps must be whole numbers. */
static double whole_if_nearly(double value)
{
    return fabs(value - round(value)) < 1e-9 ? round(value) : value;
}

static struct motion step_forward(const struct curve *curve, int heading)
{
    double angle = 2 * pi * heading / curve->headings;
    double x = whole_if_nearly(cos(angle)), y = whole_if_nearly(sin(angle));
    return (struct motion){1, {x, y, heading}, fmin(x, 0), fmax(x, 0), fmin(y, 0), fmax(y, 0)};
}

static void widen(struct motion *sum, struct place here, const struct motion *part)
{
    sum->steps += part->steps;
    sum->left = fmin(sum->left, here.x + part->left);
    sum->right = fmax(sum->right, here.x + part->right);
    sum->low = fmin(sum->low, here.y + part->low);
    sum->high = fmax(sum->high, here.y + part->high);
}

/* What a word comes to, of which each letter comes to what it does at this depth. */
static struct motion sum_of(const struct plan *plan, const char *word, int depth, int heading)
{
    struct motion sum = {0};
    struct reader reader = {.at = word, .here = {0, 0, heading}};
    for (char letter; (letter = reader_letter(&reader, plan->curve));) {
        const struct motion *part = plan_motion(plan, letter, depth, reader.here.heading);
        widen(&sum, reader.here, part);
        reader.here = place_after(reader.here, part);
    }
    sum.end = reader.here;
    return sum;
}

static struct motion motion_of(const struct plan *plan, char letter, int depth, int heading)
{
    const char *word = plan_rule(plan, letter, depth);
    if (word)
        return sum_of(plan, word, depth - 1, heading);
    if (letter == 'F' || letter == 'G')
        return step_forward(plan->curve, heading);
    return (struct motion){.end.heading = heading};
}

/* In the middle of the window. Where all steps go along a grid, they get a whole number of pixels. */
static void find_place(struct plan *plan, int size)
{
    const struct motion *whole = &plan->whole;
    double extent = fmax(whole->right - whole->left, whole->high - whole->low);
    plan->scale = extent > 0 ? (size - 1 - 2 * MARGIN) / extent : 1;
    if (plan->curve->headings == 4 && plan->scale > 1)
        plan->scale = floor(plan->scale);
    plan->x = floor((size - 1 - plan->scale * (whole->left + whole->right)) / 2);
    plan->y = floor((size - 1 + plan->scale * (whole->low + whole->high)) / 2);
}

void plan_make(struct plan *plan, const struct curve *curve, int depth, int size)
{
    plan->curve = curve;
    plan->depth = depth;
    for (int d = 0; d <= depth; d++)
        for (char letter = 'A'; letter <= 'Z'; letter++)
            for (int heading = 0; heading < curve->headings; heading++)
                plan->motions[d][letter - 'A'][heading] = motion_of(plan, letter, d, heading);
    plan->whole = sum_of(plan, curve->start, depth, curve->heading);
    find_place(plan, size);
}
