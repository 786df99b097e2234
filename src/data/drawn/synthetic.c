/* synthetic:NAME: samples that are drawn when they are read. */
#include "base/fail.h"
#include "data/drawn/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_drawn_set *const sets[] = {&lk_drawn_digits, &lk_drawn_pairs};

uint32_t lk_draw_bits(struct lk_draw *draw)
{
    if (draw->left == 0) {
        draw->numbers = lk_random(draw->seed, LK_RANDOM_DATA, draw->stream, draw->block++);
        draw->left = 4;
    }
    return draw->numbers.v[4 - draw->left--];
}

int lk_draw_between(struct lk_draw *draw, int least, int most)
{
    const uint64_t choices = (uint64_t)(most - least + 1);
    return least + (int)(lk_draw_bits(draw) * choices >> 32);
}

static enum lk_status find_set(const char *text, const struct lk_drawn_set **set)
{
    const size_t length = strcspn(text, ",");
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; i < LK_COUNT(sets); i++) {
        *set = sets[i];
        if (strlen(sets[i]->name) == length && strncmp(text, sets[i]->name, length) == 0)
            return LK_OK;
        used += (size_t)snprintf(known + used, sizeof known - used, "%ssynthetic:%s",
                                 i ? " and " : "", sets[i]->name);
    }
    return lk_fail(LK_E_ARGUMENT, "unknown data 'synthetic:%s'; known are %s", text, known);
}

/* Reads "digits,count=3,seed=4": what follows the name; commas have become blanks. */
static enum lk_status parse(const char *text, struct lk_drawn *drawn)
{
    char rest[256];
    LK_TRY(find_set(text, &drawn->set));
    if ((size_t)snprintf(rest, sizeof rest, "%s", text + strcspn(text, ",")) >= sizeof rest)
        return lk_fail(LK_E_ARGUMENT, "'synthetic:%.40s...' is too long", text);
    for (char *c = rest; *c; c++)
        *c = *c == ',' ? ' ' : *c;
    const enum lk_status status = lk_options_parse(drawn->set->options, &drawn->options, rest);
    return status == LK_OK ? LK_OK : lk_fail_within(status, "synthetic:%s", text);
}

static enum lk_status synthetic_open(struct lk_data_request *request, struct lk_data_info *info,
                                     void **state)
{
    struct lk_drawn *drawn = calloc(1, sizeof *drawn);
    if (!drawn)
        return lk_fail_memory("a data set", sizeof *drawn);
    const enum lk_status status = parse(request->text, drawn);
    if (status != LK_OK) {
        free(drawn);
        return status;
    }
    const int64_t count = drawn->options.count;
    drawn->part = request->part == LK_DATA_TRAIN ? LK_DATA_TRAIN : LK_DATA_TEST;
    *info =
        (struct lk_data_info){.name = drawn->set->name,
                              .count = drawn->part == LK_DATA_TRAIN ? count : (count + 5) / 6,
                              .part = drawn->part};
    drawn->set->describe(drawn, info);
    *state = drawn;
    return LK_OK;
}

static enum lk_status synthetic_read(const void *state, int64_t index, void *const to[])
{
    const struct lk_drawn *drawn = state;
    drawn->set->draw(drawn, index, to);
    return LK_OK;
}

const struct lk_source lk_source_synthetic = {.kind = "synthetic",
                                              .usage = "synthetic:digits[,count=N][,seed=N], "
                                                       "synthetic:pairs",
                                              .open = synthetic_open,
                                              .close = free,
                                              .read = synthetic_read};
