/*
 * All that this library asks the system for by itself.
 */
#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <sys/stat.h>
#include <unistd.h>

/* No strand is switched between the call and its errno. */
__attribute__((noinline)) BIO *tls_file_append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        ERR_raise(ERR_LIB_SYS, errno);
        return NULL;
    }
    BIO *file = BIO_new_fd(fd, BIO_CLOSE);
    if (!file)
        (void)close(fd);
    return file;
}
