/*
 * A bounded queue of numbers between threads: a mutex and two condition variables, as a C program has it.
 */
#ifndef PEER_QUEUE_H
#define PEER_QUEUE_H

#include "../../bench.h"

#include <pthread.h>

enum { QUEUE_MOST = 128 };

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    unsigned first, count, room;
    bool closed;
    uint64_t items[QUEUE_MOST];
};

BENCH_API void queue_open(struct queue *queue, unsigned room)
{
    *queue = (struct queue){.mutex = PTHREAD_MUTEX_INITIALIZER,
                            .filled = PTHREAD_COND_INITIALIZER,
                            .emptied = PTHREAD_COND_INITIALIZER,
                            .room = room};
}

BENCH_API void queue_send(struct queue *queue, uint64_t item)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == queue->room)
        pthread_cond_wait(&queue->emptied, &queue->mutex);
    queue->items[(queue->first + queue->count++) % queue->room] = item;
    if (queue->count == 1)
        pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* False: the queue is closed and empty. */
BENCH_API bool queue_receive(struct queue *queue, uint64_t *item)
{
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->filled, &queue->mutex);
    bool any = queue->count > 0;
    if (any) {
        *item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->room;
        if (queue->count-- == queue->room)
            pthread_cond_signal(&queue->emptied);
    }
    pthread_mutex_unlock(&queue->mutex);
    return any;
}

BENCH_API void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

#endif
