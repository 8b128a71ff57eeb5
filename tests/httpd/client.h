/*
 * What the tests of examples/httpd are written with: a server over a temporary directory, and clients on plain blocking
 * sockets, which know nothing of the library and may misbehave. Every wait ends after LIMIT_S.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "test.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 300

/* ---- the server, one for a test --------------------------------------------------------------- */

/* Start it with these options, on test_threads() threads, and wait until it listens. */
#define SERVER(...) SERVER_OF(0, __VA_ARGS__)
/* The same with so many descriptors. */
#define SERVER_OF(descriptors, ...) server_start(descriptors, (const char *const[]){__VA_ARGS__, NULL})
void server_start(int descriptors, const char *const *options);

struct account {
    unsigned long long served, cut, lost, connections, live;
};
/* Send the signal; wait for the end. It exits with 0, has lost nothing, and no strand is left. */
struct account server_stop(int signal);
struct account server_wait(void); /* the same, with the signal sent already */
/* Whether it has ended; nothing of its output is read. */
bool server_has_ended(void);
/* Wait for the end, whatever it is: the exit status; what it said on standard output is in *said. */
int server_exit_status(const char **said);

/* Run it with one option, not to serve: its exit status; what it said, on both streams, is in *said. */
int server_says(const char *option, const char **said);

extern pid_t server_pid;
extern int server_port;
extern char server_name[100]; /* where it says that it listens */
extern int server_output;     /* what it has written since it listened; is read by the end */
int server_descriptors(void);
long server_cpu_ms(void);
long server_pages(void);    /* resident */
long server_switches(void); /* of all its threads, made by themselves */

/* ---- the directory, and what lies beside it ------------------------------------------------------ */

/* Below the temporary directory: "root/..." is served, all else is not. Lasts until the server is stopped. */
const char *path_of(const char *name);
void make_directory(const char *name);
void make_file(const char *name, const char *text);
/* Of so many bytes without a pattern; they are bytes_of(size). */
void make_big(const char *name, size_t size);
const char *bytes_of(size_t size);

/* ---- clients ---------------------------------------------------------------------------------- */

int dial(void);
/* With so few bytes of what it has not read. */
int dial_small(int buffer);
void say(int fd, const char *text);
void say_bytes(int fd, const char *bytes, size_t length);
/* False: the server does not take them any more. */
bool try_say(int fd, const char *bytes, size_t length);
/* The connection ends here and in order. */
void check_end(int fd);
void reset(int fd);

/* The last answer that came. */
struct answer {
    int status;
    char head[8192];
    char *body; /* its end is marked */
    size_t length;
};
extern struct answer got;
const char *header(const char *name); /* of it; "" if there is none */
void check_body(const char *bytes, size_t length);

#define REQUEST(method, path, headers) method " " path " HTTP/1.1\r\nHost: test\r\n" headers "\r\n"
#define GET(path) REQUEST("GET", path, "")

/* Receive an answer: its status. One to a HEAD has no body. */
int receive(int fd);
int receive_head(int fd);
/* Say it and receive the answer. */
int ask(int fd, const char *request);
/* The same on a connection of its own. */
int ask_once(const char *request);
/* How often the text is in what /strands says. */
int strands_named(const char *text);

/* ---- time ------------------------------------------------------------------------------------- */

long now_ms(void);
void rest_ms(long ms);
#define UNTIL(condition)                                                                                               \
    for (long until_ = now_ms() + LIMIT_S * 1000L; !(condition); rest_ms(5))                                           \
    CHECK(now_ms() < until_ && #condition)

#endif
