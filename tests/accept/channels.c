/*
 * Channels and selects: cases that are made before the values that they send.
 */
#include "strand/chan.h"
#include "strand/port.h"

struct line {
    char text[40];
};
typedef STRAND_CHAN(int) numbers;
typedef STRAND_CHAN(struct line) lines;

int next(void);
void send_selected(numbers to);
void *root(void *arg);

void send_selected(numbers to)
{
    int value;
    strand_case one = STRAND_ON_SEND(to, &value); /* used again and again */
    for (;;) {
        value = next();
        if (strand_select(&one, 1, 0) < 0)
            return;
    }
}

static int either(numbers from, lines other)
{
    int value;
    struct line line;
    strand_case cases[] = {STRAND_ON_RECEIVE(from, &value), STRAND_ON_RECEIVE(other, &line),
                           strand_on_time(strand_in(1))};
    switch (strand_select(cases, 3, STRAND_SELECT_ORDERED)) {
    case 0:
        return value;
    case 1:
        return line.text[0];
    default:
        return -1;
    }
}

void *root(void *arg)
{
    STRAND_SCOPE(scope);
    numbers from = STRAND_CHAN_OPEN(numbers, scope, 1);
    lines other = STRAND_CHAN_OPEN_WITH(lines, scope, 0, STRAND_CHAN_ATTR(.name = "lines"));
    const int seven = 7;
    struct line line;
    if (STRAND_SEND(from, &seven) < 0 || STRAND_TRY_RECEIVE(other, &line) != -1)
        return NULL;
    STRAND_IGNORE(STRAND_TRY_SEND(from, &seven));
    if (STRAND_POST(from, &seven) == 0 && STRAND_RECEIVE(from, &(int){0}) == 0)
        send_selected(from);
    STRAND_CHAN_CLOSE(from);
    return either(from, other) > 0 ? arg : NULL;
}
