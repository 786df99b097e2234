/* Devices made of host memory for tests of the team: see fakes.h. */
#include "fakes.h"

#include "base/fail.h"
#include "fake_time.h"
#include "tensor/elementwise.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A device's memory. The one bucket has LK_PAD values, all the same. */
struct fake {
    struct fake_plan plan;
    float weights[LK_PAD], result[LK_PAD];
    float terms[LK_MOST_SUBTREES][LK_PAD], metrics[LK_MOST_SUBTREES][LK_PAD];
    uint32_t checksums[2][LK_MOST_SUBTREES], checks[2];
    float losses[2]; /* of a device that is alone, of the last two steps */
};

struct fake_job {
    struct lk_team team;
    struct lk_worker workers[FAKES];
    struct fake fakes[FAKES];
};

bool fake_walked[LK_WORKER_STATES][LK_WORKER_EVENTS];

/* The linker sends all calls of lk_worker_next() here. */
enum lk_worker_state __real_lk_worker_next(enum lk_worker_state, enum lk_worker_event);
enum lk_worker_state __wrap_lk_worker_next(enum lk_worker_state, enum lk_worker_event);
enum lk_worker_state __wrap_lk_worker_next(enum lk_worker_state state,
                                           enum lk_worker_event event)
{
    fake_walked[state][event] = true;
    return __real_lk_worker_next(state, event);
}

static struct fake *fake_of(const struct lk_worker *worker)
{
    return &((struct fake_job *)worker->team)->fakes[worker->position];
}

/* --- numbers ---------------------------------------------------------------------------- */

static float of_shard(int64_t step, int shard)
{
    return (float)(step * (shard + 1));
}

static float of_shards(int64_t step, int first, int count)
{
    float sum = 0;
    for (int i = first; i < first + count; i++)
        sum += of_shard(step, i);
    return sum;
}

float fake_expected(int64_t steps)
{
    float weight = 0;
    for (int64_t step = 1; step <= steps; step++)
        weight += of_shards(step, 0, FAKE_SHARDS);
    return weight;
}

static void fill(float *values, float value)
{
    for (int i = 0; i < LK_PAD; i++)
        values[i] = value;
}

static uint32_t checksum(const float *values)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < LK_PAD; i++) {
        uint32_t word;
        memcpy(&word, &values[i], sizeof word);
        sum += word * (2 * i + 1);
    }
    return sum;
}

/* --- trouble ---------------------------------------------------------------------------- */

/* What the device meets in this act; it happens here, but for wrong numbers. */
static enum lk_status meet(struct lk_worker *worker, enum fake_act act, int64_t step,
                           enum fake_trouble *wrong)
{
    struct fake_plan *plan = &fake_of(worker)->plan;
    pthread_mutex_lock(&worker->team->mutex);
    const struct fake_plan now = *plan;
    const bool is_met = now.trouble != FAKE_NONE && now.act == act && step >= now.step;
    if (is_met && now.times > 0 && --plan->times == 0)
        plan->trouble = FAKE_NONE;
    pthread_mutex_unlock(&worker->team->mutex);
    *wrong = FAKE_NONE;
    if (!is_met)
        return LK_OK;
    if (now.after_ms > 0)
        fake_time_pass(worker, now.after_ms);
    if (now.trouble == FAKE_HANGS)
        fake_time_hang(worker);
    if (now.trouble == FAKE_FAILS)
        return lk_fail(LK_E_DEVICE, "the test asks for it");
    if (now.trouble == FAKE_STOPS)
        return lk_fail(LK_E_DATA, "a sample is not to be read");
    *wrong = now.trouble;
    return LK_OK;
}

/* --- acts ------------------------------------------------------------------------------- */

