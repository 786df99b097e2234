/* Tables whose gradients are row lists, of which one is not the first parameter: the weights of
 * a training with lists are, to the bit, those without, on a device that is alone and on two
 * that share each batch, in micro-batches too, and where each step is one of a group of shards;
 * and what they exchange is as long as the lists. */
#include "graph/replica_internal.h"
#include "mirror/reduce.h"
#include "model/checkpoint/checkpoint.h"
#include "npy.h"
#include "ok.h"
#include "team/stepper/stepper.h"
#include "train/evaluation/binding.h"
#include <lockstep/data.h>
#include <lockstep/model.h>

enum { SAMPLES = 60, LENGTH = 5, ROWS = 701, BATCH = 24, SHARDS = 4, STEPS = 7 };
static const int units[] = {32, 48}; /* whose rows begin and end within blocks of the norm */

static const char net[] = "input: {tokens: {shape: [5], type: int32, length: true}}\n"
                          "layers:\n"
                          "  - embedding: {vocabulary: 701, units: 32}\n"
                          "  - {name: cell, lstm: {units: 8}}\n"
                          "  - {from: tokens, embedding: {vocabulary: 701, units: 48}}\n"
                          "  - {name: mean, global_average_pool1d: }\n"
                          "  - {from: [cell, mean], concat: }\n"
                          "  - dense: {units: 3}\n"
                          "  - softmax\n";

static const struct kind {
    const char *name, *options;
    double ema;
    bool is_mixed;
    double clip;
} kinds[] = {{"adam", "", 0, false, 0},
             {"adamw", "weight_decay=0.1", 0.9, true, 0.02},
             {"sgd", "momentum=0.9 nesterov=true", 0, false, 0.02},
             {"rmsprop", "centered=true", 0, false, 0},
             {"adam", "lazy=true", 0, false, 0.02},
             {"sgd", "momentum=0.9 lazy=true", 0.9, false, 0},
             {"sgd", "lazy=true", 0, true, 0.02},
             {"rmsprop", "lazy=true", 0, true, 0}};

/* Some rows are read often and by every shard, row 700 by the last sample alone; behind a
 * sample's length nothing is read. */
static int64_t token_of(int i, int k)
{
    if (i == SAMPLES - 1)
        return ROWS - 1;
    return k < 2 ? i % 3 : (i * 37 + k * 101) % 650;
}

static struct lk_data *open_tokens(void)
{
    static int64_t ids[SAMPLES * LENGTH], lengths[SAMPLES], labels[SAMPLES];
    char spec[600];
    struct lk_data *data = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        lengths[i] = i % (LENGTH + 1);
        labels[i] = i % 3;
        for (int k = 0; k < LENGTH; k++)
            ids[i * LENGTH + k] = token_of(i, k);
    }
    put_npy("ids_train.npy", "<i8", "(60, 5)", ids, sizeof ids);
    put_npy("lengths_train.npy", "<i8", "(60,)", lengths, sizeof lengths);
    put_npy("labels_train.npy", "<i8", "(60,)", labels, sizeof labels);
    snprintf(spec, sizeof spec,
             "npy:%s,fields=tokens:ids,tokens.length:lengths,labels:labels,label=labels",
             scratch);
    ASSERT_OK(lk_data_open(spec, LK_DATA_TRAIN, &data));
    return data;
}

struct fixture {
    struct lk_device *device;
    struct lk_model *model;
    struct lk_node *labels, *loss;
    struct lk_feed feed;
    struct lk_data *data;
    struct lk_batches *batches;
    struct lk_reducer *reducer;
};

static int set_up(void **state)
{
    static struct fixture f;
    (void)scratch_make(state);
    ASSERT_OK(lk_device_open("0", 0, &f.device));
    ASSERT_OK(lk_model_read(net, strlen(net), "net", &f.model));
    ASSERT_OK(lk_model_add_loss(f.model, &f.labels, &f.loss));
    f.data = open_tokens();
    ASSERT_OK(lk_binding_make_inputs(f.model, f.data, &f.feed));
    for (int i = 0; i < lk_data_info(f.data)->field_count; i++)
        if (strcmp(lk_data_info(f.data)->fields[i].name, "labels") == 0)
            f.feed.rows[f.feed.count++] = (struct lk_feed_row){f.labels, i, false};
    assert_int_equal(f.feed.count, 3);
    ASSERT_OK(lk_batches_create(
        f.data, &(struct lk_batches_options){.size = BATCH, .seed = 5, .shuffle = true},
        &f.batches));
    ASSERT_OK(lk_reducer_create(2, &f.reducer));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    lk_reducer_destroy(f->reducer);
    lk_batches_destroy(f->batches);
    lk_data_close(f->data);
    lk_model_destroy(f->model);
    lk_device_close(f->device);
    return scratch_remove(state);
}

