/*
 * All that this library asks the system for by itself.
 */
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* No strand is switched between a call and its errno. */
static BIO *refuse_file(int fd, int code)
{
    ERR_raise(ERR_LIB_SYS, code);
    if (fd >= 0)
        (void)close(fd);
    return NULL;
}

/* A directory can be opened, and OpenSSL would take it for an empty file. */
__attribute__((noinline)) BIO *tls_file_read(const char *path)
{
    struct stat kind;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &kind) != 0)
        return refuse_file(fd, errno);
    if (S_ISDIR(kind.st_mode))
        return refuse_file(fd, EISDIR);
    FILE *stream = fdopen(fd, "r");
    if (!stream)
        return refuse_file(fd, errno);
    BIO *file = BIO_new_fp(stream, BIO_CLOSE);
    if (!file)
        (void)fclose(stream);
    return file;
}

__attribute__((noinline)) BIO *tls_file_append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return refuse_file(fd, errno);
    BIO *file = BIO_new_fd(fd, BIO_CLOSE);
    if (!file)
        (void)close(fd);
    return file;
}

/* A lock that is never destroyed, and that no thread takes twice, cannot be refused. */
void tls_links_read(void)
{
    (void)pthread_rwlock_rdlock(tls_links_lock());
}

void tls_links_write(void)
{
    (void)pthread_rwlock_wrlock(tls_links_lock());
}

void tls_links_leave(void)
{
    (void)pthread_rwlock_unlock(tls_links_lock());
}
