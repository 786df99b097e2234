/* Writes checkpoints: arrays, and the metadata that go with them. */
#include "model/checkpoint/checkpoint.h"

#include "base/build.h"
#include "base/escape.h"
#include "base/fail.h"
#include "model/checkpoint/arrays.h"
#include "model/checkpoint/fields.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name)                                                                            \
    {                                                                                          \
        .key = #name, .offset = offsetof(struct lk_checkpoint, name)                           \
    }
#define NEWER(name)                                                                            \
    {                                                                                          \
        .key = #name, .offset = offsetof(struct lk_checkpoint, name), .is_newer = true         \
    }

const struct lk_checkpoint_field lk_checkpoint_texts[] = {
    FIELD(model),      FIELD(model_text),        FIELD(data),
    FIELD(validation), NEWER(pipeline),          NEWER(eval_pipeline),
    NEWER(max_bad),    FIELD(data_sum),          FIELD(device),
    NEWER(choices),    NEWER(classes),           NEWER(vocabulary),
    NEWER(plateau),    FIELD(optimizer),         FIELD(version),
    NEWER(build),      FIELD(optimizer_options), FIELD(parameters_sha256),
    NEWER(callbacks)};
const struct lk_checkpoint_field lk_checkpoint_numbers[] = {
    FIELD(step),     FIELD(epoch),   FIELD(index),           FIELD(seed),
    FIELD(batch),    FIELD(shuffle), FIELD(shards),          FIELD(lanes),
    FIELD(vector),   NEWER(updates), NEWER(drop_remainder),  NEWER(mixed),
    NEWER(versions), NEWER(bucket),  NEWER(owes_evaluation), NEWER(planes)};

const char **lk_checkpoint_text(const struct lk_checkpoint_field *field,
                                struct lk_checkpoint *about)
{
    return (const char **)(void *)((char *)about + field->offset);
}

int64_t *lk_checkpoint_number(const struct lk_checkpoint_field *field,
                              struct lk_checkpoint *about)
{
    return (int64_t *)(void *)((char *)about + field->offset);
}

/* The text as UTF-8: paths need not be. */
static enum lk_status escape(struct lk_arena *arena, const char **text)
{
    void *memory;
    if (!lk_needs_escape(*text))
        return LK_OK;
    LK_TRY(lk_arena_allocate(arena, LK_ESCAPED_BYTES(strlen(*text)), &memory));
    lk_escape(*text, memory);
    *text = memory;
    return LK_OK;
}

enum lk_status lk_checkpoint_fill_metadata(const struct lk_checkpoint *from,
                                           struct lk_checkpoint_metadata *metadata)
{
    struct lk_checkpoint about = *from;
    int used = 0;
    metadata->entries[used++] = (struct lk_safetensors_text){"format", LK_CHECKPOINT_FORMAT};
    metadata->entries[used++] = (struct lk_safetensors_text){LK_SAFETENSORS_SUM, ""};
    metadata->entries[used++] = (struct lk_safetensors_text){"state_sha256", metadata->state};
    for (int i = 0; i < LK_CHECKPOINT_TEXTS; i++) {
        const char *text = *lk_checkpoint_text(&lk_checkpoint_texts[i], &about);
        text = text ? text : "";
        LK_TRY(escape(&metadata->escaped, &text));
        metadata->entries[used++] =
            (struct lk_safetensors_text){lk_checkpoint_texts[i].key, text};
    }
    for (int i = 0; i < LK_CHECKPOINT_NUMBERS; i++) {
        snprintf(metadata->numbers[i], sizeof metadata->numbers[i], "%lld",
                 (long long)*lk_checkpoint_number(&lk_checkpoint_numbers[i], &about));
        metadata->entries[used++] =
            (struct lk_safetensors_text){lk_checkpoint_numbers[i].key, metadata->numbers[i]};
    }
    return LK_OK;
}

