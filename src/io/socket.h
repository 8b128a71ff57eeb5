/*
 * What the files on sockets share.
 */
#ifndef IO_SOCKET_H
#define IO_SOCKET_H

enum { BACKLOG = 4096 }; /* the longest queue of a listener; the system may allow less */

#endif
