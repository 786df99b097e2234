/* The table of stages: their options, and what each one sets in a pipeline. */
#include "data/stages/table.h"

#include "base/fail.h"
#include "data/stages/normalize.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SIDE = 16384 };

const char *const lk_flip_names[] = {"none", "horizontal", "vertical", "both", NULL};
const char *const lk_decode_names[] = {"scaled", "full", NULL};

#define AT(field) .offset = offsetof(struct lk_stage_values, field)
#define TEXT(field)                                                                            \
    .kind = LK_OPTION_TEXT, AT(field), .count = sizeof((struct lk_stage_values *)0)->field
#define NUMBER .kind = LK_OPTION_REAL, AT(number)

static const struct lk_option no_options[] = {{0}};
static const struct lk_option decode_options[] = {{.name = "jpeg",
                                                   .kind = LK_OPTION_CHOICE,
                                                   AT(choice),
                                                   .choices = lk_decode_names,
                                                   .standard = "scaled"},
                                                  {0}};
static const struct lk_option resize_options[] = {{.name = "size", TEXT(size), .standard = ""},
                                                  {0}};
static const struct lk_option center_crop_options[] = {{.name = "size", TEXT(size)}, {0}};
static const struct lk_option cache_options[] = {{.name = "where", TEXT(where)}, {0}};
static const struct lk_option crop_options[] = {
    {.name = "size", TEXT(size), .standard = ""},
    {.name = "padding", .kind = LK_OPTION_INT, AT(padding), .max = 1024, .standard = "0"},
    {0}};
static const struct lk_option rotate_options[] = {{.name = "degrees", NUMBER, .max = 180}, {0}};
static const struct lk_option flip_options[] = {
    {.name = "axis", .kind = LK_OPTION_CHOICE, AT(choice), .choices = lk_flip_names}, {0}};
static const struct lk_option look_options[] = {{.name = "amount", NUMBER, .max = 10}, {0}};
static const struct lk_option normalize_options[] = {
    {.name = "to", TEXT(to), .standard = ""},
    {.name = "scale", NUMBER, .min = -1e30, .max = 1e30, .standard = "0.00392156862745098"},
    {.name = "mean", TEXT(mean), .standard = ""},
    {.name = "std", TEXT(deviation), .standard = ""},
    {.name = "order", TEXT(order), .standard = ""},
    {0}};
static const struct lk_option one_hot_options[] = {
    {.name = "smoothing", NUMBER, .max = 1, .standard = "0"}, {0}};
static const struct lk_option shuffle_options[] = {
    {.name = "each_epoch", .kind = LK_OPTION_BOOL, AT(flag), .standard = "true"}, {0}};
static const struct lk_option batch_options[] = {
    {.name = "size", .kind = LK_OPTION_INT, AT(batch), .min = 1, .max = 1 << 24},
    {.name = "drop_remainder", .kind = LK_OPTION_BOOL, AT(flag), .standard = "false"},
    {0}};
static const struct lk_option repeat_options[] = {
    {.name = "epochs", .kind = LK_OPTION_INT, AT(count), .min = 1, .max = 1e9}, {0}};
static const struct lk_option prefetch_options[] = {{.name = "batches",
                                                     .kind = LK_OPTION_INT,
                                                     AT(count),
                                                     .min = 0,
                                                     .max = 1024,
                                                     .standard = "0"},
                                                    {.name = "threads",
                                                     .kind = LK_OPTION_INT,
                                                     AT(threads),
                                                     .min = -1,
                                                     .max = 1024,
                                                     .standard = "-1"},
                                                    {0}};

enum lk_status lk_pipeline_size(const char *text, int size[2])
{
    char more;
    int height, width;
    if (!*text)
        return LK_OK;
    if ((sscanf(text, "%5dx%5d%c", &height, &width, &more) != 2 &&
         (sscanf(text, "[%5d , %5d%c", &height, &width, &more) != 3 || more != ']')) ||
        height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT,
                       "size '%s': expected height x width of at most %d, such as 96x96", text,
                       MOST_SIDE);
    size[0] = height;
    size[1] = width;
    return LK_OK;
}

/* For stages that always happen, listing and reading: naming them only says where they
 * stand. */
static enum lk_status take_nothing(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    (void)v;
    (void)p;
    return LK_OK;
}

static enum lk_status take_decode(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->decodes_full = v->choice != 0;
    return LK_OK;
}

static enum lk_status take_resize(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    return lk_pipeline_size(v->size, p->resize);
}

