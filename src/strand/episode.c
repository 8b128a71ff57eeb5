/*
 * The lists of episodes. The protocol block is in episode.h.
 */
#include "core.h"

COLD void episode_begins_(struct cb *me, struct episodes *episodes, struct episode *episode)
{
    struct thread *thread = thread_self();
    episode->c = me;
    episode->watchdog_ref = NULL;
    episode->left_out = false;
    episode->since = platform_now(thread->sub);
    spin_lock(&episodes->lock, thread);
    list_push_back(&episodes->all, &episode->link);
    spin_unlock(&episodes->lock);
}

COLD void episode_ends_(struct episodes *episodes, struct episode *episode)
{
    struct thread *thread = thread_self();
    spin_lock(&episodes->lock, thread);
    if (episode->link.next)
        list_remove(&episode->link);
    if (episode->watchdog_ref)
        *episode->watchdog_ref = NULL;
    spin_unlock(&episodes->lock);
}
