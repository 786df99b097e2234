/* synthetic:pairs: two sequences a and b [timesteps, width], and whether they have the same
 * origin.
 *
 * An origin is a place in PLACES dimensions. A sequence wanders round its origin: at time step
 * t it is at s[t] = place + wave(t), and is seen as x[t][k] = sum over j of s[t][j] view[j][k],
 * plus noise. The view is the same for all samples of a seed; phases and speeds of the waves,
 * and the noise, are each sequence's own.
 *
 * Half of the pairs have one origin. The others have two; with other=higher that of b is the
 * higher one in each dimension. With other=any no single sequence tells anything of the label,
 * so that a sum of what is computed of each, such as one dense layer on both side by side, can
 * learn nothing: its log-loss, which is convex in that sum, is least where the sum is 0. */
#include "base/fail.h"
#include "data/drawn/draw.h"

#include <string.h>

enum {
    PLACES = 4,
    RANGE = 1024,  /* of a place in each direction, and of a wave */
    LONGEST = 140, /* a wave, in time steps */
    SHORTEST = 20,
    MOST_STEPS = 4096,
    MOST_WIDTH = 4096,
    NOISE = 1024,      /* times -15..15, as views are */
    BLOCK = 32,        /* numbers along the width that are drawn together */
    LABEL_BLOCKS = 4,  /* of random numbers: label and places */
    WAVE_BLOCKS = 2,   /* phases and speeds of a sequence */
    VIEW_STREAM = 2,   /* beside those of digits, 0 and 1 */
    SAMPLE_STREAM = 3, /* of TRAIN, then of TEST */
};
static const float scale = 0x1p-14F; /* makes numbers of about 1 */

enum { A, B, LABEL };

enum { OTHER_HIGHER, OTHER_ANY };
static const char *const others[] = {"higher", "any", NULL};

static const struct lk_option options[] = {
    LK_DRAWN_OPTIONS,
    {LK_DRAWN_OPTION(timesteps), .min = 1, .max = MOST_STEPS, .standard = "140",
     .help = "of a sequence"},
    {LK_DRAWN_OPTION(width), .min = 1, .max = MOST_WIDTH, .standard = "256",
     .help = "numbers of a time step"},
    {.name = "other",
     .kind = LK_OPTION_CHOICE,
     .offset = offsetof(struct lk_drawn_options, other),
     .choices = others,
     .standard = "higher",
     .help = "where the origin of b lies that is not that of a"},
    {0},
};

/* All numbers are whole and below 2^24, so that floats hold them and their sums exactly. */
struct sequence {
    float at[MOST_STEPS][PLACES];
};

/* A wave from -RANGE to RANGE of two parabolas. phase: 65536 are once round. */
static int wave(uint32_t phase)
{
    const int half = (int)(phase & 0x7fff);
    const int height = half * (0x8000 - half) / (0x10000000 / RANGE);
    return phase & 0x8000 ? -height : height;
}

static void wander(struct lk_draw *d, const int place[PLACES], int64_t timesteps,
                   struct sequence *sequence)
{
    for (int j = 0; j < PLACES; j++) {
        uint32_t phase = (uint32_t)lk_draw_between(d, 0, 0xffff);
        const uint32_t speed =
            (uint32_t)lk_draw_between(d, 0x10000 / LONGEST, 0x10000 / SHORTEST);
        for (int64_t t = 0; t < timesteps; t++, phase += speed)
            sequence->at[t][j] = (float)(place[j] + wave(phase));
    }
}

/* Writes -15, -13 .. 15 into BLOCK floats, by one block of random numbers. */
static void draw_block(struct lk_draw *d, float *to)
{
    const struct lk_random4 r = lk_random(d->seed, LK_RANDOM_DATA, d->stream, d->block++);
    for (int k = 0; k < 8; k++)
        for (int i = 0; i < 4; i++)
            to[4 * k + i] = (float)(2 * (int)(r.v[i] >> 4 * k & 15) - 15);
}