static enum lk_status begin_share(struct lk_worker *worker, const struct lk_command *command)
{
    struct fake *fake = fake_of(worker);
    struct lk_delivery *delivery = &worker->delivery;
    struct lk_arrival *metrics = &delivery->arrivals[LK_ARRIVAL_METRICS],
                      *bucket = &delivery->arrivals[LK_ARRIVAL_BUCKETS];
    const struct lk_shard_run run = command->share.run;
    struct lk_subtree subtrees[LK_MOST_SUBTREES];
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_BEGIN, command->share.step, &wrong));
    fake_time_pass(worker, 1);
    const int count = lk_subtrees_of(run.first, run.count, subtrees);
    for (int i = 0; i < count; i++) {
        const struct lk_subtree s = subtrees[i];
        fill(fake->metrics[i], (float)s.count);
        fill(fake->terms[i], of_shards(command->share.step, s.first, s.count));
        if (wrong == FAKE_NAN)
            fill(fake->terms[i], NAN);
        fake->checksums[0][i] = checksum(fake->metrics[i]);
        fake->checksums[1][i] = checksum(fake->terms[i]) + (wrong == FAKE_CHANGES);
        metrics->terms[i] = (struct lk_term){s, fake->metrics[i]};
        bucket->terms[i] = (struct lk_term){s, fake->terms[i]};
    }
    metrics->count = bucket->count = count;
    metrics->checksums = fake->checksums[0];
    bucket->checksums = fake->checksums[1];
    bucket->result = fake->result;
    delivery->checks = worker->has_updated ? fake->checks : NULL;
    delivery->times = (struct lk_share_times){.compute_ms = 1};
    if (lk_worker_deliver(worker, command->ticket, 1))
        (void)lk_worker_deliver(worker, command->ticket, 1);
    return LK_OK;
}

static enum lk_status end_share(struct lk_worker *worker, const struct lk_command *command)
{
    struct fake *fake = fake_of(worker);
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_END, command->share.step, &wrong));
    for (int i = 0; i < LK_PAD; i++)
        fake->weights[i] += fake->result[i] + (float)(wrong == FAKE_DIVERGES);
    fake->checks[0] = checksum(fake->result);
    fake->checks[1] = command->weights ? checksum(fake->weights) : 0;
    worker->has_updated = true;
    pthread_mutex_lock(&worker->team->mutex);
    lk_worker_change(worker, LK_WORKER_UPDATED, NULL);
    pthread_mutex_unlock(&worker->team->mutex);
    return LK_OK;
}

static enum lk_status begin_alone(struct lk_worker *worker, const struct lk_command *command)
{
    struct fake *fake = fake_of(worker);
    const int64_t step = command->share.step;
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_BEGIN, step, &wrong));
    fake_time_pass(worker, 1);
    const float sum = wrong == FAKE_NAN ? NAN : of_shards(step, 0, FAKE_SHARDS);
    for (int i = 0; i < LK_PAD; i++)
        fake->weights[i] += sum;
    fake->losses[step % 2] = wrong == FAKE_NAN ? NAN : 0.5f;
    return LK_OK;
}

static enum lk_status end_alone(struct lk_worker *worker, const struct lk_command *command)
{
    struct fake *fake = fake_of(worker);
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_END, command->share.step, &wrong));
    worker->delivery.result =
        (struct lk_step_result){.loss = fake->losses[command->share.step % 2]};
    (void)lk_worker_deliver(worker, command->ticket, worker->team->buckets + 1);
    return LK_OK;
}

static enum lk_status read_state(void *context, struct lk_worker *worker)
{
    struct lk_training_state *state = context;
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_READ, INT64_MAX, &wrong));
    lk_training_state_clear(state);
    state->weights_bytes = sizeof fake_of(worker)->weights;
    state->weights = malloc(state->weights_bytes);
    if (!state->weights)
        return lk_fail_memory("weights", state->weights_bytes);
    memcpy(state->weights, fake_of(worker)->weights, state->weights_bytes);
    return LK_OK;
}

static enum lk_status write_state(void *context, struct lk_worker *worker)
{
    const struct lk_training_state *state = context;
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_WRITE, INT64_MAX, &wrong));
    memcpy(fake_of(worker)->weights, state->weights, state->weights_bytes);
    worker->has_updated = false;
    return LK_OK;
}

static enum lk_status change_stepper(void *context, struct lk_worker *worker)
{
    const struct lk_stepper_change *change = context;
    enum fake_trouble wrong;
    LK_TRY(meet(worker, FAKE_CHANGE, INT64_MAX, &wrong));
    return write_state(change->state, worker);
}

static const struct lk_team_acts acts = {begin_share, end_share,   begin_alone,   end_alone,
                                         read_state,  write_state, change_stepper};

/* --- teams ------------------------------------------------------------------------------ */

static void describe(void *context, int64_t number, struct lk_team_step *step)
{
    (void)context;
    *step = (struct lk_team_step){.step = number, .samples = FAKE_BATCH, .lr = 1};
}

static void check(bool is_right)
{
    if (!is_right)
        abort();
}