/* most: 0 for a device that is alone. */
static struct lk_stepper *create(const struct fixture *f, const struct kind *kind, int most,
                                 bool lists)
{
    struct lk_stepper *stepper = NULL;
    const struct lk_stepper_config config = {
        .device = f->device,
        .loss = f->loss,
        .feed = &f->feed,
        .batch = BATCH,
        .shards = SHARDS,
        .most_shards = most,
        .real = LK_F32,
        .loss_scale = {.first = kind->is_mixed ? 1024 : 0, .every = 2000},
        .seed = 5,
        .optimizer = kind->name,
        .optimizer_options = kind->options,
        .ema = kind->ema,
        .clip = {.norm = kind->clip},
        .lists_rows = lists,
    };
    ASSERT_OK(lk_stepper_create(&config, &stepper));
    ASSERT_OK(lk_stepper_build(stepper));
    const struct lk_replica *replica = lk_stepper_replica(stepper);
    int64_t listed = 0;
    for (int i = 0; lists && i < LK_COUNT(units); i++)
        listed += (ROWS * units[i] + 127) / 128 * 128;
    assert_int_equal(lk_replica_listed_count(replica), listed);
    return stepper;
}

static void step_alone(const struct fixture *f, struct lk_stepper *stepper, int step)
{
    struct lk_step_result result;
    const int64_t count = lk_batches_size(f->batches, step - 1);
    ASSERT_OK(
        lk_stepper_read(stepper, 0, f->batches, (struct lk_batch_range){step - 1, 0, count}));
    ASSERT_OK(lk_stepper_enqueue(stepper, 0, count, 0.05, step));
    ASSERT_OK(lk_stepper_wait(stepper, 0, &result));
}

/* What the host does in a step: adds what those have sent that computed a part of the subtree,
 * and gives both the sum. */
static void reduce(const struct fixture *f, struct lk_stepper *const two[2], int bucket,
                   struct lk_subtree subtree, const bool computed[2])
{
    struct lk_term terms[2 * LK_MOST_SHARDS];
    void *copies[2] = {NULL};
    int count = 0;
    const struct lk_bucket about = lk_replica_bucket(lk_stepper_replica(two[0]), bucket);
    for (int i = 0; i < 2; i++) {
        const uint32_t *checksums;
        int here = 0;
        if (computed[i])
            ASSERT_OK(lk_exchange_wait(lk_stepper_exchange(two[i]), bucket, terms + count,
                                       &checksums, &here));
        count += here;
        ASSERT_OK(lk_exchange_result(lk_stepper_exchange(two[i]), bucket, &copies[i]));
    }
    struct lk_reduction_result sum = {.subtree = subtree, .copies = copies, .copy_count = 2};
    const struct lk_reduction_job job = {.dtype = LK_F32,
                                         .count = about.sum_count,
                                         .terms = terms,
                                         .term_count = count,
                                         .sums = &sum,
                                         .sum_count = 1};
    ASSERT_OK(lk_reducer_sum(f->reducer, &job));
}

/* One device makes the checksum of its weights with the update, the other one afterwards. */
static void update(struct lk_stepper *const two[2], int64_t samples, int step)
{
    const int buckets = lk_replica_bucket_count(lk_stepper_replica(two[0]));
    const uint32_t *checksums[2];
    for (int i = 0; i < 2; i++)
        ASSERT_OK(lk_stepper_update(two[i], samples, 0.05, step, i == 0));
    ASSERT_OK(lk_exchange_checks(lk_stepper_exchange(two[1]), &checksums[1]));
    assert_int_equal(checksums[1][buckets], 0);
    ASSERT_OK(lk_exchange_weigh(lk_stepper_exchange(two[1])));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(lk_exchange_checks(lk_stepper_exchange(two[i]), &checksums[i]));
    assert_int_not_equal(checksums[0][buckets], 0);
    for (int b = 0; b <= buckets; b++)
        assert_int_equal(checksums[1][b], checksums[0][b]);
}

/* The first device has `first` shards, the second the rest. */
static void step_together(const struct fixture *f, struct lk_stepper *const two[2], int step,
                          int first)
{
    const int64_t count = lk_batches_size(f->batches, step - 1);
    const struct lk_shard_run runs[] = {{0, first}, {first, SHARDS - first}};
    const int buckets = lk_replica_bucket_count(lk_stepper_replica(two[0]));
    for (int i = 0; i < 2; i++) {
        const struct lk_step_share share = {.step = step, .samples = count, .run = runs[i]};
        ASSERT_OK(lk_stepper_begin(two[i], f->batches, &share));
    }
    for (int b = 0; b < buckets; b++)
        reduce(f, two, b, (struct lk_subtree){0, SHARDS}, (const bool[]){true, true});
    update(two, count, step);
}

