#include "data/pipeline.h"

#include "base/fail.h"
#include "base/number.h"
#include "base/option.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SIDE = 16384, MOST_STAGE = 700 };

/* --- stages ---------------------------------------------------------------------------- */

/* Options of all stages; each has some of them. */
struct values {
    char size[32], where[512], to[16], mean[128], deviation[128];
    double number;
    int64_t padding, batch, count, threads;
    int flip;
    bool flag;
};

static const char *const flips[] = {"none", "horizontal", "vertical", "both", NULL};

#define AT(field) .offset = offsetof(struct values, field)
#define TEXT(field)                                                                            \
    .kind = LK_OPTION_TEXT, AT(field), .count = sizeof((struct values *)0)->field
#define NUMBER .kind = LK_OPTION_REAL, AT(number)

static const struct lk_option size_options[] = {{.name = "size", TEXT(size)}, {0}};
static const struct lk_option cache_options[] = {{.name = "where", TEXT(where)}, {0}};
static const struct lk_option crop_options[] = {
    {.name = "size", TEXT(size), .standard = ""},
    {.name = "padding", .kind = LK_OPTION_INT, AT(padding), .max = 1024, .standard = "0"},
    {0}};
static const struct lk_option rotate_options[] = {{.name = "degrees", NUMBER, .max = 180}, {0}};
static const struct lk_option flip_options[] = {
    {.name = "axis", .kind = LK_OPTION_CHOICE, AT(flip), .choices = flips}, {0}};
static const struct lk_option look_options[] = {{.name = "amount", NUMBER, .max = 10}, {0}};
static const struct lk_option normalize_options[] = {
    {.name = "to", TEXT(to), .standard = ""},
    {.name = "scale", NUMBER, .min = -1e30, .max = 1e30, .standard = "0.00392156862745098"},
    {.name = "mean", TEXT(mean), .standard = "0"},
    {.name = "std", TEXT(deviation), .standard = "1"},
    {0}};
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
    if ((sscanf(text, "%dx%d%c", &height, &width, &more) != 2 &&
         (sscanf(text, "[%d , %d%c", &height, &width, &more) != 3 || more != ']')) ||
        height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE)
        return lk_fail(LK_E_ARGUMENT,
                       "size '%s': expected height x width of at most %d, such as 96x96", text,
                       MOST_SIDE);
    size[0] = height;
    size[1] = width;
    return LK_OK;
}

static enum lk_status take_resize(const struct values *v, struct lk_pipeline *p)
{
    return lk_pipeline_size(v->size, p->resize);
}

static enum lk_status take_cache(const struct values *v, struct lk_pipeline *p)
{
    snprintf(p->cache, sizeof p->cache, "%s", v->where);
    return LK_OK;
}

static enum lk_status take_rotate(const struct values *v, struct lk_pipeline *p)
{
    p->rotate = v->number;
    return LK_OK;
}

static enum lk_status take_crop(const struct values *v, struct lk_pipeline *p)
{
    p->padding = v->padding;
    return lk_pipeline_size(v->size, p->crop);
}

static enum lk_status take_center_crop(const struct values *v, struct lk_pipeline *p)
{
    p->crops_by_chance = false;
    return lk_pipeline_size(v->size, p->crop);
}

static enum lk_status take_flip(const struct values *v, struct lk_pipeline *p)
{
    p->flip = v->flip;
    return LK_OK;
}

static enum lk_status take_look(enum lk_look_stage stage, double amount, struct lk_pipeline *p)
{
    int i = 0;
    while (p->looks[i] != LK_LOOK_NONE)
        i++;
    p->looks[i] = stage;
    p->amounts[i] = amount;
    return LK_OK;
}

static enum lk_status take_brightness(const struct values *v, struct lk_pipeline *p)
{
    return take_look(LK_LOOK_BRIGHTNESS, v->number, p);
}

static enum lk_status take_contrast(const struct values *v, struct lk_pipeline *p)
{
    return take_look(LK_LOOK_CONTRAST, v->number, p);
}

static enum lk_status take_saturation(const struct values *v, struct lk_pipeline *p)
{
    return take_look(LK_LOOK_SATURATION, v->number, p);
}

/* "[0.5, 0.4, 0.3]" or "0.5". */
static enum lk_status read_numbers(const char *name, const char *text,
                                   double numbers[LK_LOOK_CHANNELS], int *count)
{
    const char *at = text + strspn(text, " [");
    *count = 0;
    while (*count < LK_LOOK_CHANNELS && *at && *at != ']') {
        char *end;
        numbers[*count] = lk_number_read(at, &end);
        if (end == at || !(numbers[*count] >= -1e30 && numbers[*count] <= 1e30))
            break;
        ++*count;
        at = end + strspn(end, " ,");
    }
    if (*count > 0 && !at[strspn(at, " ]")])
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "option '%s': '%s' is not a number for each channel", name,
                   text);
}

