/* Whether all replicas are the same, and making them so. */
#include "train/team_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdlib.h>

static bool is_checked(const struct lk_worker *worker)
{
    return !worker->is_lost && worker->checks;
}

/* Whether the device has got the last step's sums as the host made them. */
static bool has_right_sums(const struct lk_team *team, const struct lk_worker *worker)
{
    for (int b = 0; b < team->buckets; b++)
        if (worker->checks[b] != team->sums[b])
            return false;
    return true;
}

/* Of the devices with right sums, one whose parameters most of them have; the first at a tie.
 */
static struct lk_worker *find_right(struct lk_team *team)
{
    struct lk_worker *right = NULL;
    int most = 0;
    for (int i = 0; i < team->count; i++) {
        struct lk_worker *worker = team->workers[i];
        int same = 0;
        if (!is_checked(worker) || !has_right_sums(team, worker))
            continue;
        for (int j = 0; j < team->count; j++)
            same += is_checked(team->workers[j]) &&
                    team->workers[j]->checks[team->buckets] == worker->checks[team->buckets];
        if (same > most) {
            most = same;
            right = worker;
        }
    }
    return right;
}

/* --- copying a device's state ----------------------------------------------------------- */

struct state {
    void *weights, *optimizer;
    size_t weights_bytes, optimizer_bytes;
};

static enum lk_status read_state(void *context, struct lk_worker *worker)
{
    struct state *s = context;
    const struct lk_optimizer_info *info =
        lk_optimizer_info(lk_stepper_optimizer(worker->stepper));
    const struct lk_buffer *weights = lk_replica_weights(lk_stepper_replica(worker->stepper));
    s->weights_bytes = lk_buffer_bytes(weights);
    s->optimizer_bytes = lk_buffer_bytes(info->state);
    s->weights = malloc(s->weights_bytes + 1);
    s->optimizer = malloc(s->optimizer_bytes + 1);
    if (!s->weights || !s->optimizer)
        return lk_fail_memory("a replica's state", s->weights_bytes + s->optimizer_bytes);
    LK_TRY(lk_buffer_read(weights, 0, s->weights_bytes, s->weights));
    return lk_buffer_read(info->state, 0, s->optimizer_bytes, s->optimizer);
}

static enum lk_status write_state(void *context, struct lk_worker *worker)
{
    const struct state *s = context;
    const struct lk_optimizer_info *info =
        lk_optimizer_info(lk_stepper_optimizer(worker->stepper));
    LK_TRY(lk_buffer_write(lk_replica_weights(lk_stepper_replica(worker->stepper)), 0,
                           s->weights_bytes, s->weights));
    worker->has_updated = false; /* its last checks are of what is overwritten */
    return lk_buffer_write(info->state, 0, s->optimizer_bytes, s->optimizer);
}

static void clear_state(struct state *s)
{
    free(s->weights);
    free(s->optimizer);
}

static enum lk_status copy_state(struct lk_team *team, struct lk_worker *from,
                                 bool (*is_wrong)(const struct lk_team *,
                                                  const struct lk_worker *,
                                                  const struct lk_worker *))
{
    struct state state = {0};
    enum lk_status status = lk_team_call_one(team, from, read_state, &state);
    for (int i = 0; i < team->count && status == LK_OK; i++) {
        struct lk_worker *worker = team->workers[i];
        if (worker->is_lost || worker == from || !is_wrong(team, worker, from))
            continue;
        /* One that cannot be mended is lost, which does not stop the others. */
        (void)!lk_team_call_one(team, worker, write_state, &state);
        lk_error_clear();
    }
    clear_state(&state);
    return status;
}

static bool differs(const struct lk_team *team, const struct lk_worker *worker,
                    const struct lk_worker *right)
{
    return !is_checked(worker) || !has_right_sums(team, worker) ||
           worker->checks[team->buckets] != right->checks[team->buckets];
}

static bool is_any(const struct lk_team *team, const struct lk_worker *worker,
                   const struct lk_worker *from)
{
    (void)team;
    return worker != from;
}

enum lk_status lk_team_spread(struct lk_team *team)
{
    if (team->is_alone)
        return LK_OK;
    for (int i = 0; i < team->count; i++)
        if (!team->workers[i]->is_lost)
            return copy_state(team, team->workers[i], is_any);
    return LK_OK;
}

