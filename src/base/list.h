/*
 * Intrusive doubly linked lists with a head. An element that is in no list has next == NULL.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base.h"

struct link {
    struct link *next, *prev;
};

static inline __attribute__((always_inline)) void list_init(struct link *head)
{
    head->next = head->prev = head;
}

static inline __attribute__((always_inline)) bool list_empty(const struct link *head)
{
    return head->next == head;
}

static inline __attribute__((always_inline)) void list_insert_(struct link *prev, struct link *next, struct link *link)
{
    link->prev = prev;
    link->next = next;
    prev->next = link;
    next->prev = link;
}

static inline __attribute__((always_inline)) void list_push_front(struct link *head, struct link *link)
{
    list_insert_(head, head->next, link);
}

static inline __attribute__((always_inline)) void list_push_back(struct link *head, struct link *link)
{
    list_insert_(head->prev, head, link);
}

static inline __attribute__((always_inline)) void list_remove(struct link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = NULL;
}

static inline __attribute__((always_inline)) struct link *list_pop_front(struct link *head)
{
    struct link *link = head->next;
    if (link == head)
        return NULL;
    list_remove(link);
    return link;
}

static inline __attribute__((always_inline)) struct link *list_pop_back(struct link *head)
{
    struct link *link = head->prev;
    if (link == head)
        return NULL;
    list_remove(link);
    return link;
}

#endif
