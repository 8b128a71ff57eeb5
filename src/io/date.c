/*
 * Dates: a case of a select that stands with a descriptor of its own, which becomes readable when the date has come or
 * the clock was set (a timerfd of the system). It has the descriptor from standing until leaving; object[0] has the
 * date, and object[1] the number of the descriptor, plus 1.
 */
#include "../../include/strand/date.h"

#include "select_io.h"

#include "../strand/interrupt.h"
#include "../strand/misuse.h"

#include <errno.h>

strand_date strand_date_now(void)
{
    return (strand_date){fd_date_now(thread_self())};
}

static int64_t date_of(const strand_case *c)
{
    return (int64_t)c->object[0];
}

static struct target target_of(const strand_case *c)
{
    return select_io_target((int)c->object[1] - 1, STRAND_READABLE);
}

static void close_clock(struct thread *thread, strand_case *c)
{
    (void)descriptor_close(thread, target_of(c).fd, false);
    c->object[1] = 0;
}

/* The descriptor is ready. Returns 1 with the case's result, or 0: it was not, after all. */
static int settle(struct thread *thread, strand_case *c)
{
    uint64_t times;
    int64_t got = fd_read(thread, target_of(c).fd, ARCH_FD_OTHER, &times, sizeof times);
    bool late = fd_date_now(thread) >= date_of(c);
    c->result = got >= 0 || late ? 0 : (int)got;
    return late || got != -EAGAIN;
}

static enum answer date_stand(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node)
{
    if (fd_date_now(thread) >= date_of(c))
        return select_io_answer(thread, me, c, node, 1);
    if (!node)
        return SOURCE_NOT;
    int fd = fd_date(thread, date_of(c));
    if (fd < 0)
        return select_io_answer(thread, me, c, node, fd);
    descriptor_made(fd);
    c->object[1] = (uint64_t)fd + 1;
    int result = select_io_stand(thread, c, node, target_of(c));
    if (!result)
        return SOURCE_NOT;
    if (result > 0 && settle(thread, c))
        result = c->result ? c->result : 1;
    close_clock(thread, c);
    return select_io_answer(thread, me, c, node, result);
}

static enum answer date_over(struct thread *thread, struct cb *me, strand_case *c, struct wait_node *node, bool won)
{
    (void)me;
    if (!select_io_standing(c))
        return SOURCE_DONE;
    int result = select_io_leave(thread, c, node, target_of(c), won);
    c->result = result < 0 ? result : 0;
    bool again = won && result >= 0 && (!result || !settle(thread, c));
    close_clock(thread, c);
    return again ? SOURCE_AGAIN : SOURCE_DONE;
}

static const struct strand_source_ source_date = {.stand = date_stand,
                                                  .over = date_over,
                                                  .next_probe = select_io_next_probe,
                                                  .outside = true,
                                                  .blocked = BLOCKED_DATE};

strand_case strand_on_date(strand_date when)
{
    return (strand_case){.source = &source_date, .object = {(uint64_t)when.ns, 0}};
}

int strand_wait_date(strand_date when)
{
    struct thread *thread = must_be_strand("strand_wait_date");
    may_block(thread, current_of(thread), "strand_wait_date");
    strand_case c = strand_on_date(when);
    (void)strand_select(&c, 1, 0);
    return c.result;
}
