/* Downloads a file by libcurl: resumes, retries, and checks the SHA-256 sum. */
#include "io/download.h"

#include "base/fail.h"
#include "base/log.h"
#include "io/file.h"
#include "io/sha256.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ATTEMPTS = 5, /* attempts in a row that bring no new bytes, then it fails */
    CONNECT_SECONDS = 10,
    SLOW_SECONDS = 30, /* so long below SLOW_BYTES a second: closed and tried again */
    SLOW_BYTES = 100,
    REDIRECTS = 5,
};

/* A download that is running: `bytes` bytes are in the part file and counted in `sum`. */
struct transfer {
    const struct lk_download *asked;
    char *name; /* the path of the part file */
    int part;
    struct lk_sha256 sum;
    int64_t bytes, before; /* of the part file: now, and when this request began */
    bool inherited;        /* some of the bytes are from an earlier call */
    enum lk_status status; /* why a callback stopped the transfer */
    char text[CURL_ERROR_SIZE];
};

static enum lk_status too_large(const struct lk_download *asked)
{
    return lk_fail(LK_E_DATA, "'%s' gives more than the expected %lld bytes", asked->url,
                   (long long)asked->limit);
}

/* libcurl's callback for received bytes. They are written before they are added to the sum, so
 * that the sum is always that of the file. */
static size_t take(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    const size_t bytes = size * count;
    if ((uint64_t)bytes > (uint64_t)(t->asked->limit - t->bytes)) {
        t->status = too_large(t->asked);
        return 0;
    }
    for (size_t done = 0; done < bytes;) {
        const ssize_t wrote = write(t->part, data + done, bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            t->status = lk_file_fail("write", t->name);
            return 0;
        }
        lk_sha256_add(&t->sum, data + done, (size_t)wrote);
        t->bytes += wrote;
        done += (size_t)wrote;
    }
    return bytes;
}

static int report(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                  curl_off_t up)
{
    (void)up_total;
    (void)up;
    struct transfer *t = context;
    const struct lk_download *asked = t->asked;
    (void)now;
    if (!asked->progress ||
        asked->progress(asked->context, t->bytes, total > 0 ? t->before + total : -1))
        return 0;
    t->status = lk_fail(LK_E_INTERRUPTED, "the download of '%s' was stopped", asked->url);
    return 1;
}

/* Empties the part file and begins its sum anew. */
static enum lk_status empty(struct transfer *t)
{
    lk_sha256_clear(&t->sum);
    t->bytes = 0;
    t->inherited = false;
    if (ftruncate(t->part, 0) || lseek(t->part, 0, SEEK_SET) != 0)
        return lk_file_fail("empty", t->name);
    return lk_sha256_init(&t->sum);
}

/* Adds what an earlier call has left in the part file to the sum. */
static enum lk_status take_up(struct transfer *t)
{
    static const size_t chunk_bytes = 1 << 18;
    struct stat about;
    if (fstat(t->part, &about))
        return lk_file_fail("examine", t->name);
    if (about.st_size > t->asked->limit)
        return empty(t);
    LK_TRY(lk_sha256_init(&t->sum));
    unsigned char *chunk = malloc(chunk_bytes);
    if (!chunk)
        return lk_fail_memory("reading", chunk_bytes);
    ssize_t got;
    while ((got = read(t->part, chunk, chunk_bytes)) > 0) {
        lk_sha256_add(&t->sum, chunk, (size_t)got);
        t->bytes += got;
    }
    free(chunk);
    t->inherited = t->bytes > 0;
    return got < 0 ? lk_file_fail("read", t->name) : LK_OK;
}

/* Opens the part file and locks it against other processes. While this process waited for the
 * lock the file may have been moved or deleted: then the name is opened again. */
static enum lk_status open_part(struct transfer *t)
{
    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct stat held, named;
        t->part = open(t->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (t->part < 0)
            return lk_file_fail("create", t->name);
        /* Where the file system knows no locks the sum still protects the result. */
        while (fcntl(t->part, F_SETLKW, &lock) && errno == EINTR)
            ;
        if (fstat(t->part, &held) == 0 && stat(t->name, &named) == 0 &&
            held.st_dev == named.st_dev && held.st_ino == named.st_ino)
            return LK_OK;
        close(t->part);
    }
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_loopback(const struct lk_download *asked)
{
    return asked->allow_http && (has_prefix(asked->url, "http://127.0.0.1:") ||
                                 has_prefix(asked->url, "http://127.0.0.1/"));
}

static void initialize_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_protocols(CURL *curl, bool loopback)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, loopback ? "http" : "https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, loopback ? CURLPROTO_HTTP : CURLPROTO_HTTPS);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTPS);
#endif
    if (loopback)
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
}

