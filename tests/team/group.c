/* Teams of groups: the parameters after some steps, and checkpoints, are those of one device,
 * whatever the groups, the micro-batches and their number on the way. */
#include "model/checkpoint/checkpoint.h"
#include "model/model.h"
#include "ok.h"
#include "team/team.h"
#include "team/workers/internal.h"
#include <lockstep/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BATCH = 48, SHARDS = 4, STEPS = 7 };

static const char net[] = "input: [28, 28, 1]\n"
                          "layers:\n"
                          "  - conv2d: {filters: 8, kernel: 3}\n"
                          "  - batch_norm\n"
                          "  - relu\n"
                          "  - max_pool: {size: 2}\n"
                          "  - conv2d: {filters: 8, kernel: 3, activation: relu}\n"
                          "    name: second\n"
                          "  - flatten\n"
                          "  - dropout: {rate: 0.25}\n"
                          "  - dense: {units: 10}\n"
                          "  - softmax\n";

struct run {
    struct lk_model *model;
    struct lk_data *data;
    struct lk_batches *batches;
    struct lk_feed feed;
    struct lk_team *team;
};

/* Everything from `second` on is the second device's. */
static void place(struct lk_model *model)
{
    struct lk_node *node = lk_graph_find(model->graph, "second");
    assert_non_null(node);
    lk_node_set_place(node, 1);
}

static void open_run(struct run *r, const char *devices, int places, int pieces, int in_flight)
{
    struct lk_node *labels, *loss;
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &r->model));
    ASSERT_OK(lk_model_add_loss(r->model, &labels, &loss));
    if (places > 1)
        place(r->model);
    ASSERT_OK(lk_data_open("synthetic:digits,count=120", LK_DATA_TRAIN, &r->data));
    ASSERT_OK(lk_batches_create(
        r->data, &(struct lk_batches_options){.size = BATCH, .seed = 5, .shuffle = true},
        &r->batches));
    r->feed = (struct lk_feed){
        .rows = {{lk_model_input(r->model, 0), 0, false}, {labels, 1, false}}, .count = 2};
    const struct lk_team_config config = {
        .devices = devices,
        .places = places,
        .in_flight = in_flight,
        .split = "equal",
        .log_folder = "",
        .loss = loss,
        .feed = &r->feed,
        .batch = BATCH,
        .shards = SHARDS,
        .pieces = pieces,
        .real = LK_F32,
        .seed = 5,
        .optimizer = "adam",
        .optimizer_options = "",
        .ema = 0.9,
        .check_every = 2,
    };
    ASSERT_OK(lk_team_create(&config, &r->team));
    lk_team_set_batches(r->team, r->batches);
    ASSERT_OK(lk_team_build(r->team));
}

static void close_run(struct run *r)
{
    lk_team_destroy(r->team);
    lk_batches_destroy(r->batches);
    lk_data_close(r->data);
    lk_model_destroy(r->model);
}

static double take_steps(struct run *r, int64_t first, int64_t last)
{
    struct lk_team_result result = {0};
    for (int64_t step = first; step <= last; step++) {
        const int64_t samples = lk_batches_size(r->batches, step - 1);
        ASSERT_OK(lk_team_begin(
            r->team, &(struct lk_team_step){.step = step, .samples = samples, .lr = 0.002}));
        ASSERT_OK(lk_team_end(r->team, false, &result));
    }
    return result.loss;
}

static enum lk_status sum(void *context, struct lk_worker *worker)
{
    return lk_parameters_sha256(lk_stepper_replica(worker->stepper), context);
}

static enum lk_status save(void *context, struct lk_worker *worker)
{
    const struct lk_checkpoint about = {.model = "net",
                                        .model_text = net,
                                        .data = "",
                                        .validation = "",
                                        .data_sum = "",
                                        .device = "",
                                        .choices = "",
                                        .step = STEPS,
                                        .batch = BATCH,
                                        .shards = SHARDS};
    return lk_checkpoint_write(context, &about, lk_stepper_replica(worker->stepper),
                               lk_optimizer_info(lk_stepper_optimizer(worker->stepper)));
}

static enum lk_status load(void *context, struct lk_worker *worker)
{
    return lk_checkpoint_read(context, lk_stepper_replica(worker->stepper),
                              lk_optimizer_info(lk_stepper_optimizer(worker->stepper)));
}

/* One device, and what must give its bits. */
static const struct manner {
    const char *devices;
    int places, pieces, in_flight;
} manners[] = {
    {"0", 0, 0, 0},   {"0*2", 2, 0, 1}, {"0*2", 2, 4, 2},
    {"0*2", 2, 4, 3}, {"0*4", 2, 0, 1}, {"0*6", 2, 0, 1},
};

static void test_bits(void **state)
{
    char whole[LK_SHA256_TEXT], hash[LK_SHA256_TEXT];
    double loss = 0;
    (void)state;
    for (int i = 0; i < LK_COUNT(manners); i++) {
        struct run r;
        open_run(&r, manners[i].devices, manners[i].places, manners[i].pieces,
                 manners[i].in_flight);
        const double found = take_steps(&r, 1, STEPS);
        ASSERT_OK(lk_team_verify_replicas(r.team));
        assert_int_equal(lk_team_counts(r.team).repaired, 0);
        ASSERT_OK(lk_team_call(r.team, sum, hash));
        if (i == 0) {
            memcpy(whole, hash, sizeof whole);
            loss = found;
        }
        if (strcmp(hash, whole) != 0 || found != loss)
            fail_msg("devices %s, %d places, %d pieces: %s with loss %.9g, not %s with %.9g",
                     manners[i].devices, manners[i].places, manners[i].pieces, hash, found,
                     whole, loss);
        close_run(&r);
    }
}

