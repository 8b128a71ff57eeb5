/*
 * What is known of the machine-repair problem. With n of N machines down, another breaks down at the rate N - n, and
 * one is mended at the rate min(n, c) / REPAIR_MEAN, so the chances of n + 1 and of n are in the proportion of these
 * rates: that is the distribution, without any approximation.
 *
 * What is measured strays from its mean. Mechanics are so few that all of them are busy all the time: so repairs, and
 * parts too, are finished as the clicks of a Geiger counter, whose number has a variance of its mean. The number of
 * down machines then falls back to its mean at the rate 1, with the variance of its distribution; the variance of its
 * average over a time, from a start at the mean, is that of the process of Ornstein and Uhlenbeck. (Known to be so: L.
 * Takacs, Introduction to the Theory of Queues, 1962, on the distribution; any text on that process, on its average.)
 */
#include "crowd.h"

#include <math.h>

struct moments {
    double weight, mean, variance;
};

/* The distribution of those that are down, from the rates. Weights are relative to that of the likeliest number, from
 * which they fall off on both sides to nothing. */
static struct moments down_moments(long agents, long mechanics)
{
    double busy = (double)mechanics / REPAIR_MEAN;
    long likeliest = agents - (long)busy;
    struct moments sums = {1, 0, 0};
    for (int side = -1; side <= 1; side += 2) {
        double weight = 1;
        for (long n = likeliest; (side < 0 ? n > 0 : n < agents) && weight > 1e-300; n += side) {
            long lower = side < 0 ? n - 1 : n; /* of the two numbers */
            double mended = (double)(lower + 1 < mechanics ? lower + 1 : mechanics) / REPAIR_MEAN;
            double ratio = (double)(agents - lower) / mended, distance = (double)(n + side - likeliest);
            weight *= side < 0 ? 1 / ratio : ratio;
            sums.weight += weight;
            sums.mean += weight * distance;
            sums.variance += weight * distance * distance;
        }
    }
    double offset = sums.mean / sums.weight;
    return (struct moments){1, (double)likeliest + offset, sums.variance / sums.weight - offset * offset};
}

static struct known counted(double mean)
{
    return (struct known){mean, sqrt(mean)};
}

struct forecast forecast(long agents, double time)
{
    long mechanics = (long)((double)agents * MECHANICS_PER_AGENT);
    struct moments down = down_moments(agents, mechanics);
    double share = (2 * time - 3 + 4 * exp(-time) - exp(-2 * time)) / (time * time);
    return (struct forecast){
        .down = {down.mean, sqrt(down.variance * share)},
        .repairs = counted((double)mechanics / REPAIR_MEAN * time),
        .parts = counted((double)mechanics / PART_MEAN * time),
    };
}
