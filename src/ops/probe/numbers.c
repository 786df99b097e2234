/* Fills a probe's buffers: random numbers, and 0 where a gated gradient has to be 0. */
#include "base/fail.h"
#include "base/half.h"
#include "base/random.h"
#include "ops/probe/probe.h"
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 1 << 16,    /* random numbers, repeated where an array is longer */
    WRITTEN = 4 * BLOCK /* numbers that are written at a time, which wakes a thread */
};

static void draw(float *block, bool clipped)
{
    for (int i = 0; i < BLOCK; i += 4) {
        const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, 0, (uint64_t)i);
        for (int j = 0; j < 4; j++)
            block[i + j] = (float)(2 * lk_random_unit(r.v[j] | 1) - 1 + 1e-9);
    }
    for (int i = 0; i < BLOCK && clipped; i++)
        block[i] = block[i] > 0 ? block[i] : 0;
    for (int i = BLOCK; i < WRITTEN; i += BLOCK)
        memcpy(block + i, block, BLOCK * sizeof *block);
}

static enum lk_status fill_floats(struct lk_buffer *buffer, bool clipped)
{
    const size_t bytes = lk_buffer_bytes(buffer), most = WRITTEN * sizeof(float);
    enum lk_status status = LK_OK;
    float *block = malloc(most);
    if (!block)
        return lk_fail_memory("random numbers", most);
    draw(block, clipped);
    for (size_t at = 0; at < bytes && status == LK_OK; at += most)
        status = lk_buffer_write(buffer, at, bytes - at < most ? bytes - at : most, block);
    free(block);
    return status;
}

enum lk_status lk_buffer_fill_random(struct lk_buffer *buffer)
{
    return fill_floats(buffer, false);
}

static enum lk_status fill_halves(struct lk_buffer *buffer, bool clipped)
{
    const size_t bytes = lk_buffer_bytes(buffer), most = WRITTEN * sizeof(uint16_t);
    enum lk_status status = LK_OK;
    float *block = malloc(WRITTEN * sizeof *block);
    uint16_t *halves = malloc(most);
    if (block && halves)
        draw(block, clipped);
    else
        status = lk_fail_memory("random numbers", WRITTEN * sizeof *block + most);
    for (int i = 0; i < WRITTEN && status == LK_OK; i++)
        halves[i] = lk_half_of(block[i]);
    for (size_t at = 0; at < bytes && status == LK_OK; at += most)
        status = lk_buffer_write(buffer, at, bytes - at < most ? bytes - at : most, halves);
    free(block);
    free(halves);
    return status;
}

/* Fills a buffer; clipped: negative numbers become 0, as behind a relu. */
static enum lk_status fill(const struct lk_buffer *buffer, enum lk_dtype dtype, bool clipped)
{
    struct lk_buffer *filled = (struct lk_buffer *)buffer;
    if (!buffer)
        return LK_OK;
    return dtype == LK_F16 ? fill_halves(filled, clipped) : fill_floats(filled, clipped);
}

static enum lk_status write(const struct lk_buffer *buffer, enum lk_dtype dtype, int64_t first,
                            int64_t count, const float *values)
{
    struct lk_buffer *written = (struct lk_buffer *)buffer;
    const size_t at = (size_t)first * lk_dtype_bytes(dtype);
    if (dtype != LK_F16)
        return lk_buffer_write(written, at, (size_t)count * sizeof *values, values);
    const size_t bytes = (size_t)count * sizeof(uint16_t);
    uint16_t *halves = malloc(bytes);
    if (!halves)
        return lk_fail_memory("halves", bytes);
    for (int64_t i = 0; i < count; i++)
        halves[i] = lk_half_of(values[i]);
    const enum lk_status status = lk_buffer_write(written, at, bytes, halves);
    free(halves);
    return status;
}

