/*
 * What all contexts of a process share: one lock. Contexts belong to no run, and any thread may link them.
 */
#include "tls.h"

/* It needs no memory: a process that has had none at its first context could make no context later. */
static pthread_rwlock_t links = PTHREAD_RWLOCK_INITIALIZER; /* by the header of OpenSSL */

pthread_rwlock_t *tls_links_lock(void)
{
    return &links;
}
