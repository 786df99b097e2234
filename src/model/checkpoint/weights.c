/* Writes what predicts of a checkpoint as one of its own, without a device. */
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/fields.h"

#include "base/build.h"
#include "base/fail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weights {
    struct lk_safetensor *tensors; /* [count], with data of their own */
    int count;
    struct lk_sha256 sum;
    struct lk_checkpoint_metadata metadata;
};

/* The parameter, or its average. */
static enum lk_status take(struct weights *w, const struct lk_safetensors *file,
                           const struct lk_safetensor *param, bool takes_average)
{
    char name[LK_AVERAGE_NAME];
    lk_checkpoint_name_average(param->name, name);
    const struct lk_safetensor *average =
        takes_average ? lk_safetensors_find(file, name) : NULL;
    const struct lk_safetensor *from =
        average && average->bytes == param->bytes ? average : param;
    struct lk_safetensor *to = &w->tensors[w->count];
    void *data = malloc((size_t)param->bytes + 1);
    if (!data)
        return lk_fail_memory(param->name, param->bytes);
    *to = *param;
    to->data = data;
    w->count++;
    LK_TRY(lk_safetensors_read(file, from, data));
    lk_sha256_add(&w->sum, data, (size_t)param->bytes);
    return LK_OK;
}

static enum lk_status take_all(struct weights *w, const struct lk_safetensors *file,
                               bool takes_average)
{
    LK_TRY(lk_sha256_init(&w->sum));
    w->tensors = calloc((size_t)file->count + 1, sizeof *w->tensors);
    if (!w->tensors)
        return lk_fail_memory("weights", (size_t)file->count * sizeof *w->tensors);
    for (int i = 0; i < file->count; i++)
        if (!lk_checkpoint_is_state(file->tensors[i].name))
            LK_TRY(take(w, file, &file->tensors[i], takes_average));
    lk_sha256_finish(&w->sum, w->metadata.parameters);
    return lk_sha256_of("", 0, w->metadata.state);
}

enum lk_status lk_checkpoint_write_weights(const struct lk_checkpoint_file *file,
                                           const char *path, char sum[LK_SHA256_TEXT])
{
    struct weights w = {0};
    struct lk_checkpoint about = file->about;
    enum lk_status status;
    LK_TRY_OUT(take_all(&w, file->tensors, lk_checkpoint_takes_average(file)));
    about.optimizer = about.optimizer_options = about.plateau = about.callbacks = "";
    about.version = LK_VERSION;
    about.build = lk_build;
    about.parameters_sha256 = w.metadata.parameters;
    LK_TRY_OUT(lk_checkpoint_fill_metadata(&about, &w.metadata));
    status = lk_safetensors_write(path, w.tensors, w.count, w.metadata.entries,
                                  LK_CHECKPOINT_ENTRIES);
    memcpy(sum, w.metadata.parameters, LK_SHA256_TEXT);
out:
    for (int i = 0; i < w.count; i++)
        free((void *)(uintptr_t)w.tensors[i].data);
    free(w.tensors);
    lk_sha256_clear(&w.sum);
    lk_arena_clear(&w.metadata.escaped);
    return status;
}