static enum lk_status take_normalize(const struct values *v, struct lk_pipeline *p)
{
    const bool is_signed = strcmp(v->to, "-1..1") == 0;
    int means = 0, deviations = 0;
    if (*v->to && !is_signed && strcmp(v->to, "0..1") != 0)
        return lk_fail(LK_E_ARGUMENT, "option 'to': '%s' is none of 0..1, -1..1", v->to);
    LK_TRY(read_numbers("mean", is_signed ? "0.5" : v->mean, p->mean, &means));
    LK_TRY(read_numbers("std", is_signed ? "0.5" : v->deviation, p->deviation, &deviations));
    p->values = means > deviations ? means : deviations;
    p->scale = v->number;
    if ((means != p->values && means != 1) || (deviations != p->values && deviations != 1))
        return lk_fail(LK_E_ARGUMENT, "%d values of mean and %d of std", means, deviations);
    for (int i = 1; i < p->values; i++) {
        p->mean[i] = p->mean[means == 1 ? 0 : i];
        p->deviation[i] = p->deviation[deviations == 1 ? 0 : i];
    }
    for (int i = 0; i < p->values; i++)
        if (!(p->deviation[i] > 0))
            return lk_fail(LK_E_ARGUMENT, "option 'std': expected numbers above 0");
    return LK_OK;
}

static enum lk_status take_shuffle(const struct values *v, struct lk_pipeline *p)
{
    p->says_shuffle = true;
    p->shuffles = v->flag;
    return LK_OK;
}

static enum lk_status take_batch(const struct values *v, struct lk_pipeline *p)
{
    p->says_batch = true;
    p->batch = v->batch;
    p->drops_remainder = v->flag;
    return LK_OK;
}

static enum lk_status take_repeat(const struct values *v, struct lk_pipeline *p)
{
    p->epochs = v->count;
    return LK_OK;
}

static enum lk_status take_prefetch(const struct values *v, struct lk_pipeline *p)
{
    p->prefetch = v->count;
    p->says_threads = true;
    p->threads = v->threads;
    return LK_OK;
}

/* Stages of one place may stand in any order among themselves, each once. */
struct stage {
    const char *name;
    int place;
    bool is_for_training;
    const struct lk_option *options; /* the first may stand without its name */
    enum lk_status (*take)(const struct values *, struct lk_pipeline *);
};

static const struct stage stages[] = {
    {"resize", 0, false, size_options, take_resize},
    {"cache", 1, true, cache_options, take_cache},
    {"shuffle", 2, true, shuffle_options, take_shuffle},
    {"rotate", 3, true, rotate_options, take_rotate},
    {"crop", 4, true, crop_options, take_crop},
    {"center_crop", 4, false, size_options, take_center_crop},
    {"flip", 5, true, flip_options, take_flip},
    {"brightness", 6, true, look_options, take_brightness},
    {"contrast", 6, true, look_options, take_contrast},
    {"saturation", 6, true, look_options, take_saturation},
    {"normalize", 7, false, normalize_options, take_normalize},
    {"batch", 8, true, batch_options, take_batch},
    {"repeat", 9, true, repeat_options, take_repeat},
    {"prefetch", 10, true, prefetch_options, take_prefetch},
    {0},
};

static const char order_text[] =
    "resize, cache, shuffle, rotate, crop or center_crop, flip, then brightness, contrast and "
    "saturation in any order, normalize, batch, repeat, prefetch";

/* --- reading --------------------------------------------------------------------------- */

static const char *stage_name(const void *context, int i)
{
    (void)context;
    return stages[i].name;
}

static enum lk_status find_stage(const char *name, const struct stage **stage)
{
    for (const struct stage *s = stages; s->name; s++)
        if (strcmp(s->name, name) == 0) {
            *stage = s;
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, stage_name, NULL);
    return lk_fail(LK_E_ARGUMENT, "unknown stage '%s'%s%s%s; stages are %s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                   order_text);
}

/* What has been read so far. */
struct reading {
    struct lk_pipeline *pipeline;
    bool is_training;
    const struct stage *last;
    unsigned seen; /* a bit for each stage */
};

static enum lk_status check_place(const struct reading *reading, const struct stage *stage)
{
    if (reading->seen >> (stage - stages) & 1)
        return lk_fail(LK_E_ARGUMENT, "stage '%s' is there twice", stage->name);
    if (!reading->is_training && stage->is_for_training)
        return lk_fail(LK_E_ARGUMENT,
                       "stage '%s' is for training; evaluation has resize, center_crop and "
                       "normalize",
                       stage->name);
    if (!reading->last || reading->last->place < stage->place ||
        (reading->last->place == stage->place && stage->take != take_crop &&
         stage->take != take_center_crop))
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "stage '%s' cannot stand behind '%s'; the order is %s",
                   stage->name, reading->last->name, order_text);
}

