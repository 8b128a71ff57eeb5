/*
 * Misuse, which ends the program after the hook has run. So it is only noted, in some runs, once at most; and when the
 * run is over, a child process has the same run again, with the misuse where it stands. The hook there says by the exit
 * status whether it is the one that was meant.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AS_MEANT = 42, ANOTHER = 43, NOT_REPORTED = 44 };

static bool in_the_child;
static const char *meant; /* there, from the misuse on: the function that is misused */
static int noted;         /* which */

void on_misuse(const strand_misuse *misuse, void *arg)
{
    (void)arg;
    if (meant)
        _exit(strcmp(misuse->function, meant) == 0 ? AS_MEANT : ANOTHER);
    disagree("misuse of %s, and by the model it is none: %s", misuse->function, misuse->what);
}

/* ---- what can be misused, as choose() asks it ------------------------------------------------------------ */

static bool is_gone(struct mstrand *s, int i)
{
    return s && model.strands[i].life == GONE;
}

static bool is_foreign_child(struct mstrand *s, int i)
{
    const struct mstrand *c = &model.strands[i];
    return i && (c->life == RUNNING || c->life == ENDED) && model.scopes[c->anchor].owner != index_of(s);
}

static bool is_foreign(struct mstrand *s, int i)
{
    const struct mscope *scope = &model.scopes[i];
    return scope->life == OPEN && scope->owner != index_of(s);
}

static bool is_foreign_plain(struct mstrand *s, int i)
{
    return is_foreign(s, i) && !(model.scopes[i].flags & STRAND_OPEN);
}

static bool is_left_plain(struct mstrand *s, int i)
{
    return s && model.scopes[i].life == LEFT && !(model.scopes[i].flags & STRAND_OPEN);
}

static bool has_no_next(struct mstrand *s, int i)
{
    return is_mine(s, i) && !(model.scopes[i].flags & (STRAND_COLLECT | STRAND_FIRST_WINS));
}

static bool has_no_failures(struct mstrand *s, int i)
{
    return is_mine(s, i) && !(model.scopes[i].flags & STRAND_COLLECT);
}

static bool has_no_first(struct mstrand *s, int i)
{
    return is_mine(s, i) && !(model.scopes[i].flags & STRAND_FIRST_WINS);
}

static bool has_nobody(struct mstrand *s, int i)
{
    return is_mine(s, i) && (model.scopes[i].flags & STRAND_FIRST_WINS) && !anchored_count(i);
}

static bool is_below_a_child(struct mstrand *s, int i)
{
    const struct mscope *scope = &model.scopes[i];
    if (scope->life != OPEN || !(scope->flags & STRAND_OPEN))
        return false;
    for (int child = 1; child < NODES; child++)
        if (is_child(s, child) && is_above(&model.strands[child], scope->owner))
            return true;
    return false;
}

/* ---- misusing it ----------------------------------------------------------------------------------------- */

static void join_gone(int i)
{
    strand_join(model.strands[i].handle);
}

static void hand_off_foreign(int i)
{
    STRAND_IGNORE(strand_hand_off(model.strands[i].handle, (strand_scope){{0, 0}}));
}

static void hand_off_below(int i)
{
    int above = model.scopes[i].owner;
    struct mstrand *me = &model.strands[0];
    for (int s = 0; s < NODES; s++)
        if (strand_id(model.strands[s].handle) == strand_id(strand_self()))
            me = &model.strands[s];
    while (!is_child(me, above))
        above = model.scopes[model.strands[above].anchor].owner;
    STRAND_IGNORE(strand_hand_off(model.strands[above].handle, model.scopes[i].handle));
}

static void join_scope(int i)
{
    strand_scope_join(model.scopes[i].handle);
}

static void *nothing(void *arg)
{
    return arg;
}

static void spawn_into_it(int i)
{
    strand_spawn(model.scopes[i].handle, nothing, NULL);
}