/* A checkpoint of one device goes on in groups, and back. */
static void test_checkpoints(void **state)
{
    char path[] = "/tmp/lockstep-group-XXXXXX", whole[LK_SHA256_TEXT], hash[LK_SHA256_TEXT];
    const int descriptor = mkstemp(path);
    (void)state;
    assert_true(descriptor >= 0);
    close(descriptor);
    for (int i = 0; i < 3; i++) {
        const struct manner *before = &manners[i == 1 ? 2 : 0],
                            *after = &manners[i == 2 ? 3 : 0];
        struct lk_checkpoint_file *file;
        struct run r;
        open_run(&r, before->devices, before->places, before->pieces, before->in_flight);
        take_steps(&r, 1, 3);
        ASSERT_OK(lk_team_call(r.team, save, path));
        close_run(&r);
        open_run(&r, after->devices, after->places, after->pieces, after->in_flight);
        ASSERT_OK(lk_checkpoint_open(path, &file));
        for (int w = 0; w < lk_team_devices(r.team); w++)
            ASSERT_OK(lk_team_call_other(r.team, w, load, file));
        take_steps(&r, 4, STEPS);
        ASSERT_OK(lk_team_call(r.team, sum, i == 0 ? whole : hash));
        if (i > 0)
            assert_string_equal(hash, whole);
        lk_checkpoint_close(file);
        close_run(&r);
    }
    unlink(path);
}

/* What a place of the group needs with so many micro-batches on their way, of which `one` is
 * the first replica's. */
static double bytes_for(const struct lk_replica_bytes *one, int in_flight)
{
    return (double)one->total + (double)(one->activations + one->inputs) * (in_flight - 1);
}

/* Where there is no room for all the micro-batches that should be on their way through places
 * that were given by hand, there are fewer, and with no room for one the group is refused. */
static void test_memory(void **state)
{
    static const struct limited {
        int room, found; /* micro-batches, 0: half of one */
    } limits[] = {{4, 3}, {3, 3}, {2, 2}, {1, 1}, {0, 0}};
    double bytes[5] = {0};
    (void)state;
    for (int i = 0; i < LK_COUNT(limits); i++) {
        const int room = limits[i].room;
        struct lk_node *labels, *loss;
        struct lk_model *model;
        struct lk_team *team = NULL;
        ASSERT_OK(lk_model_read(net, strlen(net), "net", &model));
        ASSERT_OK(lk_model_add_loss(model, &labels, &loss));
        lk_node_set_place(lk_graph_find(model->graph, "second"), 1);
        /* Half of it: a group that is short of room first gives up keeping packed weights. */
        const double limit = room > 0 ? bytes[room] + 64 : bytes[1] / 2;
        const struct lk_team_config config = {.devices = "0*2",
                                              .places = 2,
                                              .in_flight = 3,
                                              .memory_limit = i > 0 ? (size_t)(limit / 0.95)
                                                                    : 0, /* a part stays free */
                                              .split = "equal",
                                              .log_folder = "",
                                              .loss = loss,
                                              .batch = BATCH,
                                              .shards = SHARDS,
                                              .pieces = SHARDS,
                                              .real = LK_F32,
                                              .optimizer = "sgd",
                                              .optimizer_options = "",
                                              .recompute = LK_RECOMPUTE_OFF};
        const enum lk_status status = lk_team_create(&config, &team);
        assert_int_equal(status, room > 0 ? LK_OK : LK_E_DEVICE_MEMORY);
        if (status == LK_OK)
            assert_int_equal(lk_team_worker(team, 0)->in_flight, limits[i].found);
        for (int p = 0; p < 2 && i == 0; p++) {
            const struct lk_replica_bytes one =
                lk_replica_bytes(lk_stepper_replica_at(lk_team_worker(team, 0)->stepper, p));
            for (int n = 1; n < LK_COUNT(bytes); n++)
                bytes[n] = bytes[n] > bytes_for(&one, n) ? bytes[n] : bytes_for(&one, n);
        }
        lk_error_clear();
        lk_team_destroy(team);
        lk_model_destroy(model);
    }
}

static void test_refusals(void **state)
{
    struct run r;
    struct lk_node *labels, *loss;
    struct lk_team *team = NULL;
    (void)state;
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &r.model));
    ASSERT_OK(lk_model_add_loss(r.model, &labels, &loss));
    place(r.model);
    struct lk_team_config config = {.devices = "0*3",
                                    .places = 2,
                                    .in_flight = 1,
                                    .split = "equal",
                                    .log_folder = "",
                                    .loss = loss,
                                    .batch = BATCH,
                                    .shards = SHARDS,
                                    .real = LK_F32,
                                    .optimizer = "sgd",
                                    .optimizer_options = ""};
    assert_int_equal(lk_team_create(&config, &team), LK_E_ARGUMENT);
    assert_non_null(strstr(lk_error_text(), "3 devices for a model that is divided among 2"));
    lk_error_clear();
    lk_model_destroy(r.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_refusals),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