/* Every rank reads its own state first, which gives the sizes and says where a device fails. */
enum lk_status lk_team_align(struct lk_team *team)
{
    struct lk_world *world = team->config.world;
    struct state state = {0};
    if (lk_world_size(world) == 1)
        return LK_OK;
    enum lk_status status = lk_team_call(team, read_state, &state);
    if (status == LK_OK)
        status = lk_world_share(world, state.weights_bytes, state.weights);
    if (status == LK_OK)
        status = lk_world_share(world, state.optimizer_bytes, state.optimizer);
    for (int i = 0; i < team->count && status == LK_OK; i++)
        if (!team->workers[i]->is_lost && lk_world_rank(world) > 0) {
            (void)!lk_team_call_one(team, team->workers[i], write_state, &state);
            lk_error_clear();
        }
    clear_state(&state);
    return status;
}

/* --- alone ------------------------------------------------------------------------------ */

/* A stepper that needs no host, with the state of the one before. */
static enum lk_status change_stepper(void *context, struct lk_worker *worker)
{
    struct lk_stepper *shared = worker->stepper;
    worker->stepper = NULL;
    enum lk_status status = lk_worker_create_stepper(worker, 0);
    if (status == LK_OK)
        status = lk_stepper_build(worker->stepper);
    if (status == LK_OK)
        status = write_state(context, worker);
    if (status != LK_OK) {
        lk_stepper_destroy(worker->stepper);
        worker->stepper = shared;
        return status;
    }
    lk_stepper_destroy(shared);
    return LK_OK;
}

void lk_team_go_alone(struct lk_team *team, struct lk_worker *worker)
{
    struct state state = {0};
    enum lk_status status = lk_team_call_one(team, worker, read_state, &state);
    if (status == LK_OK)
        status = lk_team_call_one(team, worker, change_stepper, &state);
    clear_state(&state);
    if (status != LK_OK) {
        lk_log(LK_LOG_WARNING, "all devices go on: %s", lk_error_text());
        lk_error_clear();
        return;
    }
    pthread_mutex_lock(&team->mutex);
    team->is_alone = true;
    worker->ticket = 0; /* which counts steps from now on */
    for (int i = 0; i < team->count; i++)
        if (team->workers[i] != worker)
            team->workers[i]->is_lost = true;
    pthread_mutex_unlock(&team->mutex);
}

enum lk_status lk_team_check_replicas(struct lk_team *team, bool *is_right)
{
    struct lk_worker *right = team->has_sums ? find_right(team) : NULL;
    int wrong = 0;
    bool has_checks = false;
    for (int i = 0; i < team->count && right; i++) {
        const struct lk_worker *worker = team->workers[i];
        if (worker == right || !is_checked(worker) || !differs(team, worker, right))
            continue;
        lk_log(LK_LOG_WARNING,
               "device %d's parameters differ from those of device %d after step %lld: they "
               "are copied anew",
               worker->position, right->position, (long long)team->committed);
        wrong++;
    }
    for (int i = 0; i < team->count; i++)
        has_checks |= team->has_sums && is_checked(team->workers[i]);
    if (has_checks && !right)
        return lk_fail(LK_E_DEVICE, "no device has got the sums of step %lld as they were sent",
                       (long long)team->committed);
    if (wrong == 0)
        return LK_OK;
    team->counts.repaired += wrong;
    *is_right = false;
    const enum lk_status status = copy_state(team, right, differs);
    if (!lk_is_device_trouble(status))
        return status;
    lk_error_clear(); /* the right one is lost: another one's state is copied at the next try */
    return LK_OK;
}

static enum lk_status read_checks(void *context, struct lk_worker *worker)
{
    (void)context;
    worker->checks = NULL;
    return worker->has_updated
               ? lk_exchange_checks(lk_stepper_exchange(worker->stepper), &worker->checks)
               : LK_OK;
}

enum lk_status lk_team_settle(struct lk_team *team)
{
    bool is_right = true;
    if (team->is_alone || team->async || !team->has_sums || lk_team_left(team) < 2)
        return LK_OK;
    LK_TRY(lk_team_call_each(team, read_checks, NULL, true));
    return lk_team_check_replicas(team, &is_right);
}
