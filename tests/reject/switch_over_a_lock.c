/* expect: switch jumps into scope|cannot jump from switch */
#include "strand/sync.h"

void work(int what, strand_mutex *mutex);

void work(int what, strand_mutex *mutex)
{
    switch (what) {
    case 0:;
        STRAND_LOCKED(mutex);
        break;
    default:
        break;
    }
}
