/* Fills a batch with random images and labels. */
#include "bench/samples.h"

#include "base/random.h"
#include <string.h>

void lk_samples_fill(struct lk_stepper *stepper, const struct lk_model *model, int slot,
                     int64_t samples)
{
    const struct lk_shape image = lk_node_info(lk_model_input(model, 0)).shape;
    const struct lk_shape output = lk_node_info(lk_model_output(model)).shape;
    uint8_t *images = lk_stepper_images(stepper, slot);
    int32_t *labels = lk_stepper_labels(stepper, slot);
    const int64_t count = samples * lk_shape_count(&image);
    for (int64_t i = 0; i < count; i += 16) {
        const struct lk_random4 r = lk_random(1, LK_RANDOM_DATA, (uint32_t)slot, (uint64_t)i);
        memcpy(images + i, r.v, count - i < 16 ? (size_t)(count - i) : 16);
    }
    for (int64_t i = 0; i < samples; i++) {
        const struct lk_random4 r = lk_random(2, LK_RANDOM_DATA, (uint32_t)slot, (uint64_t)i);
        labels[i] = (int32_t)(r.v[0] % (uint32_t)output.dim[0]);
    }
}