struct lk_team *fake_team(int count, enum lk_team_phase phase)
{
    struct fake_job *job = calloc(1, sizeof *job);
    pthread_condattr_t clock;
    check(job != NULL);
    struct lk_team *team = &job->team;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->changed, &clock);
    pthread_condattr_destroy(&clock);
    team->config = (struct lk_team_config){.split = "measured",
                                           .batch = FAKE_BATCH,
                                           .shards = FAKE_SHARDS,
                                           .real = LK_F32,
                                           .check_every = 1};
    team->acts = &acts;
    team->recall.describe = describe;
    team->clock.hang_seconds = 0.05; /* a call, or what is new, may take 20 times as long */
    team->job.all = count;
    team->buckets = 1;
    team->values[LK_ARRIVAL_METRICS] = team->values[LK_ARRIVAL_BUCKETS] = LK_PAD;
    check(lk_reducer_create(1, &team->reducer) == LK_OK);
    check(lk_team_init_split(team) == LK_OK);
    fake_time_watch(team);
    for (int i = 0; i < count; i++) {
        struct lk_worker *worker = &job->workers[i];
        team->workers[team->count++] = worker;
        worker->team = team;
        worker->position = i;
        worker->most_shards = FAKE_SHARDS;
        worker->delivery.arrivals = calloc(2, sizeof *worker->delivery.arrivals);
        check(worker->delivery.arrivals && lk_worker_start(worker) == LK_OK);
    }
    lk_team_enter(team, phase);
    return team;
}

static enum lk_status come_to_rest(void *context, struct lk_worker *worker)
{
    (void)context;
    (void)worker;
    return LK_OK;
}

/* As lk_team_destroy() does it: a call comes back when all commands before it are done. */
static bool end(struct lk_team *team, struct lk_worker *worker)
{
    const struct lk_command quit = {.kind = LK_COMMAND_QUIT};
    pthread_mutex_lock(&team->mutex);
    if (worker->state == LK_WORKER_RESTING)
        lk_worker_change(worker, LK_WORKER_CALL_BACK, NULL);
    pthread_mutex_unlock(&team->mutex);
    if (lk_worker_is_at_work(worker))
        (void)!lk_team_call_one(team, worker, come_to_rest, NULL);
    pthread_mutex_lock(&team->mutex);
    const bool is_ready = worker->state == LK_WORKER_READY;
    if (is_ready) {
        lk_worker_send(worker, &quit);
        lk_worker_change(worker, LK_WORKER_QUIT, NULL);
    }
    pthread_mutex_unlock(&team->mutex);
    if (is_ready)
        pthread_join(worker->thread, NULL);
    return is_ready;
}

void fake_destroy(struct lk_team *team)
{
    bool all_ended = true;
    for (int i = 0; i < team->count; i++)
        all_ended &= end(team, team->workers[i]);
    lk_training_state_clear(&team->recall.kept);
    lk_reducer_destroy(team->reducer);
    if (!all_ended)
        return;
    for (int i = 0; i < team->count; i++)
        free(team->workers[i]->delivery.arrivals);
    free(team);
}

void fake_plan(struct lk_team *team, int device, struct fake_plan plan)
{
    pthread_mutex_lock(&team->mutex);
    fake_of(team->workers[device])->plan = plan;
    pthread_mutex_unlock(&team->mutex);
}

enum lk_status fake_train(struct lk_team *team, int64_t first, int64_t last,
                          struct lk_team_result *result)
{
    enum lk_status status = LK_OK;
    int64_t begun = first;
    lk_error_clear(); /* the first cause is kept */
    pthread_mutex_lock(&team->mutex);
    for (int64_t step = first; step <= last && status == LK_OK; step++) {
        while (begun <= last && begun < step + 2 && status == LK_OK) {
            struct lk_team_step next;
            describe(NULL, begun++, &next);
            status = lk_lockstep_begin(team, &next);
        }
        if (status == LK_OK)
            status = lk_lockstep_end(team, result);
    }
    pthread_mutex_unlock(&team->mutex);
    return status;
}

float fake_weight(const struct lk_team *team, int device)
{
    return fake_of(team->workers[device])->weights[0];
}

enum lk_worker_state fake_state(struct lk_team *team, int device)
{
    pthread_mutex_lock(&team->mutex);
    const enum lk_worker_state state = team->workers[device]->state;
    pthread_mutex_unlock(&team->mutex);
    return state;
}

bool fake_reaches(struct lk_team *team, int device, enum lk_worker_state state)
{
    pthread_mutex_lock(&team->mutex);
    const bool is_reached = fake_time_reaches(team, team->workers[device], state);
    pthread_mutex_unlock(&team->mutex);
    return is_reached;
}

void fake_go_alone(struct lk_team *team, int device)
{
    lk_team_go_alone(team, team->workers[device]);
}
