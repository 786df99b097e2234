/* Opens checkpoints, checks them, and copies what they hold to a device. */
#include "model/checkpoint/checkpoint.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/log.h"
#include "model/checkpoint/arrays.h"
#include "model/checkpoint/fields.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum lk_status find_text(const struct lk_checkpoint_file *file, const char *key,
                                const char **text)
{
    const char *found = lk_safetensors_text(file->tensors, key);
    if (!found)
        return lk_fail(LK_E_DATA,
                       "%s: a checkpoint says '%s' in its metadata, this one does "
                       "not",
                       file->path, key);
    *text = found;
    return LK_OK;
}

static enum lk_status find_number(const struct lk_checkpoint_file *file, const char *key,
                                  int64_t *number)
{
    const char *text = NULL;
    char *end = NULL;
    LK_TRY(find_text(file, key, &text));
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < 0)
        return lk_fail(LK_E_DATA, "%s: '%s' is '%.40s', expected a whole number of at least 0",
                       file->path, key, text);
    *number = value;
    return LK_OK;
}

/* A text that was escaped as it was; files of format 1 have none. */
static enum lk_status unescape(struct lk_checkpoint_file *file, const char **text)
{
    void *memory;
    const size_t bytes = strlen(*text) + 1;
    if (!strstr(*text, "\\x") ||
        strcmp(lk_safetensors_text(file->tensors, "format"), LK_CHECKPOINT_FORMAT) != 0)
        return LK_OK;
    LK_TRY(lk_arena_allocate(&file->texts, bytes, &memory));
    memcpy(memory, *text, bytes);
    lk_unescape(memory);
    *text = memory;
    return LK_OK;
}

static bool is_missing(const struct lk_checkpoint_file *file,
                       const struct lk_checkpoint_field *field)
{
    return field->is_newer && !lk_safetensors_text(file->tensors, field->key);
}

/* Opening the file has compared the header's sum, where there is one. */
static enum lk_status check_format(const struct lk_checkpoint_file *file)
{
    const char *text = lk_safetensors_text(file->tensors, "format"), *sum;
    if (text && strcmp(text, LK_CHECKPOINT_FORMAT_1) == 0)
        return LK_OK;
    if (text && strcmp(text, LK_CHECKPOINT_FORMAT) == 0)
        return find_text(file, LK_SAFETENSORS_SUM, &sum);
    return lk_fail(LK_E_DATA, "%s: expected a checkpoint of format %s, found %s%.40s",
                   file->path, LK_CHECKPOINT_FORMAT, text ? "format " : "other arrays",
                   text ? text : "");
}

static enum lk_status read_metadata(struct lk_checkpoint_file *file)
{
    LK_TRY(check_format(file));
    for (int i = 0; i < LK_CHECKPOINT_TEXTS; i++) {
        const struct lk_checkpoint_field *field = &lk_checkpoint_texts[i];
        const char **text = lk_checkpoint_text(field, &file->about);
        if (is_missing(file, field))
            continue;
        LK_TRY(find_text(file, field->key, text));
        LK_TRY(unescape(file, text));
    }
    for (int i = 0; i < LK_CHECKPOINT_NUMBERS; i++) {
        const struct lk_checkpoint_field *field = &lk_checkpoint_numbers[i];
        if (!is_missing(file, field))
            LK_TRY(find_number(file, field->key, lk_checkpoint_number(field, &file->about)));
    }
    if (!lk_safetensors_text(file->tensors, "updates"))
        file->about.updates = file->about.step;
    if (!lk_safetensors_text(file->tensors, "choices"))
        file->about.choices = "math strict\n"; /* files so old know no other */
    return LK_OK;
}