static enum lk_status describe(const struct lk_checkpoint *from,
                               const struct lk_replica *replica,
                               const struct lk_optimizer_info *optimizer,
                               struct lk_checkpoint_metadata *metadata)
{
    const struct lk_tiling *tiling = lk_replica_tiling(replica);
    struct lk_checkpoint about = *from;
    if (optimizer &&
        !lk_options_print(optimizer->kind->options, optimizer->options, true,
                          metadata->optimizer_options, sizeof metadata->optimizer_options))
        return lk_fail(LK_E_ARGUMENT, "the options of %s are too long", optimizer->kind->name);
    about.optimizer = optimizer ? optimizer->kind->name : "";
    about.optimizer_options = metadata->optimizer_options;
    about.lanes = tiling->lanes;
    about.vector = tiling->vector;
    about.version = LK_VERSION;
    about.build = lk_build;
    about.parameters_sha256 = metadata->parameters; /* computed when it is written */
    return lk_checkpoint_fill_metadata(&about, metadata);
}

struct lk_snapshot {
    struct lk_checkpoint_arrays arrays;
    struct lk_checkpoint_metadata metadata;
    struct lk_safetensor *tensors;
    int64_t step;
};

static enum lk_status take(const struct lk_checkpoint *about, const struct lk_replica *replica,
                           const struct lk_optimizer_info *optimizer,
                           const struct lk_host_state *state, struct lk_snapshot *s)
{
    LK_TRY(lk_checkpoint_arrays_list(replica, optimizer, state, &s->arrays));
    s->tensors = calloc((size_t)s->arrays.count + 1, sizeof *s->tensors);
    if (!s->tensors)
        return lk_fail_memory("a checkpoint", (size_t)s->arrays.count * sizeof *s->tensors);
    if (!state)
        LK_TRY(lk_checkpoint_arrays_fetch(&s->arrays));
    for (int i = 0; i < s->arrays.count; i++)
        s->tensors[i] = s->arrays.list[i].tensor;
    return describe(about, replica, optimizer, &s->metadata);
}

enum lk_status lk_snapshot_take(const struct lk_checkpoint *about,
                                const struct lk_replica *replica,
                                const struct lk_optimizer_info *optimizer,
                                const struct lk_host_state *state,
                                struct lk_snapshot **snapshot)
{
    struct lk_snapshot *made = calloc(1, sizeof *made);
    if (!made)
        return lk_fail_memory("a checkpoint", sizeof *made);
    made->step = about->step;
    const enum lk_status status = take(about, replica, optimizer, state, made);
    if (status != LK_OK) {
        lk_snapshot_destroy(made);
        return status;
    }
    *snapshot = made;
    return LK_OK;
}

void lk_snapshot_destroy(struct lk_snapshot *snapshot)
{
    if (!snapshot)
        return;
    free(snapshot->tensors);
    lk_checkpoint_arrays_clear(&snapshot->arrays);
    lk_arena_clear(&snapshot->metadata.escaped);
    free(snapshot);
}

int64_t lk_snapshot_step(const struct lk_snapshot *snapshot)
{
    return snapshot->step;
}

enum lk_status lk_snapshot_put(const struct lk_snapshot *snapshot,
                               const struct lk_replica *replica,
                               const struct lk_optimizer_info *optimizer)
{
    struct lk_checkpoint_arrays arrays = snapshot->arrays;
    arrays.replica = replica;
    arrays.optimizer = optimizer;
    return lk_checkpoint_arrays_put(&arrays);
}

enum lk_status lk_snapshot_write(struct lk_snapshot *snapshot, const char *path)
{
    struct lk_checkpoint_metadata *metadata = &snapshot->metadata;
    LK_TRY(lk_checkpoint_arrays_sum(&snapshot->arrays, false, metadata->parameters));
    LK_TRY(lk_checkpoint_arrays_sum(&snapshot->arrays, true, metadata->state));
    return lk_safetensors_write(path, snapshot->tensors, snapshot->arrays.count,
                                snapshot->metadata.entries, LK_CHECKPOINT_ENTRIES);
}

enum lk_status lk_checkpoint_write(const char *path, const struct lk_checkpoint *about,
                                   const struct lk_replica *replica,
                                   const struct lk_optimizer_info *optimizer)
{
    struct lk_snapshot *snapshot = NULL;
    LK_TRY(lk_snapshot_take(about, replica, optimizer, NULL, &snapshot));
    const enum lk_status status = lk_snapshot_write(snapshot, path);
    lk_snapshot_destroy(snapshot);
    return status;
}
