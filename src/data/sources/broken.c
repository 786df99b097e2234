/* Counting samples that cannot be read, and finding others that stand in for them. */
#include "data/sources/broken.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/number.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NAMED = 20 };

struct lk_broken {
    struct lk_broken_config config;
    char max_bad[16];
    int64_t most;
    atomic_llong bad;
    atomic_uchar *is_bad; /* [count] */
};

/* "1%" of all, or a number. */
static enum lk_status parse_max_bad(const char *text, int64_t count, int64_t *most)
{
    char *end;
    const double number = lk_number_read(text, &end);
    const bool is_share = *end == '%';
    if (end == text || *(end + is_share) || !(number >= 0 && number <= (is_share ? 100 : 1e15)))
        return lk_fail(LK_E_ARGUMENT,
                       "max_bad '%s': expected a share such as 1%%, or a number of samples",
                       text);
    *most = (int64_t)(is_share ? number / 100 * (double)count : number);
    return LK_OK;
}

enum lk_status lk_broken_check_most(const char *max_bad)
{
    int64_t most;
    return parse_max_bad(max_bad, 1, &most);
}

enum lk_status lk_broken_create(const struct lk_broken_config *config,
                                struct lk_broken **broken)
{
    int64_t most = 0;
    LK_TRY(parse_max_bad(config->max_bad, config->count, &most));
    struct lk_broken *made = calloc(1, sizeof *made);
    atomic_uchar *is_bad = calloc((size_t)config->count, sizeof *is_bad);
    if (!made || !is_bad) {
        free(made);
        free(is_bad);
        return lk_fail_memory("marks of broken samples", (unsigned long long)config->count);
    }
    made->config = *config;
    snprintf(made->max_bad, sizeof made->max_bad, "%s", config->max_bad);
    made->config.max_bad = made->max_bad;
    made->most = most;
    made->is_bad = is_bad;
    atomic_init(&made->bad, config->lost);
    *broken = made;
    return LK_OK;
}

void lk_broken_destroy(struct lk_broken *broken)
{
    if (broken)
        free(broken->is_bad);
    free(broken);
}

bool lk_broken_has(const struct lk_broken *broken, int64_t index)
{
    return atomic_load(&broken->is_bad[index]);
}

int64_t lk_broken_count(const struct lk_broken *broken)
{
    return atomic_load(&broken->bad);
}

int64_t lk_broken_lost(const struct lk_broken *broken)
{
    return broken->config.lost;
}

int64_t lk_broken_most(const struct lk_broken *broken, int64_t count)
{
    int64_t most = 0;
    (void)parse_max_bad(broken->max_bad, count, &most); /* the text was parsed before, and is
                                                         * right */
    return most;
}

void lk_broken_mark(struct lk_broken *broken, int64_t index)
{
    if (!atomic_exchange(&broken->is_bad[index], 1))
        atomic_fetch_add(&broken->bad, 1);
}

static const char way_out[] = " (--max-bad, or ',max_bad=' behind the data, allows more)";

enum lk_status lk_broken_check(const struct lk_broken *broken)
{
    const long long bad = atomic_load(&broken->bad);
    if (bad <= broken->most)
        return LK_OK;
    return lk_fail(LK_E_DATA, "%s: %lld of %lld samples are broken, max_bad=%s allows %lld%s",
                   broken->config.name, bad, (long long)broken->config.count, broken->max_bad,
                   (long long)broken->most, way_out);
}

/* Says once that a sample is broken and why. fails: LK_E_DATA where that is one too many */
static enum lk_status note(struct lk_broken *broken, int64_t index)
{
    const struct lk_broken_config *c = &broken->config;
    char why[1024];
    snprintf(why, sizeof why, "%s", lk_error_text());
    lk_error_clear();
    if (atomic_exchange(&broken->is_bad[index], 1))
        return LK_OK;
    const long long bad = atomic_fetch_add(&broken->bad, 1) + 1;
    if (bad > broken->most) { /* whoever reads it next gets the same error */
        atomic_fetch_sub(&broken->bad, 1);
        atomic_store(&broken->is_bad[index], 0);
        return lk_fail(
            LK_E_DATA,
            "%s: %lld of %lld samples are broken, max_bad=%s allows %lld%s; the last "
            "is %s",
            c->name, bad, (long long)c->count, broken->max_bad, (long long)broken->most,
            way_out, why);
    }
    if (bad <= MOST_NAMED)
        lk_log(LK_LOG_WARNING, "%s: broken sample %lld is left out: %s%s", c->name,
               (long long)index, why, bad == MOST_NAMED ? " (others are not named)" : "");
    return LK_OK;
}

enum lk_status lk_broken_read(struct lk_broken *broken, int64_t index,
                              enum lk_status (*read)(void *context, int64_t index),
                              void *context)
{
    const int64_t count = broken->config.count;
    for (int64_t tried = 0; tried < count; tried++) {
        const int64_t i = (index + tried) % count;
        if (atomic_load(&broken->is_bad[i]))
            continue;
        const enum lk_status status = read(context, i);
        if (status != LK_E_DATA && !(status == LK_E_IO && broken->config.takes_files))
            return status;
        LK_TRY(note(broken, i));
    }
    return lk_fail(LK_E_DATA, "%s: all %lld samples are broken", broken->config.name,
                   (long long)count);
}
