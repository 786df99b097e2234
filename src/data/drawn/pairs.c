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
    NOISE = 1024, /* times -15..15, as views are */
    BLOCK = 32,   /* numbers along the width that are drawn together */
    MOST_BLOCKS = MOST_WIDTH / BLOCK,
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

struct view {
    float blocks[MOST_BLOCKS][PLACES][BLOCK];
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

/* Makes -15, -13 .. 15 of each four bits of a block of random numbers. */
static void spread(struct lk_random4 r, float to[BLOCK])
{
    for (int k = 0; k < BLOCK / 4; k++)
        for (int i = 0; i < 4; i++)
            to[4 * k + i] = (float)(2 * (int)(r.v[i] >> 4 * k & 15) - 15);
}

/* BLOCK numbers of a time step, from the place at that step and a block of random numbers. In
 * vectors, because compilers take the bits of spread() out of each word one by one. */
static void see_block(const float at[PLACES], float view[PLACES][BLOCK],
                      const struct lk_random4 *r, float *to)
{
    typedef uint32_t bits4 __attribute__((vector_size(16)));
    typedef float float4 __attribute__((vector_size(16)));
    typedef int32_t int4 __attribute__((vector_size(16)));
    bits4 bits;
    memcpy(&bits, r->v, sizeof bits);
    for (int i = 0; i < BLOCK; i += 4, bits >>= 4) {
        float4 seen = NOISE * __builtin_convertvector(2 * (int4)(bits & 15) - 15, float4);
        for (int j = 0; j < PLACES; j++) {
            float4 part;
            memcpy(&part, &view[j][i], sizeof part);
            seen += at[j] * part;
        }
        seen *= scale;
        memcpy(to + i, &seen, sizeof seen);
    }
}

/* Draws the numbers of a time step, of the last block no more than there is room for. Random
 * numbers are made for all blocks at once: read just after they were written they would be
 * waited for. */
static void see_row(const struct lk_draw *d, uint64_t step, const float at[PLACES],
                    const struct lk_drawn_options *o, struct view *view, float *x)
{
    struct lk_random4 r[MOST_BLOCKS];
    float part[BLOCK];
    const int whole = (int)(o->width / BLOCK), rest = (int)(o->width % BLOCK);
    for (int k = 0; k < whole + !!rest; k++)
        r[k] = lk_random(d->seed, LK_RANDOM_DATA, d->stream,
                         d->block + (uint64_t)(k * o->timesteps) + step);
    for (int k = 0; k < whole; k++)
        see_block(at, view->blocks[k], &r[k], x + k * BLOCK);
    if (rest) {
        see_block(at, view->blocks[whole], &r[whole], part);
        memcpy(x + whole * BLOCK, part, (size_t)rest * sizeof *x);
    }
}

/* Row by row, since it is memory that takes the time: a quarter less than block by block. */
static void see(struct lk_draw *d, const struct sequence *sequence,
                const struct lk_drawn_options *o, float *x)
{
    struct view view;
    uint64_t block = 0;
    for (int k = 0; k * BLOCK < o->width; k++)
        for (int j = 0; j < PLACES; j++)
            spread(lk_random(d->seed, LK_RANDOM_DATA, VIEW_STREAM, block++), view.blocks[k][j]);
    for (int64_t t = 0; t < o->timesteps; t++)
        see_row(d, (uint64_t)t, sequence->at[t], o, &view, x + t * o->width);
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