static void cancel_it(int i)
{
    strand_scope_cancel(model.scopes[i].handle, NULL);
}

static void next_of_it(int i)
{
    strand_scope_wait_next(model.scopes[i].handle);
}

static void failure_of_it(int i)
{
    strand_exception_release(strand_scope_failure(model.scopes[i].handle, NULL));
}

static void first_of_it(int i)
{
    strand_scope_join_first(model.scopes[i].handle, NULL);
}

static void wait_for_itself(int i)
{
    (void)i;
    strand_wait(strand_self());
}

static void wait_for_nobody(int i)
{
    (void)i;
    strand_wait((strand){{0, 0}});
}

static void interrupt_by_hand(int i)
{
    (void)i;
    strand_throw(&STRAND_INTERRUPTED, "by hand");
}

static void yield_in_section(int i)
{
    (void)i;
    STRAND_NO_SUSPEND;
    strand_yield();
}

static void two_policies(int i)
{
    (void)i;
    STRAND_SCOPE_WITH(scope, STRAND_TOGETHER | STRAND_COLLECT);
}

static void rethrow_nothing(int i)
{
    (void)i;
    strand_rethrow(NULL);
}

static const struct misuse {
    const char *function;
    bool (*fits)(struct mstrand *s, int i);
    void (*misuse)(int i);
} misuses[] = {
    {"strand_join", is_gone, join_gone},
    {"strand_join", is_foreign_child, join_gone},
    {"strand_hand_off", is_foreign_child, hand_off_foreign},
    {"strand_hand_off", is_gone, hand_off_foreign},
    {"strand_hand_off", is_below_a_child, hand_off_below},
    {"strand_scope_join", is_foreign, join_scope},
    {"strand_scope_join", is_left_plain, join_scope},
    {"strand_spawn", is_foreign_plain, spawn_into_it},
    {"strand_spawn", is_left_plain, spawn_into_it},
    {"strand_scope_cancel", is_foreign_plain, cancel_it},
    {"strand_scope_cancel", is_left_plain, cancel_it},
    {"strand_scope_wait_next", has_no_next, next_of_it},
    {"strand_scope_failure", has_no_failures, failure_of_it},
    {"strand_scope_join_first", has_no_first, first_of_it},
    {"strand_scope_join_first", has_nobody, first_of_it},
    {"strand_wait", NULL, wait_for_itself},
    {"strand_wait", NULL, wait_for_nobody},
    {"strand_throw", NULL, interrupt_by_hand},
    {"strand_yield", NULL, yield_in_section},
    {"STRAND_SCOPE_WITH", NULL, two_policies},
    {"strand_rethrow", NULL, rethrow_nothing},
};

static void *misuse_it(void *arg)
{
    const int *which = arg;
    misuses[which[0]].misuse(which[1]);
    return NULL;
}

static void do_it(int which, int target)
{
    meant = misuses[which].function;
    strand_exception_release(strand_try(misuse_it, (int[]){which, target}, NULL));
    _exit(NOT_REPORTED);
}

void run_misuse(struct mstrand *s, const struct node *node)
{
    enum { ONE_IN = 4 }; /* a child process takes longer than all the rest of a run */
    int which = node->a % (int)(sizeof misuses / sizeof *misuses), target = 0;
    if (misuses[which].fits && (target = choose(s, node->a / 8, misuses[which].fits)) == NO_ONE)
        return;
    if (model.misused || program.seed % ONE_IN)
        return;
    if (in_the_child)
        do_it(which, target);
    model.misused = true;
    noted = which;
}

void misuse_in_a_child(void (*run_again)(void))
{
    int status;
    if (!model.misused)
        return;
    pid_t child = fork();
    if (child == 0) {
        in_the_child = true;
        run_again();
        _exit(NOT_REPORTED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return; /* the system is short of something */
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == AS_MEANT, "misuse %d, of %s: status %#x", noted,
         misuses[noted].function, (unsigned)status);
}