static enum lk_status add_tensors(const struct lk_safetensors *file, bool state, void *room,
                                  struct lk_sha256 *sum)
{
    for (int i = 0; i < file->count; i++) {
        const struct lk_safetensor *tensor = &file->tensors[i];
        if (lk_checkpoint_is_state(tensor->name) != state)
            continue;
        LK_TRY(lk_safetensors_read(file, tensor, room));
        lk_sha256_add(sum, room, (size_t)tensor->bytes);
    }
    return LK_OK;
}

static enum lk_status check_sum(const struct lk_checkpoint_file *file, bool state, void *room,
                                const char *expected)
{
    struct lk_sha256 sum = {0};
    char found[LK_SHA256_TEXT];
    LK_TRY(lk_sha256_init(&sum));
    const enum lk_status status = add_tensors(file->tensors, state, room, &sum);
    lk_sha256_finish(&sum, found);
    lk_sha256_clear(&sum);
    LK_TRY(status);
    if (strcmp(found, expected) != 0)
        return lk_fail(LK_E_DATA,
                       "%s: damaged: the %s have the SHA-256 sum %.12s..., expected "
                       "%.12s...",
                       file->path, state ? "optimizer's arrays" : "parameters", found,
                       expected);
    return LK_OK;
}

static enum lk_status check_sums(const struct lk_checkpoint_file *file)
{
    const char *state = NULL;
    uint64_t most = 1;
    LK_TRY(find_text(file, "state_sha256", &state));
    for (int i = 0; i < file->tensors->count; i++)
        if (file->tensors->tensors[i].bytes > most)
            most = file->tensors->tensors[i].bytes;
    void *room = malloc((size_t)most);
    if (!room)
        return lk_fail_memory("a checkpoint", most);
    enum lk_status status = check_sum(file, false, room, file->about.parameters_sha256);
    if (status == LK_OK)
        status = check_sum(file, true, room, state);
    free(room);
    return status;
}

enum lk_status lk_checkpoint_open(const char *path, struct lk_checkpoint_file **file)
{
    struct lk_checkpoint_file *made = calloc(1, sizeof *made);
    enum lk_status status;
    if (!made)
        return lk_fail_memory("a checkpoint", sizeof *made);
    snprintf(made->path, sizeof made->path, "%s", path);
    LK_TRY_OUT(lk_safetensors_open(path, &made->tensors));
    LK_TRY_OUT(read_metadata(made));
    LK_TRY_OUT(check_sums(made));
    *file = made;
    return LK_OK;
out:
    lk_checkpoint_close(made);
    return status;
}

void lk_checkpoint_close(struct lk_checkpoint_file *file)
{
    if (!file)
        return;
    lk_safetensors_close(file->tensors);
    lk_arena_clear(&file->texts);
    free(file);
}

const struct lk_checkpoint *lk_checkpoint_metadata(const struct lk_checkpoint_file *file)
{
    return &file->about;
}

/* --- into a replica -------------------------------------------------------------------- */

static const char average_prefix[] = "optimizer." LK_EMA_ARRAY ".";

static void print_tensor(const struct lk_safetensor *tensor, char text[160])
{
    size_t used = (size_t)snprintf(text, 160, "%s [", lk_safetensor_type_name(tensor->type));
    for (int i = 0; i < tensor->rank && used < 130; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%lld", i ? ", " : "",
                                 (long long)tensor->shape[i]);
    snprintf(text + used, 160 - used, "]");
}