/* As without lockstep: the devices compute a half of the shards each, one after the other, and
 * both apply what each has found. */
static void step_in_groups(const struct fixture *f, struct lk_stepper *const two[2], int step)
{
    const int64_t count = lk_batches_size(f->batches, step - 1);
    const int buckets = lk_replica_bucket_count(lk_stepper_replica(two[0]));
    for (int i = 0; i < 2; i++) {
        const struct lk_subtree half = {i * SHARDS / 2, SHARDS / 2};
        const struct lk_step_share share = {
            .step = step, .samples = count, .run = {half.first, half.count}};
        ASSERT_OK(lk_stepper_begin(two[i], f->batches, &share));
        for (int b = 0; b < buckets; b++)
            reduce(f, two, b, half, (const bool[]){i == 0, i == 1});
        update(two, BATCH / 2, 2 * step - 1 + i);
    }
}

static void expect_hash(struct lk_stepper *stepper, const char *wanted)
{
    char hash[LK_SHA256_TEXT];
    ASSERT_OK(lk_parameters_sha256(lk_stepper_replica(stepper), hash));
    assert_string_equal(hash, wanted);
}

static void train(const struct fixture *f, const struct kind *kind)
{
    char wanted[LK_SHA256_TEXT], first[LK_SHA256_TEXT];
    struct lk_stepper *dense = create(f, kind, 0, false), *alone = create(f, kind, 0, true);
    struct lk_stepper *two[] = {create(f, kind, 1, true), create(f, kind, 2, true)};
    struct lk_stepper *whole[] = {create(f, kind, 4, true), create(f, kind, 4, true)};
    ASSERT_OK(lk_parameters_sha256(lk_stepper_replica(dense), first));
    for (int step = 1; step <= STEPS; step++) {
        step_alone(f, dense, step);
        step_alone(f, alone, step);
        step_together(f, two, step, 3);
        step_together(f, whole, step, 2);
    }
    ASSERT_OK(lk_parameters_sha256(lk_stepper_replica(dense), wanted));
    assert_string_not_equal(first, wanted);
    expect_hash(alone, wanted);
    for (int i = 0; i < 2; i++) {
        expect_hash(two[i], wanted);
        expect_hash(whole[i], wanted);
        lk_stepper_destroy(two[i]);
        lk_stepper_destroy(whole[i]);
    }
    lk_stepper_destroy(dense);
    lk_stepper_destroy(alone);
}

static void train_in_groups(const struct fixture *f, const struct kind *kind)
{
    char wanted[LK_SHA256_TEXT];
    struct lk_stepper *dense[] = {create(f, kind, 2, false), create(f, kind, 2, false)};
    struct lk_stepper *lists[] = {create(f, kind, 2, true), create(f, kind, 1, true)};
    for (int step = 1; step <= STEPS; step++) {
        step_in_groups(f, dense, step);
        step_in_groups(f, lists, step);
    }
    ASSERT_OK(lk_parameters_sha256(lk_stepper_replica(dense[0]), wanted));
    expect_hash(dense[1], wanted);
    for (int i = 0; i < 2; i++) {
        expect_hash(lists[i], wanted);
        lk_stepper_destroy(dense[i]);
        lk_stepper_destroy(lists[i]);
    }
}

static void trains_the_same_in_groups(void **state)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k += 2)
        train_in_groups(*state, &kinds[k]);
}

static void trains_the_same(void **state)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        train(*state, &kinds[k]);
}

/* 30 places of each shard, of which each has as many numbers as a row and that of its row. */
static void sends_what_places_add(void **state)
{
    const struct fixture *f = *state;
    struct lk_stepper *stepper = create(f, &kinds[0], 2, true);
    const struct lk_replica *replica = lk_stepper_replica(stepper);
    int64_t found = 0, covered = 0;
    for (int b = 0; b < lk_replica_bucket_count(replica); b++) {
        const struct lk_bucket bucket = lk_replica_bucket(replica, b);
        covered += (bucket.count + 127) / 128 * 128;
        if (bucket.list_stride == 0)
            continue;
        const int64_t stride = (BATCH / SHARDS * LENGTH * (units[found++] + 1) + 31) / 32 * 32;
        assert_int_equal(bucket.list_stride, stride);
        assert_int_equal(bucket.sum_count, SHARDS * stride);
    }
    assert_int_equal(found, LK_COUNT(units));
    assert_int_equal(covered, lk_replica_gradient_count(replica));
    lk_stepper_destroy(stepper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trains_the_same),
                                       cmocka_unit_test(trains_the_same_in_groups),
                                       cmocka_unit_test(sends_what_places_add)};
    return cmocka_run_group_tests_name("row_lists", tests, set_up, tear_down);
}
