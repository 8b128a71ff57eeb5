/*
 * The calls of libstrand-tls, and the memory of OpenSSL below it.
 */
#define _GNU_SOURCE
#include "fault.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The names that the satellite calls. */
int fault_tls_open(const char *path, int flags, ...);
int fault_tls_fstat(int fd, struct stat *status);
FILE *fault_tls_fdopen(int fd, const char *mode);
int fault_tls_close(int fd);

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* By the file of the call. */
static bool refuses(const char *file)
{
    return fault_refused(strncmp(file, "src/tls/", 8) == 0 ? PART_tls_memory : PART_tls_openssl);
}

static void *noted(void *memory, size_t size, const void *by)
{
    if (memory)
        fault_take(KIND_FOREIGN, (uintptr_t)memory, size, by);
    return memory;
}

static void give_back(void *memory)
{
    if (memory && !fault_give(KIND_FOREIGN, (uintptr_t)memory, 0))
        atomic_fetch_add(&fault_strange, 1);
}

static void *take_memory(size_t size, const char *file, int line)
{
    (void)line;
    return !size || refuses(file) ? NULL : noted(malloc(size), size, FAULT_CALLER);
}

static void free_memory(void *memory, const char *file, int line)
{
    (void)file, (void)line;
    give_back(memory);
    free(memory);
}

/* Size 0 frees. */
static void *resize_memory(void *memory, size_t size, const char *file, int line)
{
    if (!size) {
        free_memory(memory, file, line);
        return NULL;
    }
    if (refuses(file))
        return NULL;
    give_back(memory);
    return noted(realloc(memory, size), size, FAULT_CALLER);
}

__attribute__((constructor)) static void give_memory(void)
{
    FAULT_CHECK(CRYPTO_set_mem_functions(take_memory, resize_memory, free_memory) == 1);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

int fault_tls_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fault_refused(PART_tls_open) ? -1 : open(path, flags, mode);
}

int fault_tls_fstat(int fd, struct stat *status)
{
    return fault_refused(PART_tls_fstat) ? -1 : fstat(fd, status);
}

FILE *fault_tls_fdopen(int fd, const char *mode)
{
    return fault_refused(PART_tls_fdopen) ? NULL : fdopen(fd, mode);
}

/* It is closed all the same. */
int fault_tls_close(int fd)
{
    int result = close(fd);
    return fault_refused(PART_tls_close) ? -1 : result;
}
