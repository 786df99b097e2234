/* Reading the text of a pipeline, and drawing what it does by chance. */
#include "data/stages/normalize.h"

#include "base/fail.h"
#include "base/random.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STAGE = 700 };

static const char *stage_name(const void *context, int i)
{
    (void)context;
    return lk_stages[i].name;
}

static enum lk_status find_stage(const char *name, const struct lk_stage **stage)
{
    for (const struct lk_stage *s = lk_stages; s->name; s++)
        if (strcmp(s->name, name) == 0) {
            *stage = s;
            return LK_OK;
        }
    const char *near = lk_nearest_name(name, stage_name, NULL);
    return lk_fail(LK_E_ARGUMENT, "unknown stage '%s'%s%s%s; stages are %s", name,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                   lk_stages_text);
}

/* What has been read so far. */
struct reading {
    struct lk_pipeline *pipeline;
    bool is_training;
    const struct lk_stage *last; /* the last one that was not shuffle */
    uint32_t seen;               /* the stages seen so far, a bit each */
};

static uint32_t bit(const struct lk_stage *stage)
{
    return UINT32_C(1) << (stage - lk_stages);
}

/* Whether a resize follows a crop, before any stage that changes samples: it is then that crop
 * that is resized. */
static bool resizes_part(const struct reading *reading, const struct lk_stage *stage)
{
    uint32_t early = 0;
    for (const struct lk_stage *s = lk_stages; s->name; s++)
        if (s->place <= LK_STAGE_DECODE || s->place == LK_STAGE_CROP)
            early |= bit(s);
    return stage->place == LK_STAGE_RESIZE && reading->last &&
           reading->last->place == LK_STAGE_CROP && !(reading->seen & ~early);
}

/* The crop that was read last is one of images, before resize, not one of samples: another crop
 * may follow. */
static enum lk_status move_crop(struct reading *reading)
{
    struct lk_pipeline *p = reading->pipeline;
    if (p->crop[0] == 0)
        return lk_fail(LK_E_ARGUMENT, "a crop before it has a size, this one has none");
    if (p->padding > 0)
        return lk_fail(LK_E_ARGUMENT, "a crop before it pads nothing, this one by %lld",
                       (long long)p->padding);
    for (int i = 0; i < 2; i++) {
        p->first_crop[i] = p->crop[i];
        p->crop[i] = 0;
    }
    p->first_crop_by_chance = p->crops_by_chance;
    p->crops_by_chance = reading->is_training;
    reading->seen &= ~bit(reading->last);
    return LK_OK;
}

static enum lk_status check_place(const struct reading *reading, const struct lk_stage *stage)
{
    const struct lk_stage *last = reading->last;
    if (reading->seen & bit(stage))
        return lk_fail(LK_E_ARGUMENT, "stage '%s' is there twice", stage->name);
    if (!reading->is_training && stage->is_for_training)
        return lk_fail(LK_E_ARGUMENT,
                       "stage '%s' is for training; evaluation has list, read, decode, resize, "
                       "center_crop, normalize and standardize",
                       stage->name);
    if (!last || last->place < stage->place ||
        (stage->place == LK_STAGE_SHUFFLE && last->place < LK_STAGE_BATCH) ||
        (last->place == stage->place && stage->place == LK_STAGE_COLOUR) ||
        resizes_part(reading, stage))
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "stage '%s' cannot stand behind '%s'; the order is %s",
                   stage->name, last->name, lk_stages_text);
}

/* Reads what follows a stage's name as pairs NAME=VALUE; the first may lack its name. */
static enum lk_status read_options(const struct lk_stage *stage, const char *text,
                                   struct lk_stage_values *values)
{
    char pairs[MOST_STAGE];
    const char *first = stage->options[0].name;
    const bool is_bare = *text && text[strcspn(text, " =")] != '=';
    if (is_bare && !first)
        return lk_fail(LK_E_ARGUMENT, "it takes no options, found '%s'", text);
    if (snprintf(pairs, sizeof pairs, "%s%s%s", is_bare ? first : "", is_bare ? "=" : "",
                 text) >= (int)sizeof pairs)
        return lk_fail(LK_E_ARGUMENT, "more than %d characters", MOST_STAGE);
    return lk_options_parse(stage->options, values, pairs);
}

/* Reads one stage: "crop 96x96 padding=4". */
static enum lk_status read_stage(struct reading *reading, const char *text)
{
    char name[64];
    struct lk_stage_values values = {0};
    const struct lk_stage *stage = NULL;
    const size_t length = strcspn(text, " ");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), text);
    LK_TRY(find_stage(name, &stage));
    LK_TRY(check_place(reading, stage));
    const char *rest = text + length + strspn(text + length, " ");
    enum lk_status status = stage->options ? read_options(stage, rest, &values) : LK_OK;
    if (status == LK_OK && resizes_part(reading, stage))
        status = move_crop(reading);
    if (status == LK_OK)
        status = stage->options ? stage->take(&values, reading->pipeline)
                                : stage->take_text(rest, reading->pipeline);
    if (status != LK_OK)
        return lk_fail_within(status, "stage '%s'", name);
    reading->seen |= bit(stage);
    if (stage->place != LK_STAGE_SHUFFLE)
        reading->last = stage;
    return LK_OK;
}

