/* A pipeline: what happens to samples between a data set and a device, as a text of stages in
 * the order in which they happen, "rotate 10 | crop padding=4 | flip horizontal | brightness
 * 0.2". Floor 4. Only describes; batches.c and a device's loader carry it out. Knows no data
 * set. */
#ifndef LK_DATA_STAGES_PIPELINE_H
#define LK_DATA_STAGES_PIPELINE_H

#include "data/stages/standardize.h"
#include "tensor/transform.h"
#include <lockstep/status.h>
#include <stddef.h>
#include <stdint.h>

enum { LK_PIPELINE_TEXT = LK_STANDARDIZE_TEXT + 1024 };

enum lk_flip { LK_FLIP_NONE, LK_FLIP_HORIZONTAL, LK_FLIP_VERTICAL, LK_FLIP_BOTH };

/* A pipeline that was read; {0} changes nothing. Sizes are height and width; 0: the text does
 * not say. */
struct lk_pipeline {
    bool decodes_full; /* JPEGs are decoded in full size, not in a smaller one that is
                        * enough */
    int first_crop[2]; /* of an image, in its own pixels, before it is resized */
    bool first_crop_by_chance;
    int resize[2];
    double rotate;   /* degrees, at most */
    int crop[2];     /* the size to which a sample is cropped */
    int64_t padding; /* a crop may reach so many pixels beyond the edge */
    bool crops_by_chance;
    int flip;                                       /* enum lk_flip */
    enum lk_colour_stage colours[LK_COLOUR_STAGES]; /* in their order */
    /* factors lie in [max(0, 1 - amount), 1 + amount] */
    double amounts[LK_COLOUR_STAGES];
    int values; /* how many means and deviations normalize has: 1, or one a channel; 0: no
                 * normalize */
    double scale, mean[LK_TRANSFORM_CHANNELS], deviation[LK_TRANSFORM_CHANNELS];
    bool reverses; /* normalize also turns the order of channels around: rgb to bgr */
    bool standardizes;
    char standardize[LK_STANDARDIZE_TEXT]; /* as lk_standardize_parse() reads it */
    bool is_one_hot; /* labels become a number for each class, of which `smoothing` is spread
                      * evenly */
    double smoothing;

    /* what concerns batches, not samples */
    bool says_shuffle, shuffles, says_batch, drops_remainder, says_threads;
    int64_t batch, epochs, prefetch, threads; /* 0: not said (says_threads tells for threads) */
    char cache[512];                          /* as of struct lk_data_options; "": not said */
};

/* Reads a pipeline: stages with '|' between them; or for training "flip=horizontal padding=4
 * rotate=10 brightness=0.2 contrast=0.2 saturation=0.2 normalize=torchvision", in whatever
 * order, which then happens as rotate, crop, flip, brightness, contrast, saturation, normalize.
 * In training a smaller size than the sample's is cut out by chance, unless there is
 * center_crop; evaluation has no chance. fails: LK_E_ARGUMENT an unknown stage or option, one
 * twice, an order that cannot be */
LK_MUST_CHECK enum lk_status lk_pipeline_parse(const char *text, bool is_training,
                                               struct lk_pipeline *pipeline);

/* The pipeline of an evaluation that follows from one of training: sizes and normalize. */
struct lk_pipeline lk_pipeline_evaluation(const struct lk_pipeline *training);

/* Writes its stages of samples, which are read back to the same; equal ones give equal texts.
 * False: there was no room for all of it, at most LK_PIPELINE_TEXT bytes. */
bool lk_pipeline_print(const struct lk_pipeline *pipeline, char *text, size_t bytes);

/* The first of its stages that is for images alone; NULL: there is none. */
const char *lk_pipeline_image_stage(const struct lk_pipeline *pipeline);

/* The stages that the device carries out, for images of so many channels. fails: LK_E_ARGUMENT
 * a stage cannot have that number of channels */
LK_MUST_CHECK enum lk_status lk_pipeline_transform(const struct lk_pipeline *pipeline,
                                                   int channels,
                                                   struct lk_transform *transform);

/* Draws a sample's flip and colour factors, as a function of (seed, epoch, sample) alone. */
struct lk_transform_params lk_pipeline_transform_params(const struct lk_pipeline *pipeline,
                                                        uint64_t seed, int64_t epoch,
                                                        int64_t sample);

/* Draws where the crop of an image lies, from 0 to 1 of the room that is left, down and to the
 * right; a function of (seed, epoch, sample) alone. */
void lk_pipeline_draw_crop(uint64_t seed, int64_t epoch, int64_t sample, double at[2]);

/* Reads "96x96" or "[96, 96]", height and width of 1 to 16384; "" leaves `size` as it is.
 * fails: LK_E_ARGUMENT */
LK_MUST_CHECK enum lk_status lk_pipeline_size(const char *text, int size[2]);

#endif
