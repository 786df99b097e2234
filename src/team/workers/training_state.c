/* A device's parameters and optimizer state: read, written, copied to other devices. */
#include "team/workers/internal.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdlib.h>

/* The buffers of a place: of its weights and of its optimizer. */
static void find_buffers(struct lk_worker *worker, int place, struct lk_buffer **weights,
                         struct lk_buffer **state)
{
    *weights = lk_replica_weights(lk_stepper_replica_at(worker->stepper, place));
    *state = lk_optimizer_info(lk_stepper_optimizer_at(worker->stepper, place))->state;
}

enum lk_status lk_training_state_read(void *context, struct lk_worker *worker)
{
    struct lk_training_state *s = context;
    const int places = lk_stepper_places(worker->stepper);
    struct lk_buffer *weights, *state;
    lk_training_state_clear(s);
    for (int p = 0; p < places; p++) {
        find_buffers(worker, p, &weights, &state);
        s->weights_bytes += lk_buffer_bytes(weights);
        s->optimizer_bytes += lk_buffer_bytes(state);
    }
    s->weights = malloc(s->weights_bytes + 1);
    s->optimizer = malloc(s->optimizer_bytes + 1);
    if (!s->weights || !s->optimizer)
        return lk_fail_memory("a replica's state", s->weights_bytes + s->optimizer_bytes);
    char *to_weights = s->weights, *to_state = s->optimizer;
    for (int p = 0; p < places; p++) {
        find_buffers(worker, p, &weights, &state);
        LK_TRY(lk_buffer_read(weights, 0, lk_buffer_bytes(weights), to_weights));
        LK_TRY(lk_buffer_read(state, 0, lk_buffer_bytes(state), to_state));
        to_weights += lk_buffer_bytes(weights);
        to_state += lk_buffer_bytes(state);
    }
    return LK_OK;
}

enum lk_status lk_training_state_write(void *context, struct lk_worker *worker)
{
    const struct lk_training_state *s = context;
    const char *from_weights = s->weights, *from_state = s->optimizer;
    worker->has_updated = false; /* its last checks are of what is overwritten */
    for (int p = 0; p < lk_stepper_places(worker->stepper); p++) {
        struct lk_buffer *weights, *state;
        find_buffers(worker, p, &weights, &state);
        LK_TRY(lk_buffer_write_surely(weights, 0, lk_buffer_bytes(weights), from_weights));
        LK_TRY(lk_buffer_write_surely(state, 0, lk_buffer_bytes(state), from_state));
        from_weights += lk_buffer_bytes(weights);
        from_state += lk_buffer_bytes(state);
    }
    return LK_OK;
}

void lk_training_state_clear(struct lk_training_state *state)
{
    free(state->weights);
    free(state->optimizer);
    *state = (struct lk_training_state){0};
}

/* --- while a step runs ------------------------------------------------------------------ */

/* What has no room is said once, and is no failure of the device. */
enum lk_status lk_worker_begin_copy(struct lk_worker *worker, int64_t step)
{
    struct lk_worker_copies *c = &worker->copies;
    c->begun = 0;
    if (c->is_impossible)
        return LK_OK;
    const enum lk_status status = lk_stepper_enqueue_copy(worker->stepper, &c->list[c->next]);
    if (status == LK_E_DEVICE_MEMORY) {
        lk_log(LK_LOG_WARNING, "training waits for its checkpoints: %s", lk_error_text());
        lk_error_clear();
        c->is_impossible = true;
        return LK_OK;
    }
    c->begun = step;
    return status;
}

enum lk_status lk_worker_end_copy(struct lk_worker *worker, int64_t step)
{
    struct lk_worker_copies *c = &worker->copies;
    if (c->begun == 0 || c->begun >= step)
        return LK_OK;
    LK_TRY(lk_state_copy_wait(&c->list[c->next]));
    pthread_mutex_lock(&worker->team->mutex);
    c->step = c->begun;
    pthread_mutex_unlock(&worker->team->mutex);
    c->begun = 0;
    return LK_OK;
}

const struct lk_state_copy *lk_team_take_copy(struct lk_team *team, int64_t step)
{
    struct lk_worker_copies *c = &team->workers[lk_team_lead(team)->position]->copies;
    pthread_mutex_lock(&team->mutex);
    const bool is_there = c->step == step;
    pthread_mutex_unlock(&team->mutex);
    if (!is_there)
        return NULL;
    const struct lk_state_copy *taken = &c->list[c->next];
    c->next = (c->next + 1) % LK_COUNT(c->list);
    return taken;
}

/* --- between devices -------------------------------------------------------------------- */

enum lk_status lk_team_copy_state(struct lk_team *team, struct lk_worker *from,
                                  bool (*is_wrong)(const struct lk_team *,
                                                   const struct lk_worker *,
                                                   const struct lk_worker *))
{
    struct lk_training_state state = {0};
    enum lk_status status = lk_team_call_one(team, from, team->acts->read, &state);
    for (int i = 0; i < team->count && status == LK_OK; i++) {
        struct lk_worker *worker = team->workers[i];
        if (!lk_worker_is_at_work(worker) || worker == from || !is_wrong(team, worker, from))
            continue;
        /* A device whose replica cannot be repaired is lost, which does not stop the others. */
        (void)!lk_team_call_one(team, worker, team->acts->write, &state);
        lk_error_clear();
    }
    lk_training_state_clear(&state);
    return status;
}

/* Every rank reads its own state first, which gives the sizes and says where a device fails. */
enum lk_status lk_team_broadcast_state(struct lk_team *team)
{
    struct lk_world *world = team->config.world;
    struct lk_training_state state = {0};
    if (lk_world_size(world) == 1)
        return LK_OK;
    enum lk_status status = lk_team_call_first(team, team->acts->read, &state);
    if (status == LK_OK)
        status = lk_world_broadcast(world, state.weights_bytes, state.weights);
    if (status == LK_OK)
        status = lk_world_broadcast(world, state.optimizer_bytes, state.optimizer);
    for (int i = 0; i < team->count && status == LK_OK; i++)
        if (lk_worker_is_at_work(team->workers[i]) && lk_world_rank(world) > 0) {
            (void)!lk_team_call_one(team, team->workers[i], team->acts->write, &state);
            lk_error_clear();
        }
    lk_training_state_clear(&state);
    return status;
}