static void set_options(CURL *curl, struct transfer *t)
{
    set_protocols(curl, is_loopback(t->asked));
    curl_easy_setopt(curl, CURLOPT_URL, t->asked->url);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "lockstep");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->text);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, report);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
}

enum outcome { WHOLE, AGAIN, REFUSED };

/* One request for the bytes that are missing. libcurl takes the answer 416, no such range, as
 * success of a complete file; whether it is complete the sum tells afterwards. */
static enum outcome request(CURL *curl, struct transfer *t)
{
    t->before = t->bytes;
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->before);
    t->text[0] = '\0';
    const CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        return WHOLE;
    if (t->text[0] == '\0')
        snprintf(t->text, sizeof t->text, "%s", curl_easy_strerror(code));
    if (code == CURLE_RANGE_ERROR && t->before > 0)
        t->status = empty(t);
    long answer = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
    const bool refused =
        code == CURLE_HTTP_RETURNED_ERROR && answer < 500 && answer != 408 && answer != 429;
    const bool hopeless = code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
                          code == CURLE_PEER_FAILED_VERIFICATION ||
                          code == CURLE_TOO_MANY_REDIRECTS;
    return t->status != LK_OK || refused || hopeless ? REFUSED : AGAIN;
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static enum lk_status transfer_all(CURL *curl, struct transfer *t)
{
    const long first_wait = t->asked->wait_ms > 0 ? t->asked->wait_ms : 1000;
    int64_t most = t->bytes;
    for (int failures = 0;;) {
        const enum outcome outcome = request(curl, t);
        if (outcome == WHOLE)
            return LK_OK;
        if (t->status != LK_OK)
            return t->status;
        failures = t->bytes > most ? 1 : failures + 1;
        most = t->bytes > most ? t->bytes : most;
        if (outcome == REFUSED || failures == ATTEMPTS)
            return lk_fail(LK_E_IO, "cannot download '%s' (%lld bytes are there): %s",
                           t->asked->url, (long long)t->bytes, t->text);
        if (failures == 1)
            lk_log(LK_LOG_INFO, "'%s': %s; trying again, up to %d times", t->asked->url,
                   t->text, ATTEMPTS - 1);
        wait_ms(first_wait << (failures - 1));
    }
}

/* Requests until the part file has the right sum. The bytes of an earlier call may be of
 * another version of the file: with them a wrong sum only makes it begin again from nothing. */
static enum lk_status complete(CURL *curl, struct transfer *t)
{
    set_options(curl, t);
    for (;;) {
        char found[LK_SHA256_TEXT];
        LK_TRY(transfer_all(curl, t));
        lk_sha256_finish(&t->sum, found);
        if (strcmp(found, t->asked->sha256) == 0)
            return fsync(t->part) ? lk_file_fail("write", t->name) : LK_OK;
        if (!t->inherited)
            return lk_fail(LK_E_DATA,
                           "'%s' gives %lld bytes of sha256 %s; expected is sha256 %s",
                           t->asked->url, (long long)t->bytes, found, t->asked->sha256);
        LK_TRY(empty(t));
    }
}

static enum lk_status download(struct transfer *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialize_curl);
    CURL *curl = curl_easy_init();
    if (!curl)
        return lk_fail_memory("a download", 4096);
    enum lk_status status = take_up(t);
    if (status == LK_OK)
        status = complete(curl, t);
    curl_easy_cleanup(curl);
    lk_sha256_clear(&t->sum);
    if (status == LK_OK)
        return lk_file_move(t->name, t->asked->path);
    if (status == LK_E_DATA || t->bytes == 0)
        unlink(t->name);
    return status;
}

/* Another process may have finished while this one waited for the lock. */
static enum lk_status in_place(const struct lk_download *asked, bool *right)
{
    char found[LK_SHA256_TEXT] = "";
    if (lk_file_exists(asked->path))
        LK_TRY(lk_sha256_of_file(asked->path, found));
    *right = strcmp(found, asked->sha256) == 0;
    return LK_OK;
}

enum lk_status lk_download(const struct lk_download *asked)
{
    if (!has_prefix(asked->url, "https://") && !is_loopback(asked))
        return lk_fail(LK_E_ARGUMENT, "'%s': an address that begins with https:// is expected",
                       asked->url);
    struct transfer t = {.asked = asked};
    const size_t bytes = strlen(asked->path) + sizeof ".part";
    t.name = malloc(bytes);
    if (!t.name)
        return lk_fail_memory("a file name", bytes);
    snprintf(t.name, bytes, "%s.part", asked->path);
    enum lk_status status = open_part(&t);
    if (status == LK_OK) {
        bool right = false;
        status = in_place(asked, &right);
        if (right)
            unlink(t.name);
        else if (status == LK_OK)
            status = download(&t);
        close(t.part);
    }
    free(t.name);
    return status;
}