static enum lk_status read_stages(const char *text, bool is_training, struct lk_pipeline *p)
{
    struct reading reading = {.pipeline = p, .is_training = is_training};
    for (const char *at = text; *at;) {
        char stage[LK_STANDARDIZE_TEXT + 16];
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

/* Reads the shorthand, "flip=horizontal padding=4", where the order is ours. */
static enum lk_status read_pairs(const char *text, struct lk_pipeline *p)
{
    struct pairs {
        double rotate, amounts[LK_COLOUR_STAGES];
        int64_t padding;
        int flip;
        char normalize[16];
    } pairs;
#define PAIR(field) .offset = offsetof(struct pairs, field), .standard = "0"
    static const struct lk_option table[] = {
        {.name = "rotate", .kind = LK_OPTION_REAL, PAIR(rotate), .max = 180},
        {.name = "padding", .kind = LK_OPTION_INT, PAIR(padding), .max = 1024},
        {.name = "flip",
         .kind = LK_OPTION_CHOICE,
         .offset = offsetof(struct pairs, flip),
         .standard = "none",
         .choices = lk_flip_names},
        {.name = "brightness", .kind = LK_OPTION_REAL, PAIR(amounts[0]), .max = 10},
        {.name = "contrast", .kind = LK_OPTION_REAL, PAIR(amounts[1]), .max = 10},
        {.name = "saturation", .kind = LK_OPTION_REAL, PAIR(amounts[2]), .max = 10},
        {.name = "normalize",
         .kind = LK_OPTION_TEXT,
         .offset = offsetof(struct pairs, normalize),
         .count = sizeof pairs.normalize,
         .standard = ""},
        {0},
    };
#undef PAIR
    struct lk_stage_values normalize = {.number = 1 / 255.0};
    LK_TRY(lk_options_parse(table, &pairs, text));
    p->rotate = pairs.rotate;
    p->padding = pairs.padding;
    p->flip = pairs.flip;
    for (int i = 0; i < LK_COLOUR_STAGES; i++)
        if (pairs.amounts[i] > 0)
            lk_pipeline_add_colour(p, (enum lk_colour_stage)(LK_COLOUR_BRIGHTNESS + i),
                                   pairs.amounts[i]);
    snprintf(normalize.to, sizeof normalize.to, "%s", pairs.normalize);
    return *pairs.normalize ? lk_normalize_take(&normalize, p) : LK_OK;
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
    p.first_crop_by_chance = p.crops_by_chance = false;
    p.is_one_hot = false;
    p.flip = LK_FLIP_NONE;
    for (int i = 0; i < LK_COLOUR_STAGES; i++) {
        p.colours[i] = LK_COLOUR_NONE;
        p.amounts[i] = 0;
    }
    return p;
}

const char *lk_pipeline_image_stage(const struct lk_pipeline *p)
{
    static const char *const colours[] = {"", "brightness", "contrast", "saturation"};
    return p->decodes_full                    ? "decode"
           : p->resize[0] || p->first_crop[0] ? "resize"
           : p->rotate > 0                    ? "rotate"
           : p->crop[0] || p->padding         ? "crop"
           : p->flip != LK_FLIP_NONE          ? "flip"
           : p->colours[0]                    ? colours[p->colours[0]]
           : p->values > 0                    ? "normalize"
                                              : NULL;
}

/* --- the device's part ----------------------------------------------------------------- */

struct lk_transform_params lk_pipeline_transform_params(const struct lk_pipeline *p,
                                                        uint64_t seed, int64_t epoch,
                                                        int64_t sample)
{
    struct lk_transform_params draw = {{0}, 0};
    const struct lk_random4 places =
        lk_random(seed, LK_RANDOM_AUGMENT, (uint32_t)epoch, (uint64_t)sample);
    const struct lk_random4 colours =
        lk_random(seed, LK_RANDOM_TRANSFORM, (uint32_t)epoch, (uint64_t)sample);
    if ((p->flip & LK_FLIP_HORIZONTAL) && (places.v[2] & 1))
        draw.mirror += LK_FLIP_LEFT_RIGHT;
    if ((p->flip & LK_FLIP_VERTICAL) && (places.v[2] & 2))
        draw.mirror += LK_FLIP_UP_DOWN;
    for (int i = 0; i < LK_COLOUR_STAGES; i++) {
        const double least = p->amounts[i] < 1 ? 1 - p->amounts[i] : 0;
        draw.factors[i] =
            (float)(least + (1 + p->amounts[i] - least) * lk_random_unit(colours.v[i]));
    }
    return draw;
}

void lk_pipeline_draw_crop(uint64_t seed, int64_t epoch, int64_t sample, double at[2])
{
    const struct lk_random4 r =
        lk_random(seed, LK_RANDOM_CROP, (uint32_t)epoch, (uint64_t)sample);
    for (int i = 0; i < 2; i++)
        at[i] = lk_random_unit(r.v[i]);
}
