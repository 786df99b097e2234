/* Data sets that are drawn when they are read, so that tests, lessons and `selftest` need no
 * file. Floor 4. Every machine draws the same bits: whole numbers only, also where floats hold
 * them. */
#ifndef LK_DATA_DRAWN_DRAW_H
#define LK_DATA_DRAWN_DRAW_H

#include "base/random.h"
#include "data/sources/source.h"

/* What stands behind the commas of "synthetic:digits,count=3". Each set's table has
 * LK_DRAWN_OPTIONS and may have rows of its own. */
struct lk_drawn_options {
    int64_t count, seed;
    int64_t timesteps, width; /* pairs */
    int other;                /* pairs: where another origin lies */
};

#define LK_DRAWN_OPTION(field)                                                                 \
    .name = #field, .kind = LK_OPTION_INT, .offset = offsetof(struct lk_drawn_options, field), \
    .count = 1
#define LK_DRAWN_OPTIONS                                                                       \
    {LK_DRAWN_OPTION(count), .min = 1, .max = 1e9, .standard = "12000",                        \
     .help = "training samples; the other parts have a sixth of them"},                        \
    {                                                                                          \
        LK_DRAWN_OPTION(seed), .standard = "1", .help = "which samples are drawn"              \
    }

/* One part of a drawn set. */
struct lk_drawn {
    const struct lk_drawn_set *set;
    struct lk_drawn_options options;
    enum lk_data_part part; /* TRAIN or TEST */
    struct lk_field fields[3];
};

/* A kind of samples that can be drawn. */
struct lk_drawn_set {
    const char *name;
    const struct lk_option *options; /* of struct lk_drawn_options */

    /* Fills in the fields of `drawn` and those of `info`, or the size of its images. */
    void (*describe)(struct lk_drawn *drawn, struct lk_data_info *info);

    /* Draws a sample's fields, those that are not NULL; any thread. */
    void (*draw)(const struct lk_drawn *drawn, int64_t index, void *const to[]);
};

extern const struct lk_drawn_set lk_drawn_digits, lk_drawn_pairs;

/* The random numbers of one sample, in the order they are asked for. */
struct lk_draw {
    uint64_t seed, block;
    uint32_t stream;
    struct lk_random4 numbers;
    int left; /* of `numbers`; 0 to begin with */
};

uint32_t lk_draw_bits(struct lk_draw *draw);

/* A whole number, each as likely. */
int lk_draw_between(struct lk_draw *draw, int least, int most);

#endif
