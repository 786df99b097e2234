/* Downloads files, which are accepted only with the right SHA-256 sum. Floor 1. libcurl is
 * known to download.c alone. */
#ifndef LK_IO_DOWNLOAD_H
#define LK_IO_DOWNLOAD_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stdint.h>

struct lk_download {
    const char *url;    /* https */
    const char *path;   /* where the finished file goes; its folder exists */
    const char *sha256; /* what it must hash to: 64 lower-case hexadecimal digits */
    int64_t limit;      /* more bytes than this are refused */
    bool allow_http;    /* also http, but only to 127.0.0.1 */
    int wait_ms;        /* before the second attempt, then doubled; 0: 1000 */

    /* Called now and then; total < 0: not known. Returns whether to go on. May be NULL. */
    bool (*progress)(void *context, int64_t done, int64_t total);
    void *context;
};

/* Downloads into path.part, continuing what an earlier call has left there, and retries where
 * the connection fails. With the right sum the file is moved into place, with a wrong one it is
 * deleted. Waits. Processes that want the same file wait for one another; two threads must not
 * ask for it at once. fails: LK_E_IO no answer, a refusal, a full disk; LK_E_DATA wrong sum,
 * more bytes than `limit`; LK_E_ARGUMENT an address that is not allowed; LK_E_INTERRUPTED */
LK_MUST_CHECK enum lk_status lk_download(const struct lk_download *download);

#endif