/* One stage: "crop 96x96 padding=4". */
static enum lk_status read_stage(struct reading *reading, const char *text)
{
    char name[64], pairs[MOST_STAGE];
    struct values values = {0};
    const struct stage *stage = NULL;
    const size_t length = strcspn(text, " ");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), text);
    LK_TRY(find_stage(name, &stage));
    LK_TRY(check_place(reading, stage));
    const char *rest = text + length + strspn(text + length, " ");
    const bool is_bare = *rest && rest[strcspn(rest, " =")] != '=';
    if (snprintf(pairs, sizeof pairs, "%s%s%s", is_bare ? stage->options[0].name : "",
                 is_bare ? "=" : "", rest) >= (int)sizeof pairs)
        return lk_fail(LK_E_ARGUMENT, "stage '%s': more than %d characters", name, MOST_STAGE);
    enum lk_status status = lk_options_parse(stage->options, &values, pairs);
    if (status == LK_OK)
        status = stage->take(&values, reading->pipeline);
    if (status != LK_OK)
        return lk_fail_within(status, "stage '%s'", name);
    reading->seen |= 1u << (stage - stages);
    reading->last = stage;
    return LK_OK;
}

static enum lk_status read_stages(const char *text, bool is_training, struct lk_pipeline *p)
{
    struct reading reading = {.pipeline = p, .is_training = is_training};
    for (const char *at = text; *at;) {
        char stage[MOST_STAGE];
        size_t length = strcspn(at, "|");
        const char *next = at + length + (at[length] == '|');
        const size_t blank = strspn(at, " ");
        at += blank < length ? blank : length;
        length -= blank < length ? blank : length;
        while (length > 0 && at[length - 1] == ' ')
            length--;
        if (length == 0 || length >= sizeof stage)
            return lk_fail(LK_E_ARGUMENT, "expected a stage on each side of '|' in '%.100s'",
                           text);
        snprintf(stage, sizeof stage, "%.*s", (int)length, at);
        LK_TRY(read_stage(&reading, stage));
        at = next;
    }
    return LK_OK;
}

/* The shorthand, in which the order is ours. */
static enum lk_status read_pairs(const char *text, struct lk_pipeline *p)
{
    struct pairs {
        double rotate, amounts[LK_LOOK_STAGES];
        int64_t padding;
        int flip;
    } pairs;
#define PAIR(field) .offset = offsetof(struct pairs, field), .standard = "0"
    static const struct lk_option table[] = {
        {.name = "rotate", .kind = LK_OPTION_REAL, PAIR(rotate), .max = 180},
        {.name = "padding", .kind = LK_OPTION_INT, PAIR(padding), .max = 1024},
        {.name = "flip",
         .kind = LK_OPTION_CHOICE,
         .offset = offsetof(struct pairs, flip),
         .standard = "none",
         .choices = flips},
        {.name = "brightness", .kind = LK_OPTION_REAL, PAIR(amounts[0]), .max = 10},
        {.name = "contrast", .kind = LK_OPTION_REAL, PAIR(amounts[1]), .max = 10},
        {.name = "saturation", .kind = LK_OPTION_REAL, PAIR(amounts[2]), .max = 10},
        {0},
    };
#undef PAIR
    LK_TRY(lk_options_parse(table, &pairs, text));
    p->rotate = pairs.rotate;
    p->padding = pairs.padding;
    p->flip = pairs.flip;
    for (int i = 0; i < LK_LOOK_STAGES; i++)
        if (pairs.amounts[i] > 0)
            LK_TRY(
                take_look((enum lk_look_stage)(LK_LOOK_BRIGHTNESS + i), pairs.amounts[i], p));
    return LK_OK;
}

enum lk_status lk_pipeline_parse(const char *text, bool is_training,
                                 struct lk_pipeline *pipeline)
{
    struct lk_pipeline made = {.crops_by_chance = is_training};
    text += strspn(text, " ");
    const bool is_short = is_training && text[strcspn(text, " =|")] == '=';
    const enum lk_status status =
        is_short ? read_pairs(text, &made) : read_stages(text, is_training, &made);
    if (status != LK_OK)
        return lk_fail_within(status, is_short ? "augment" : "pipeline");
    *pipeline = made;
    return LK_OK;
}

struct lk_pipeline lk_pipeline_evaluation(const struct lk_pipeline *training)
{
    struct lk_pipeline p = *training;
    p.rotate = 0;
    p.padding = 0;
    p.crops_by_chance = false;
    p.flip = LK_FLIP_NONE;
    for (int i = 0; i < LK_LOOK_STAGES; i++) {
        p.looks[i] = LK_LOOK_NONE;
        p.amounts[i] = 0;
    }
    return p;
}