static bool fits(const struct lk_safetensor *a, const struct lk_safetensor *b)
{
    bool same = a->type == b->type && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

/* Reads the array of that name in the file. */
static enum lk_status read_array(const struct lk_checkpoint_file *file, const char *name,
                                 struct lk_checkpoint_array *array)
{
    char expected[160], found[160];
    const struct lk_safetensor *there = lk_safetensors_find(file->tensors, name);
    if (!there)
        return lk_fail(LK_E_DATA, "%s: array '%s' of the model is missing", file->path,
                       array->name);
    if (!fits(there, &array->tensor)) {
        print_tensor(&array->tensor, expected);
        print_tensor(there, found);
        return lk_fail(LK_E_DATA, "%s: array '%s' is %s, the model expects %s", file->path,
                       array->name, found, expected);
    }
    return lk_safetensors_read(file->tensors, there, array->data);
}

void lk_checkpoint_name_average(const char *param, char name[LK_AVERAGE_NAME])
{
    snprintf(name, LK_AVERAGE_NAME, "%s%.160s", average_prefix, param);
}

static enum lk_status check_extra(const struct lk_checkpoint_file *file,
                                  const struct lk_checkpoint_arrays *arrays, bool with_state)
{
    for (int i = 0; i < file->tensors->count; i++) {
        const char *name = file->tensors->tensors[i].name;
        bool known = !with_state && lk_checkpoint_is_state(name);
        for (int j = 0; !known && j < arrays->count; j++)
            known = strcmp(arrays->list[j].name, name) == 0;
        if (!known)
            return lk_fail(LK_E_DATA, "%s: the model has no array '%.100s'", file->path, name);
    }
    return LK_OK;
}

static enum lk_status check_optimizer(const struct lk_checkpoint_file *file,
                                      const struct lk_optimizer_info *optimizer)
{
    if (!optimizer || strcmp(optimizer->kind->name, file->about.optimizer) == 0)
        return LK_OK;
    return lk_fail(LK_E_DATA, "%s: written with optimizer '%s', this run has '%s'", file->path,
                   file->about.optimizer, optimizer->kind->name);
}

enum lk_status lk_checkpoint_read(const struct lk_checkpoint_file *file,
                                  struct lk_replica *replica,
                                  const struct lk_optimizer_info *optimizer)
{
    struct lk_checkpoint_arrays arrays = {0};
    enum lk_status status;
    LK_TRY_OUT(check_optimizer(file, optimizer));
    LK_TRY_OUT(lk_checkpoint_arrays_list(replica, optimizer, NULL, &arrays));
    for (int i = 0; i < arrays.count; i++)
        LK_TRY_OUT(read_array(file, arrays.list[i].name, &arrays.list[i]));
    LK_TRY_OUT(check_extra(file, &arrays, optimizer != NULL));
    status = lk_checkpoint_arrays_put(&arrays);
out:
    lk_checkpoint_arrays_clear(&arrays);
    return status;
}

bool lk_checkpoint_has_average(const struct lk_checkpoint_file *file)
{
    for (int i = 0; i < file->tensors->count; i++)
        if (strncmp(file->tensors->tensors[i].name, average_prefix,
                    sizeof average_prefix - 1) == 0 &&
            lk_checkpoint_is_state(file->tensors->tensors[i].name))
            return true;
    return false;
}

bool lk_checkpoint_takes_average(const struct lk_checkpoint_file *file)
{
    const bool takes = file->about.step > 0 && lk_checkpoint_has_average(file);
    if (takes)
        lk_log(LK_LOG_INFO, "the weights are their moving average over steps (ema)");
    return takes;
}

enum lk_status lk_checkpoint_read_average(const struct lk_checkpoint_file *file,
                                          struct lk_replica *replica)
{
    const bool takes_average = lk_checkpoint_takes_average(file);
    struct lk_checkpoint_arrays arrays = {0};
    enum lk_status status;
    LK_TRY_OUT(lk_checkpoint_arrays_list(replica, NULL, NULL, &arrays));
    for (int i = 0; i < arrays.count; i++) {
        char average[LK_AVERAGE_NAME];
        lk_checkpoint_name_average(arrays.list[i].name, average);
        const bool is_there = takes_average && lk_safetensors_find(file->tensors, average);
        LK_TRY_OUT(read_array(file, is_there ? average : arrays.list[i].name, &arrays.list[i]));
    }
    LK_TRY_OUT(check_extra(file, &arrays, false));
    status = lk_checkpoint_arrays_put(&arrays);
out:
    lk_checkpoint_arrays_clear(&arrays);
    return status;
}
