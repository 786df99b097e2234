/* What a device sends does not depend on how many shards it computes at a time, nor does the
 * memory for it grow where these are few. */
#include "mirror/reduce.h"
#include "ok.h"
#include "team/stepper/stepper.h"
#include <lockstep/data.h>
#include <lockstep/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 64, SHARDS = 8, MOST_BUCKETS = 8 };

static const char net[] = "input: [28, 28, 1]\n"
                          "layers:\n"
                          "  - conv2d: {filters: 4, kernel: 3, activation: relu}\n"
                          "  - max_pool: {size: 4}\n"
                          "  - flatten\n"
                          "  - dense: {units: 10}\n"
                          "  - softmax\n";

/* What a device sends for a run: its subtrees, and a checksum for each in each bucket. */
struct sent {
    struct lk_subtree subtrees[LK_MOST_SHARDS];
    uint32_t checksums[MOST_BUCKETS][LK_MOST_SHARDS];
    int count, buckets;
};

struct fixture {
    struct lk_device *device;
    struct lk_model *model;
    struct lk_node *loss;
    struct lk_feed feed;
    struct lk_data *data;
    struct lk_batches *batches;
};

static int set_up(void **state)
{
    static struct fixture f;
    struct lk_node *labels;
    ASSERT_OK(lk_device_open("0", 0, &f.device));
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &f.model));
    ASSERT_OK(lk_model_add_loss(f.model, &labels, &f.loss));
    f.feed = (struct lk_feed){{{lk_model_input(f.model, 0), 0, false}, {labels, 1, false}}, 2};
    ASSERT_OK(lk_data_open("synthetic:digits,count=64", LK_DATA_TRAIN, &f.data));
    ASSERT_OK(lk_batches_create(f.data, &(struct lk_batches_options){.size = BATCH, .seed = 5},
                                &f.batches));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    lk_batches_destroy(f->batches);
    lk_data_close(f->data);
    lk_model_destroy(f->model);
    lk_device_close(f->device);
    return 0;
}

static struct lk_stepper *create(const struct fixture *f, int most, bool keeps_sums)
{
    struct lk_stepper *stepper = NULL;
    const struct lk_stepper_config config = {
        .device = f->device,
        .loss = f->loss,
        .feed = &f->feed,
        .batch = BATCH,
        .shards = SHARDS,
        .most_shards = most,
        .keeps_sums = keeps_sums,
        .real = LK_F32,
        .seed = 5,
        .optimizer = "sgd",
        .optimizer_options = "",
    };
    ASSERT_OK(lk_stepper_create(&config, &stepper));
    ASSERT_OK(lk_stepper_build(stepper));
    return stepper;
}

static struct sent compute(const struct fixture *f, struct lk_stepper *stepper,
                           struct lk_shard_run run)
{
    struct sent sent = {.buckets = lk_replica_bucket_count(lk_stepper_replica(stepper)) + 1};
    const struct lk_step_share part = {.step = 1, .samples = BATCH, .run = run};
    assert_true(sent.buckets <= MOST_BUCKETS);
    ASSERT_OK(lk_stepper_begin(stepper, f->batches, &part));
    for (int b = 0; b < sent.buckets; b++) {
        struct lk_term terms[LK_MOST_SHARDS];
        const uint32_t *checksums;
        ASSERT_OK(
            lk_exchange_wait(lk_stepper_exchange(stepper), b, terms, &checksums, &sent.count));
        for (int i = 0; i < sent.count; i++) {
            sent.subtrees[i] = terms[i].subtree;
            sent.checksums[b][i] = checksums[i];
        }
    }
    return sent;
}