/* --- printing -------------------------------------------------------------------------- */

struct printed {
    char *text;
    size_t used, bytes;
};

static void print(struct printed *to, const char *text)
{
    if (to->used < to->bytes)
        to->used += (size_t)snprintf(to->text + to->used, to->bytes - to->used, "%s", text);
}

static void print_stage(struct printed *to, const char *name)
{
    print(to, to->used ? " | " : "");
    print(to, name);
}

static void print_number(struct printed *to, const char *before, double number)
{
    char text[64];
    print(to, before);
    lk_number_print(number, text, sizeof text);
    print(to, text);
}

static void print_size(struct printed *to, const int size[2])
{
    char text[64];
    snprintf(text, sizeof text, " size=%dx%d", size[0], size[1]);
    if (size[0])
        print(to, text);
}

static void print_numbers(struct printed *to, const char *before, const double *numbers,
                          int count)
{
    print(to, before);
    for (int i = 0; i < count; i++)
        print_number(to, i ? ", " : "", numbers[i]);
    print(to, "]");
}

void lk_pipeline_print(const struct lk_pipeline *p, char *text, size_t bytes)
{
    static const char *const names[] = {"", "brightness", "contrast", "saturation"};
    struct printed to = {.text = text, .bytes = bytes};
    text[0] = '\0';
    if (p->resize[0]) {
        print_stage(&to, "resize");
        print_size(&to, p->resize);
    }
    if (p->rotate > 0) {
        print_stage(&to, "rotate");
        print_number(&to, " degrees=", p->rotate);
    }
    if (p->crop[0] || p->padding) {
        print_stage(&to, p->crops_by_chance ? "crop" : "center_crop");
        print_size(&to, p->crop);
        if (p->padding)
            print_number(&to, " padding=", (double)p->padding);
    }
    if (p->flip != LK_FLIP_NONE) {
        print_stage(&to, "flip axis=");
        print(&to, flips[p->flip]);
    }
    for (int i = 0; i < LK_LOOK_STAGES && p->looks[i] != LK_LOOK_NONE; i++) {
        print_stage(&to, names[p->looks[i]]);
        print_number(&to, " amount=", p->amounts[i]);
    }
    if (p->values > 0) {
        print_stage(&to, "normalize");
        print_number(&to, " scale=", p->scale);
        print_numbers(&to, " mean=[", p->mean, p->values);
        print_numbers(&to, " std=[", p->deviation, p->values);
    }
}

/* --- the device's part ----------------------------------------------------------------- */

enum lk_status lk_pipeline_look(const struct lk_pipeline *p, int channels, struct lk_look *look)
{
    struct lk_look made = {.mirrors = p->flip != LK_FLIP_NONE, .channels = channels};
    if (p->looks[0] != LK_LOOK_NONE && channels != 1 && channels != 3)
        return lk_fail(LK_E_ARGUMENT,
                       "brightness, contrast and saturation are for images of 1 or 3 channels, "
                       "these have %d",
                       channels);
    if (p->values > 1 && p->values != channels)
        return lk_fail(LK_E_ARGUMENT, "normalize has values for %d channels, images have %d",
                       p->values, channels);
    for (int i = 0; i < LK_LOOK_STAGES; i++)
        made.stages[i] = p->looks[i];
    made.normalizes = p->values > 0;
    for (int i = 0; i < LK_LOOK_CHANNELS && made.normalizes; i++) {
        const int from = i < p->values ? i : 0;
        made.scale[i] = p->scale / p->deviation[from];
        made.shift[i] = -p->mean[from] / p->deviation[from];
    }
    *look = made;
    return LK_OK;
}

struct lk_look_draw lk_pipeline_draw(const struct lk_pipeline *p, uint64_t seed, int64_t epoch,
                                     int64_t sample)
{
    struct lk_look_draw draw = {{0}, 0};
    const struct lk_random4 places =
        lk_random(seed, LK_RANDOM_AUGMENT, (uint32_t)epoch, (uint64_t)sample);
    const struct lk_random4 looks =
        lk_random(seed, LK_RANDOM_LOOK, (uint32_t)epoch, (uint64_t)sample);
    if ((p->flip & LK_FLIP_HORIZONTAL) && (places.v[2] & 1))
        draw.mirror += LK_MIRROR_ROWS;
    if ((p->flip & LK_FLIP_VERTICAL) && (places.v[2] & 2))
        draw.mirror += LK_MIRROR_COLUMNS;
    for (int i = 0; i < LK_LOOK_STAGES; i++) {
        const double least = p->amounts[i] < 1 ? 1 - p->amounts[i] : 0;
        draw.factors[i] =
            (float)(least + (1 + p->amounts[i] - least) * lk_random_unit(looks.v[i]));
    }
    return draw;
}