/* Draws BLOCK numbers of each time step, from number k on. */
static void see_block(struct lk_draw *d, const struct sequence *sequence,
                      float view[PLACES][BLOCK], const struct lk_drawn_options *o, int64_t k,
                      float *x)
{
    const int64_t count = o->width - k < BLOCK ? o->width - k : BLOCK;
    for (int64_t t = 0; t < o->timesteps; t++) {
        const float *at = sequence->at[t];
        float seen[BLOCK];
        draw_block(d, seen);
        for (int i = 0; i < BLOCK; i++)
            seen[i] = (NOISE * seen[i] + at[0] * view[0][i] + at[1] * view[1][i] +
                       at[2] * view[2][i] + at[3] * view[3][i]) *
                      scale;
        memcpy(x + t * o->width + k, seen, (size_t)count * sizeof *x);
    }
}

static void see(struct lk_draw *d, const struct sequence *sequence,
                const struct lk_drawn_options *o, float *x)
{
    struct lk_draw of_view = {.seed = d->seed, .stream = VIEW_STREAM};
    for (int64_t k = 0; k < o->width; k += BLOCK) {
        float view[PLACES][BLOCK];
        for (int j = 0; j < PLACES; j++)
            draw_block(&of_view, view[j]);
        see_block(d, sequence, view, o, k, x);
    }
}

/* Blocks of random numbers that a sequence takes. */
static uint64_t sequence_blocks(const struct lk_drawn_options *o)
{
    const int64_t across = (o->width + BLOCK - 1) / BLOCK;
    return WAVE_BLOCKS + (uint64_t)(o->timesteps * across);
}

/* Two places; those of one origin are equal. */
static bool draw_places(struct lk_draw *d, int other, int places[2][PLACES])
{
    const bool is_same = lk_draw_bits(d) >> 31;
    for (int j = 0; j < PLACES; j++) {
        const int one = lk_draw_between(d, -RANGE, RANGE);
        const int two = lk_draw_between(d, -RANGE, RANGE);
        const bool turns = other == OTHER_HIGHER && !is_same && two < one;
        places[A][j] = turns ? two : one;
        places[B][j] = is_same || turns ? one : two;
    }
    return is_same;
}

static void draw_sample(const struct lk_drawn *drawn, int64_t index, void *const to[])
{
    const struct lk_drawn_options *o = &drawn->options;
    const uint64_t each = sequence_blocks(o);
    const uint64_t first = (uint64_t)index * (LABEL_BLOCKS + 2 * each);
    struct lk_draw d = {.seed = (uint64_t)o->seed,
                        .block = first,
                        .stream = SAMPLE_STREAM + (uint32_t)drawn->part};
    int places[2][PLACES];
    const bool is_same = draw_places(&d, o->other, places);
    if (to[LABEL])
        *(int32_t *)to[LABEL] = is_same;
    for (int i = A; i <= B; i++) {
        struct sequence sequence;
        d.block = first + LABEL_BLOCKS + (uint64_t)i * each;
        d.left = 0;
        if (!to[i])
            continue;
        wander(&d, places[i], o->timesteps, &sequence);
        see(&d, &sequence, o, to[i]);
    }
}

static void describe(struct lk_drawn *drawn, struct lk_data_info *info)
{
    static const char *const names[] = {"different", "same"};
    const struct lk_drawn_options *o = &drawn->options;
    const struct lk_shape shape = {2, {o->timesteps, o->width}};
    drawn->fields[A] =
        (struct lk_field){.name = "a", .dtype = LK_F32, .shape = shape, .length = -1};
    drawn->fields[B] =
        (struct lk_field){.name = "b", .dtype = LK_F32, .shape = shape, .length = -1};
    drawn->fields[LABEL] = (struct lk_field){.name = "label",
                                             .dtype = LK_I32,
                                             .role = LK_FIELD_LABEL,
                                             .length = -1,
                                             .classes = LK_COUNT(names),
                                             .class_names = names};
    info->fields = drawn->fields;
    info->field_count = LK_COUNT(drawn->fields);
}

const struct lk_drawn_set lk_drawn_pairs = {
    .name = "pairs", .options = options, .describe = describe, .draw = draw_sample};
