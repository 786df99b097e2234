/* Fills a batch with random images, numbers, tokens and labels; sequences have their full
 * length. */
#include "bench/samples.h"

#include "base/random.h"
#include "model/model.h"
#include <string.h>

/* How many whole numbers an input of such may have: the rows of the table of parameters that
 * the operation reading it looks them up in. */
static int64_t count_tokens(const struct lk_node *node)
{
    for (int i = 0; i < node->graph->count; i++) {
        const struct lk_node *reader = node->graph->nodes[i];
        for (int j = 0; j < reader->inputs; j++)
            if (reader->input_nodes[j] == node && reader->shapes.params > 0)
                return reader->shapes.param[0].shape.dim[0];
    }
    return 1;
}

/* Bytes of images, whole floats below 1 of numbers, classes of integers. */
static void fill_input(const struct lk_node *node, int64_t classes, void *memory, int slot,
                       int64_t samples)
{
    const struct lk_input *input = &node->input;
    const bool is_label = input->dtype == LK_F32 && !input->takes_numbers;
    const int64_t count = samples * (is_label ? 1 : lk_shape_count(&input->shape));
    if (input->dtype == LK_U8) {
        uint8_t *bytes = memory;
        for (int64_t i = 0; i < count; i += 16) {
            const struct lk_random4 r =
                lk_random(1, LK_RANDOM_DATA, (uint32_t)slot, (uint64_t)i);
            memcpy(bytes + i, r.v, count - i < 16 ? (size_t)(count - i) : 16);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct lk_random4 r = lk_random(2, LK_RANDOM_DATA, (uint32_t)slot, (uint64_t)i);
        if (input->dtype == LK_F32 && !is_label)
            ((float *)memory)[i] = (float)(r.v[0] >> 8) * 0x1p-24F;
        else
            ((int32_t *)memory)[i] = (int32_t)(r.v[0] % (uint32_t)classes);
    }
}

void lk_samples_fill(struct lk_stepper *stepper, const struct lk_model *model, int slot,
                     int64_t samples)
{
    struct lk_replica *replica = lk_stepper_replica(stepper);
    for (int i = 0; i < model->input_count; i++) {
        void *memory = lk_replica_slot(replica, model->inputs[i], slot);
        const struct lk_node *sequence = model->inputs[i]->sequence;
        for (int64_t k = 0; memory && sequence && k < samples; k++)
            ((int32_t *)memory)[k] = (int32_t)sequence->shapes.y.dim[0];
        if (memory && !sequence)
            fill_input(model->inputs[i], count_tokens(model->inputs[i]), memory, slot, samples);
    }
    for (int i = 0; i < model->output_count; i++) {
        const struct lk_model_output *output = &model->outputs[i];
        if (output->target)
            fill_input(output->target, output->shape.width,
                       lk_replica_slot(replica, output->target, slot), slot, samples);
    }
}
