/* SHA-256 sums by libcrypto. */
#include "io/sha256.h"

#include "base/fail.h"
#include "base/parallel.h"
#include "io/file.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum lk_status lk_sha256_init(struct lk_sha256 *sum)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return lk_fail_memory("a SHA-256 sum", 512);
    }
    sum->context = context;
    return LK_OK;
}

void lk_sha256_add(struct lk_sha256 *sum, const void *data, size_t bytes)
{
    /* OpenSSL's calls fail only for a context that was not initialized: our own mistake. */
    enum { AT_ONCE = 1 << 12 }; /* some 3 us */
    for (size_t at = 0; at < bytes; at += AT_ONCE) {
        const size_t count = bytes - at < AT_ONCE ? bytes - at : AT_ONCE;
        const int done = EVP_DigestUpdate(sum->context, (const char *)data + at, count);
        assert(done == 1);
        (void)done;
        lk_thread_let_others_on();
    }
}

void lk_sha256_finish(struct lk_sha256 *sum, char text[LK_SHA256_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    const int done = EVP_DigestFinal_ex(sum->context, digest, &count);
    assert(done == 1 && count == 32);
    (void)done;
    for (unsigned i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)digest[i]);
}

void lk_sha256_clear(struct lk_sha256 *sum)
{
    EVP_MD_CTX_free(sum->context);
    sum->context = NULL;
}

enum lk_status lk_sha256_of(const void *data, size_t bytes, char text[LK_SHA256_TEXT])
{
    struct lk_sha256 sum = {0};
    LK_TRY(lk_sha256_init(&sum));
    lk_sha256_add(&sum, data, bytes);
    lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    return LK_OK;
}

static enum lk_status add_file(struct lk_sha256 *sum, FILE *file, const char *path)
{
    enum { CHUNK = 1 << 18 };
    unsigned char *chunk = malloc(CHUNK);
    if (!chunk)
        return lk_fail_memory("reading", CHUNK);
    for (size_t got; (got = fread(chunk, 1, CHUNK, file)) > 0;)
        lk_sha256_add(sum, chunk, got);
    const enum lk_status status = ferror(file) ? lk_file_fail("read", path) : LK_OK;
    free(chunk);
    return status;
}

enum lk_status lk_sha256_of_file(const char *path, char text[LK_SHA256_TEXT])
{
    int fd;
    LK_TRY(lk_file_open(path, &fd));
    FILE *file = fdopen(fd, "rb");
    if (!file) {
        close(fd);
        return lk_fail_memory(path, 0);
    }
    struct lk_sha256 sum = {0};
    enum lk_status status = lk_sha256_init(&sum);
    if (status == LK_OK)
        status = add_file(&sum, file, path);
    if (status == LK_OK)
        lk_sha256_finish(&sum, text);
    lk_sha256_clear(&sum);
    fclose(file);
    return status;
}