static enum lk_status take_cache(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    snprintf(p->cache, sizeof p->cache, "%s", v->where);
    return LK_OK;
}

static enum lk_status take_rotate(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->rotate = v->number;
    return LK_OK;
}

static enum lk_status take_crop(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->padding = v->padding;
    return lk_pipeline_size(v->size, p->crop);
}

static enum lk_status take_center_crop(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->crops_by_chance = false;
    return lk_pipeline_size(v->size, p->crop);
}

static enum lk_status take_flip(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->flip = v->choice;
    return LK_OK;
}

void lk_pipeline_add_colour(struct lk_pipeline *p, enum lk_colour_stage stage, double amount)
{
    int i = 0;
    while (p->colours[i] != LK_COLOUR_NONE)
        i++;
    p->colours[i] = stage;
    p->amounts[i] = amount;
}

static enum lk_status take_brightness(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    lk_pipeline_add_colour(p, LK_COLOUR_BRIGHTNESS, v->number);
    return LK_OK;
}

static enum lk_status take_contrast(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    lk_pipeline_add_colour(p, LK_COLOUR_CONTRAST, v->number);
    return LK_OK;
}

static enum lk_status take_saturation(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    lk_pipeline_add_colour(p, LK_COLOUR_SATURATION, v->number);
    return LK_OK;
}

/* Its options are the names of fields. */
static enum lk_status take_standardize(const char *text, struct lk_pipeline *p)
{
    struct lk_standardize read;
    LK_TRY(lk_standardize_parse(text, &read));
    if (!lk_standardize_print(&read, p->standardize, sizeof p->standardize))
        return lk_fail(LK_E_ARGUMENT, "more than %zu bytes", sizeof p->standardize);
    p->standardizes = true;
    return LK_OK;
}

static enum lk_status take_one_hot(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->is_one_hot = true;
    p->smoothing = v->number;
    return LK_OK;
}

static enum lk_status take_shuffle(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->says_shuffle = true;
    p->shuffles = v->flag;
    return LK_OK;
}

static enum lk_status take_batch(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->says_batch = true;
    p->batch = v->batch;
    p->drops_remainder = v->flag;
    return LK_OK;
}

static enum lk_status take_repeat(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->epochs = v->count;
    return LK_OK;
}

static enum lk_status take_prefetch(const struct lk_stage_values *v, struct lk_pipeline *p)
{
    p->prefetch = v->count;
    p->says_threads = true;
    p->threads = v->threads;
    return LK_OK;
}

const struct lk_stage lk_stages[] = {
    {"list", 0, false, no_options, take_nothing, NULL},
    {"read", 1, false, no_options, take_nothing, NULL},
    {"decode", LK_STAGE_DECODE, false, decode_options, take_decode, NULL},
    {"resize", LK_STAGE_RESIZE, false, resize_options, take_resize, NULL},
    {"cache", 5, true, cache_options, take_cache, NULL},
    {"rotate", 6, true, rotate_options, take_rotate, NULL},
    {"crop", LK_STAGE_CROP, true, crop_options, take_crop, NULL},
    {"center_crop", LK_STAGE_CROP, false, center_crop_options, take_center_crop, NULL},
    {"flip", 8, true, flip_options, take_flip, NULL},
    {"brightness", LK_STAGE_COLOUR, true, look_options, take_brightness, NULL},
    {"contrast", LK_STAGE_COLOUR, true, look_options, take_contrast, NULL},
    {"saturation", LK_STAGE_COLOUR, true, look_options, take_saturation, NULL},
    {"normalize", 10, false, normalize_options, lk_normalize_take, NULL},
    {"standardize", 11, false, NULL, NULL, take_standardize},
    {"sparse", LK_STAGE_LABELS, true, no_options, take_nothing, NULL},
    {"one_hot", LK_STAGE_LABELS, true, one_hot_options, take_one_hot, NULL},
    {"shuffle", LK_STAGE_SHUFFLE, true, shuffle_options, take_shuffle, NULL},
    {"batch", LK_STAGE_BATCH, true, batch_options, take_batch, NULL},
    {"repeat", 14, true, repeat_options, take_repeat, NULL},
    {"prefetch", 15, true, prefetch_options, take_prefetch, NULL},
    {0},
};

const char lk_stages_text[] =
    "list, read, decode, resize (crop or center_crop before it), cache, rotate, crop or "
    "center_crop, flip, then brightness, contrast and saturation in any order, normalize, "
    "standardize, sparse or one_hot, batch, repeat, prefetch; shuffle anywhere before batch";
