/* Data sets by name: where they are, where they come from, what they must hash to. */
#include "data/sources/named_sets.h"
#include "base/fail.h"
#include "base/folder.h"
#include "base/log.h"
#include "io/download.h"
#include "io/file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_named_set_file fashion_files[] = {
    {"train-labels-idx1-ubyte.gz",
     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29515},
    {"t10k-labels-idx1-ubyte.gz",
     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5148},
    {"t10k-images-idx3-ubyte.gz",
     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4422102},
    {"train-images-idx3-ubyte.gz",
     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26421880},
    {0},
};

static const char *const fashion_classes[] = {
    "T-shirt/top", "Trouser", "Pullover", "Dress",      "Coat", "Sandal",
    "Shirt",       "Sneaker", "Bag",      "Ankle boot", NULL};

const struct lk_named_set lk_named_sets[] = {
    {.name = "fashion-mnist",
     .url =
         "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
     .source = &lk_source_idx,
     .class_names = fashion_classes,
     .shape = {28, 28, 1},
     .files = fashion_files},
    {0},
};

/* a, b, c and d joined to one string, which the caller frees; NULL: there is no memory. */
static char *joined(const char *a, const char *b, const char *c, const char *d)
{
    const size_t bytes = strlen(a) + strlen(b) + strlen(c) + strlen(d) + 1;
    char *text = malloc(bytes);
    if (text)
        snprintf(text, bytes, "%s%s%s%s", a, b, c, d);
    return text;
}

/* An empty variable counts as one that is not set. */
static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static enum lk_status cache_folder(const char *name, char **folder)
{
    char part[128], path[4096];
    snprintf(part, sizeof part, "data/%s", name);
    if (!lk_cache_folder(part, path, sizeof path))
        return lk_fail(LK_E_IO,
                       "%s: neither LOCKSTEP_DATA, LOCKSTEP_CACHE nor HOME is set to a "
                       "folder to keep it in",
                       name);
    *folder = strdup(path);
    return *folder ? LK_OK : lk_fail_memory("a folder name", strlen(path));
}

static const char *size_text(int64_t bytes, char text[32])
{
    if (bytes < 1000000)
        snprintf(text, 32, "%lld kB", (long long)(bytes + 999) / 1000);
    else
        snprintf(text, 32, "%.1f MB", 1e-6 * (double)bytes);
    return text;
}

static bool report(void *context, int64_t done, int64_t total)
{
    int *tenths = context;
    if (total > 0 && done * 10 / total > *tenths) {
        *tenths = (int)(done * 10 / total);
        char now[32], whole[32];
        lk_log(LK_LOG_INFO, "downloaded %s of %s", size_text(done, now),
               size_text(total, whole));
    }
    return true;
}

static enum lk_status fetch(const struct lk_named_set *known,
                            const struct lk_named_set_file *file, const char *path)
{
    const char *place = environment("LOCKSTEP_DATA_URL");
    char *url = place ? joined(place, "/", known->name, "/") : joined(known->url, "", "", "");
    char *whole = url ? joined(url, file->name, "", "") : NULL;
    free(url);
    if (!whole)
        return lk_fail_memory("an address", strlen(known->url));
    char size[32];
    lk_log(LK_LOG_INFO, "downloading %s (%s)", whole, size_text(file->bytes, size));
    int tenths = file->bytes < 1000000 ? 10 : 0; /* a small file comes at once: no progress is
                                                  * shown */
    const enum lk_status status = lk_download(&(struct lk_download){.url = whole,
                                                                    .path = path,
                                                                    .sha256 = file->sha256,
                                                                    .limit = file->bytes,
                                                                    .allow_http = place != NULL,
                                                                    .progress = report,
                                                                    .context = &tenths});
    free(whole);
    return status;
}

static enum lk_status complete(const struct lk_named_set *known, const char *folder)
{
    for (const struct lk_named_set_file *file = known->files; file->name; file++) {
        char *path = joined(folder, "/", file->name, "");
        if (!path)
            return lk_fail_memory("a file name", strlen(folder));
        enum lk_status status = LK_OK;
        if (!lk_file_exists(path)) {
            status = lk_folder_make(folder);
            if (status == LK_OK)
                status = fetch(known, file, path);
        }
        free(path);
        LK_TRY(status);
    }
    return LK_OK;
}

/* Adds to the error of a download what the user can do. */
static enum lk_status fail_download(enum lk_status status, const char *name)
{
    char text[2048];
    if (status != LK_E_IO)
        return lk_fail_within(status, "%s", name);
    snprintf(text, sizeof text, "%s", lk_error_text());
    lk_error_clear();
    return lk_fail(status,
                   "%s: %s; without a network, put its files into $LOCKSTEP_DATA/%s, or take "
                   "synthetic:digits, which needs no file",
                   name, text, name);
}

enum lk_status lk_named_set_folder(const struct lk_named_set *known, char **folder)
{
    /* Training and test part may be opened at the same time; only one of them downloads. */
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    char *found = NULL;
    const char *data = environment("LOCKSTEP_DATA");
    if (data) {
        found = joined(data, "/", known->name, "");
        if (!found)
            return lk_fail_memory("a folder name", strlen(data));
        if (lk_folder_exists(found)) {
            *folder = found;
            return LK_OK;
        }
        free(found);
    }
    LK_TRY(cache_folder(known->name, &found));
    pthread_mutex_lock(&mutex);
    const enum lk_status status = complete(known, found);
    pthread_mutex_unlock(&mutex);
    if (status != LK_OK) {
        free(found);
        return fail_download(status, known->name);
    }
    *folder = found;
    return LK_OK;
}
