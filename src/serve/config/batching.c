/* --batching-parameters-file */
#include "base/fail.h"
#include "base/log.h"
#include "serve/config/config.h"
#include "serve/config/textproto.h"
#include <string.h>

struct batching {
    int64_t size, micros, batches, threads; /* 0: not said; micros: -1 */
};

/* "{ value: N }", as each of the numbers is written. */
static enum lk_status read_value(struct lk_textproto *file, const char *field, int64_t least,
                                 int64_t most, int64_t *value)
{
    char name[LK_TEXTPROTO_NAME];
    bool more = true, is_there = false;
    LK_TRY(lk_textproto_enter(file));
    while (true) {
        LK_TRY(lk_textproto_field(file, false, name, &more));
        if (!more)
            break;
        if (strcmp(name, "value") != 0)
            return lk_textproto_fail(file, "'%s' has no field '%s', but 'value'", field, name);
        LK_TRY(lk_textproto_integer(file, value));
        is_there = true;
    }
    if (!is_there || *value < least || *value > most)
        return lk_textproto_fail(file, "'%s' needs { value: %lld to %lld }", field,
                                 (long long)least, (long long)most);
    return LK_OK;
}

static enum lk_status read_fields(struct lk_textproto *file, struct batching *b)
{
    const struct {
        const char *name;
        int64_t least, most, *value;
    } fields[] = {{"max_batch_size", 1, 4096, &b->size},
                  {"batch_timeout_micros", 0, 10000000, &b->micros},
                  {"max_enqueued_batches", 1, 1 << 20, &b->batches},
                  {"num_batch_threads", 1, 1 << 16, &b->threads}};
    char name[LK_TEXTPROTO_NAME];
    bool more = true;
    while (true) {
        int at = 0;
        LK_TRY(lk_textproto_field(file, true, name, &more));
        if (!more)
            return LK_OK;
        while (at < LK_COUNT(fields) && strcmp(fields[at].name, name) != 0)
            at++;
        if (at == LK_COUNT(fields))
            return lk_textproto_fail(file,
                                     "unknown field '%s'; known are max_batch_size, "
                                     "batch_timeout_micros, max_enqueued_batches and "
                                     "num_batch_threads",
                                     name);
        LK_TRY(read_value(file, name, fields[at].least, fields[at].most, fields[at].value));
    }
}

enum lk_status lk_config_read_batching(const char *path, struct lk_serve_options *options)
{
    struct lk_textproto file;
    struct batching b = {.micros = -1};
    LK_TRY(lk_textproto_open(path, &file));
    const enum lk_status status = read_fields(&file, &b);
    lk_textproto_clear(&file);
    LK_TRY(status);
    options->max_batch = options->max_batch ? options->max_batch : b.size;
    if (options->max_delay_ms == 0 && b.micros >= 0)
        options->max_delay_ms = (double)b.micros / 1e3;
    if (options->max_queue == 0 && b.batches > 0) {
        const int64_t size = options->max_batch ? options->max_batch : LK_SERVE_BATCH;
        options->max_queue = b.batches * size;
    }
    if (b.threads > 1)
        lk_log(LK_LOG_INFO,
               "num_batch_threads: a device computes one batch at a time, on all its cores");
    return LK_OK;
}
