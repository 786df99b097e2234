/* Opens the weights that a run has stored. */
#include "model/foreign/stored.h"

#include "base/fail.h"
#include "model/checkpoint/checkpoint.h"
#include <stdlib.h>
#include <string.h>

enum lk_status lk_stored_open(const char *run, struct lk_stored *s)
{
    struct lk_checkpoint_file *file = NULL;
    LK_TRY(lk_checkpoint_find(run, s->path, sizeof s->path));
    LK_TRY(lk_checkpoint_open(s->path, &file)); /* compares all sums */
    const struct lk_checkpoint *about = lk_checkpoint_metadata(file);
    enum lk_status status =
        lk_model_read(about->model_text, strlen(about->model_text), about->model, &s->model);
    s->averaged = lk_checkpoint_takes_average(file);
    s->vocabulary = strdup(about->vocabulary ? about->vocabulary : "");
    s->pipeline = strdup(about->eval_pipeline ? about->eval_pipeline : "");
    lk_checkpoint_close(file);
    if (status == LK_OK && (!s->vocabulary || !s->pipeline))
        status = lk_fail_memory("a vocabulary", 0);
    return status == LK_OK ? lk_arrays_open(s->path, &s->file) : status;
}

void lk_stored_close(struct lk_stored *s)
{
    free(s->vocabulary);
    free(s->pipeline);
    lk_arrays_close(s->file);
    lk_model_destroy(s->model);
    *s = (struct lk_stored){0};
}

const struct lk_array *lk_stored_find(const struct lk_stored *s, const char *param)
{
    char average[LK_AVERAGE_NAME];
    const struct lk_array *array = NULL;
    lk_checkpoint_name_average(param, average);
    if (s->averaged)
        array = lk_arrays_find(s->file, average);
    return array ? array : lk_arrays_find(s->file, param);
}