static void sends_the_same(void **state)
{
    const struct fixture *f = *state;
    struct lk_stepper *at_once = create(f, SHARDS, false);
    for (int most = 1; most < SHARDS; most *= 2) {
        struct lk_stepper *stepper = create(f, most, false);
        for (int first = 0; first < SHARDS; first++)
            for (int count = 1; first + count <= SHARDS; count++) {
                const struct lk_shard_run run = {first, count};
                const struct sent wanted = compute(f, at_once, run);
                const struct sent found = compute(f, stepper, run);
                assert_true(wanted.count >= 1);
                assert_memory_equal(&found, &wanted, sizeof found);
            }
        lk_stepper_destroy(stepper);
    }
    lk_stepper_destroy(at_once);
}

/* The weights after a step, whose sums come back from the host or stay on the device. */
static void step_weights(const struct fixture *f, struct lk_stepper *stepper, float *weights)
{
    const struct lk_shard_run run = {0, SHARDS};
    struct lk_exchange *exchange = lk_stepper_exchange(stepper);
    struct lk_replica *replica = lk_stepper_replica(stepper);
    ASSERT_OK(lk_stepper_begin(
        stepper, f->batches, &(struct lk_step_share){.step = 1, .samples = BATCH, .run = run}));
    for (int b = 0; b < lk_replica_bucket_count(replica); b++) {
        struct lk_term terms[LK_MOST_SHARDS];
        const uint32_t *checksums;
        int count;
        void *result;
        ASSERT_OK(lk_exchange_wait(exchange, b, terms, &checksums, &count));
        assert_int_equal(count, 1);
        ASSERT_OK(lk_exchange_result(exchange, b, &result));
        if (result != terms[0].values)
            memcpy(result, terms[0].values,
                   (size_t)lk_exchange_reals(exchange, b) * sizeof(float));
    }
    ASSERT_OK(lk_stepper_update(stepper, BATCH, 0.1, 1, true));
    const uint32_t *checks;
    ASSERT_OK(lk_exchange_checks(exchange, &checks));
    ASSERT_OK(lk_buffer_read(lk_replica_weights(replica), 0,
                             (size_t)lk_replica_gradient_count(replica) * sizeof(float),
                             weights));
}

static void keeps_what_it_need_not_send(void **state)
{
    enum { MOST_WEIGHTS = 4096 };
    const struct fixture *f = *state;
    for (int most = 1; most <= SHARDS; most *= 2) {
        float wanted[MOST_WEIGHTS] = {0}, found[MOST_WEIGHTS] = {0};
        size_t bytes[2];
        for (int keeps = 0; keeps < 2; keeps++) {
            struct lk_stepper *stepper = create(f, most, keeps);
            assert_true(lk_replica_gradient_count(lk_stepper_replica(stepper)) <= MOST_WEIGHTS);
            bytes[keeps] = lk_replica_bytes(lk_stepper_replica(stepper)).total;
            step_weights(f, stepper, keeps ? found : wanted);
            lk_stepper_destroy(stepper);
        }
        assert_memory_equal(found, wanted, sizeof found);
        assert_true(bytes[1] < bytes[0]);
    }
}

/* At most two subtrees of each size but the largest. */
static void needs_no_more_for_few(void **state)
{
    (void)state;
    assert_int_equal(lk_terms_held_most(1, 1), 1);
    assert_int_equal(lk_terms_held_most(8, 8), 4);
    for (int shards = 2, levels = 1; shards <= 64; shards *= 2, levels++)
        for (int most = 1; most <= shards; most *= 2) {
            const int terms = lk_terms_held_most(shards, most);
            const int whole = lk_terms_held((struct lk_shard_run){0, shards}, most);
            assert_true(terms >= 2 || shards == 2);
            assert_true(terms <= 2 * levels);
            assert_true(whole <= levels && (most < shards || whole == 1));
        }
    assert_int_equal(lk_terms_held((struct lk_shard_run){0, 2}, 1), 1);
    assert_int_equal(lk_terms_held((struct lk_shard_run){0, 8}, 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sends_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_what_it_need_not_send, set_up, tear_down),
        cmocka_unit_test(needs_no_more_for_few),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