/* Sets dy to 0 where y is not > 0. */
static enum lk_status gate(const struct lk_op_setup *setup, const struct lk_op_run *run)
{
    const enum lk_dtype stored = lk_op_stored(setup);
    const int64_t count = (int64_t)(lk_buffer_bytes(run->y) / lk_dtype_bytes(stored));
    enum lk_status status = LK_OK;
    float *y = malloc(2 * BLOCK * sizeof *y);
    if (!y)
        return lk_fail_memory("gates", 2 * BLOCK * sizeof *y);
    float *dy = y + BLOCK;
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = lk_least(BLOCK, count - at);
        LK_TRY_OUT(lk_probe_read(run->y, stored, at, n, y));
        LK_TRY_OUT(lk_probe_read(run->dy, stored, at, n, dy));
        for (int64_t i = 0; i < n; i++)
            dy[i] = y[i] > 0 ? dy[i] : 0;
        LK_TRY_OUT(write(run->dy, stored, at, n, dy));
    }
out:
    free(y);
    return status;
}

bool lk_probe_is_length(const struct lk_op *op, const struct lk_op_shapes *shapes, int i)
{
    return op->takes_length && i > 0 && i == shapes->inputs - 1 &&
           shapes->x_dtype[i] == LK_I32 && shapes->x[i].rank == 0;
}

static enum lk_status fill_input(const struct lk_probe *probe, int i)
{
    const struct lk_op_setup *s = &probe->setup;
    const struct lk_buffer *x = probe->runs[0].x[i];
    if (s->shapes.x_dtype[i] == LK_F32)
        return fill(x, lk_op_stored(s), s->asks_gate[i]);
    const int32_t steps =
        lk_probe_is_length(probe->op, &s->shapes, i) ? (int32_t)s->shapes.x[0].dim[0] : 0;
    const size_t bytes = lk_buffer_bytes(x);
    int32_t *numbers = malloc(bytes);
    if (!numbers)
        return lk_fail_memory("whole numbers", bytes);
    for (size_t n = 0; n < bytes / sizeof *numbers; n++)
        numbers[n] = steps;
    const enum lk_status status = lk_buffer_write((struct lk_buffer *)x, 0, bytes, numbers);
    free(numbers);
    return status;
}

static enum lk_status copy(const struct lk_buffer *from, const struct lk_buffer *to)
{
    return lk_buffer_enqueue_copy(from, (struct lk_buffer *)to, lk_buffer_bytes(from));
}

enum lk_status lk_probe_fill(struct lk_probe *probe)
{
    const struct lk_op_run *first = &probe->runs[0];
    const enum lk_dtype stored = lk_op_stored(&probe->setup);
    for (int j = 0; j < probe->setup.shapes.params; j++)
        LK_TRY(fill(first->w[j], LK_F32, false));
    for (int i = 0; i < probe->setup.shapes.inputs; i++)
        LK_TRY(fill_input(probe, i));
    LK_TRY(fill(first->dy, stored, false));
    LK_TRY(lk_probe_forward(probe, 0));
    if (probe->setup.dy_is_gated && first->dy)
        LK_TRY(gate(&probe->setup, first));
    for (int n = 1; n < probe->copies; n++) {
        for (int i = 0; i < probe->setup.shapes.inputs; i++)
            LK_TRY(copy(first->x[i], probe->runs[n].x[i]));
        if (first->dy)
            LK_TRY(copy(first->dy, probe->runs[n].dy));
        LK_TRY(lk_probe_forward(probe, n));
    }
    return lk_device_finish(probe->setup.device);
}

enum lk_status lk_probe_read(const struct lk_buffer *buffer, enum lk_dtype dtype, int64_t first,
                             int64_t count, float *values)
{
    const size_t at = (size_t)first * lk_dtype_bytes(dtype);
    if (dtype != LK_F16)
        return lk_buffer_read(buffer, at, (size_t)count * sizeof *values, values);
    const size_t bytes = (size_t)count * sizeof(uint16_t);
    uint16_t *halves = malloc(bytes);
    if (!halves)
        return lk_fail_memory("halves", bytes);
    const enum lk_status status = lk_buffer_read(buffer, at, bytes, halves);
    for (int64_t i = 0; i < count && status == LK_OK; i++)
        values[i] = lk_half_value(halves[i]);
    free(halves);
    return status;
}
