/* Checkpoints: the same bits back, and refusals that leave the device alone. */
#include "model/checkpoint/checkpoint.h"
#include "../scratch.h"
#include "io/file.h"
#include "io/safetensors.h"
#include <lockstep/model.h>

static const char text[] = "name: small\n"
                           "input: [6, 6, 1]\n"
                           "layers:\n"
                           "  - flatten\n"
                           "  - {dense: {units: 5, activation: relu}, name: a}\n"
                           "  - {dense: {units: 4}, name: b, trainable: false}\n"
                           "  - {dense: {units: 3}, name: optimizer}\n"
                           "  - softmax\n";

/* A model on a device, with an optimizer. */
struct rig {
    struct lk_device *device;
    struct lk_model *model;
    struct lk_replica *replica;
    struct lk_optimizer *optimizer;
    const struct lk_optimizer_info *info;
};

static void ok(enum lk_status status)
{
    if (status != LK_OK)
        fail_msg("%s: %s", lk_status_text(status), lk_error_text());
}

static void make(struct rig *rig, const char *model, const char *optimizer, uint64_t seed)
{
    struct lk_node *labels = NULL, *loss = NULL;
    lk_error_clear();
    ok(lk_device_open(NULL, 0, &rig->device));
    ok(lk_model_read(model, strlen(model), "m", &rig->model));
    ok(lk_model_add_loss(rig->model, &labels, &loss));
    const struct lk_replica_config config = {.device = rig->device,
                                             .outputs = {loss},
                                             .batch = 8,
                                             .shards = 2,
                                             .real = LK_F32,
                                             .training = true};
    ok(lk_replica_create(&config, &rig->replica));
    const struct lk_optimizer_config of = {.device = rig->device,
                                           .real = LK_F32,
                                           .kind = optimizer,
                                           .count = lk_replica_trainable_count(rig->replica)};
    ok(lk_optimizer_create(&of, &rig->optimizer));
    ok(lk_replica_build(rig->replica));
    ok(lk_replica_init_weights(rig->replica, seed));
    rig->info = lk_optimizer_info(rig->optimizer);
}

static void clear(struct rig *rig)
{
    lk_optimizer_destroy(rig->optimizer);
    lk_replica_destroy(rig->replica);
    lk_model_destroy(rig->model);
    lk_device_close(rig->device);
}

/* All of the optimizer's state on the host. */
static float *state_of(const struct rig *rig, size_t *bytes)
{
    *bytes = (size_t)(rig->info->arrays * rig->info->stride) * sizeof(float);
    float *state = calloc(1, *bytes);
    assert_non_null(state);
    ok(lk_buffer_read(rig->info->state, 0, *bytes, state));
    return state;
}

/* Fills the state of every parameter with numbers that are nowhere twice; padding stays 0. */
static void fill_state(const struct rig *rig)
{
    size_t bytes;
    float *state = state_of(rig, &bytes);
    const struct lk_param *param;
    for (int k = 0; k < rig->info->arrays; k++)
        for (int i = 0; (param = lk_replica_param(rig->replica, i)) != NULL; i++)
            for (int64_t e = 0; param->is_trainable && e < param->count; e++) {
                const int64_t at = k * rig->info->stride + param->offset + e;
                state[at] = (float)(at + 1) / 7;
            }
    ok(lk_buffer_write(rig->info->state, 0, bytes, state));
    free(state);
}

static const struct lk_checkpoint about = {.model = "small",
                                           .model_text = text,
                                           .data = "idx:/a \"b\"\\",
                                           .device = "some device",
                                           .step = 123456789012,
                                           .epoch = 7,
                                           .index = 4096,
                                           .seed = 42,
                                           .batch = 8,
                                           .shards = 2,
                                           .updates = 246913578024};

static void write_one(const char *path)
{
    struct rig rig = {0};
    make(&rig, text, "adam", 1);
    fill_state(&rig);
    ok(lk_checkpoint_write(path, &about, rig.replica, rig.info));
    clear(&rig);
}

static void comes_back_bit_for_bit(void **state)
{
    (void)state;
    struct rig from = {0}, to = {0};
    struct lk_checkpoint_file *file = NULL;
    char before[LK_SHA256_TEXT], other[LK_SHA256_TEXT], after[LK_SHA256_TEXT];
    const char *path = scratch_path("round.safetensors");
    make(&from, text, "adam", 1);
    fill_state(&from);
    ok(lk_parameters_sha256(from.replica, before));
    ok(lk_checkpoint_write(path, &about, from.replica, from.info));
    make(&to, text, "adam", 2);
    ok(lk_parameters_sha256(to.replica, other));
    assert_string_not_equal(before, other);

    ok(lk_checkpoint_open(path, &file));
    ok(lk_checkpoint_read(file, to.replica, to.info));
    ok(lk_parameters_sha256(to.replica, after));
    assert_string_equal(before, after);
    size_t bytes, same_bytes;
    float *expected = state_of(&from, &bytes), *found = state_of(&to, &same_bytes);
    assert_int_equal(bytes, same_bytes);
    assert_memory_equal(expected, found, bytes);
    free(expected);
    free(found);

    const struct lk_checkpoint *said = lk_checkpoint_metadata(file);
    assert_string_equal(said->model, "small");
    assert_string_equal(said->model_text, text);
    assert_string_equal(said->data, about.data);
    assert_string_equal(said->device, "some device");
    assert_true(said->step == about.step && said->epoch == 7 && said->index == 4096);
    assert_true(said->seed == 42 && said->batch == 8 && said->shards == 2);
    assert_int_equal(said->updates, about.updates);
    assert_int_equal(said->lanes, lk_device_info(to.device)->lanes);
    assert_int_equal(said->vector, lk_device_info(to.device)->vector);
    assert_string_equal(said->optimizer, "adam");
    assert_non_null(strstr(said->optimizer_options, "beta_1=0.9"));
    assert_string_equal(said->version, LK_VERSION);
    assert_string_equal(said->parameters_sha256, before);
    lk_checkpoint_close(file);
    clear(&from);
    clear(&to);
}

/* What other programs find in the file. */
static void names_its_arrays(void **state)
{
    (void)state;
    static const char *const names[] = {"a.weight",
                                        "a.bias",
                                        "b.weight",
                                        "b.bias",
                                        "optimizer.weight",
                                        "optimizer.bias",
                                        "optimizer.m.a.weight",
                                        "optimizer.m.a.bias",
                                        "optimizer.m.optimizer.weight",
                                        "optimizer.m.optimizer.bias",
                                        "optimizer.v.a.weight",
                                        "optimizer.v.a.bias",
                                        "optimizer.v.optimizer.weight",
                                        "optimizer.v.optimizer.bias"};
    struct lk_safetensors *file = NULL;
    write_one(scratch_path("names.safetensors"));
    ok(lk_safetensors_open(scratch_path("names.safetensors"), &file));
    assert_int_equal(file->count, sizeof names / sizeof names[0]);
    for (int i = 0; i < file->count; i++)
        assert_string_equal(file->tensors[i].name, names[i]);
    assert_int_equal(file->tensors[0].rank, 2);
    assert_int_equal(file->tensors[0].shape[0], 36);
    assert_int_equal(file->tensors[0].shape[1], 5);
    lk_safetensors_close(file);
}

/* A predictor takes the parameters and leaves the rest. */
static void gives_parameters_alone(void **state)
{
    (void)state;
    struct rig rig = {0};
    struct lk_checkpoint_file *file = NULL;
    char sum[LK_SHA256_TEXT];
    write_one(scratch_path("all.safetensors"));
    make(&rig, text, "sgd", 9);
    ok(lk_checkpoint_open(scratch_path("all.safetensors"), &file));
    ok(lk_checkpoint_read(file, rig.replica, NULL));
    ok(lk_parameters_sha256(rig.replica, sum));
    assert_string_equal(sum, lk_checkpoint_metadata(file)->parameters_sha256);
    lk_checkpoint_close(file);
    ok(lk_checkpoint_write(scratch_path("alone.safetensors"), &about, rig.replica, NULL));
    ok(lk_checkpoint_open(scratch_path("alone.safetensors"), &file));
    assert_string_equal(lk_checkpoint_metadata(file)->optimizer, "");
    lk_checkpoint_close(file);
    clear(&rig);
}

static void refuses_another_model(void **state)
{
    (void)state;
    static const struct {
        const char *model, *optimizer, *said;
    } cases[] = {
        {"input: [6, 6, 1]\nlayers:\n  - flatten\n  - {dense: {units: 5}, name: a}\n"
         "  - softmax\n",
         "adam", "the model has no array 'b.weight'"},
        {"input: [6, 6, 1]\nlayers:\n  - flatten\n  - {dense: {units: 6}, name: a}\n"
         "  - softmax\n",
         "adam", "array 'a.weight' is F32 [36, 5], the model expects F32 [36, 6]"},
        {"input: [6, 6, 1]\nlayers:\n  - flatten\n  - {dense: {units: 5}, name: c}\n"
         "  - softmax\n",
         "adam", "array 'c.weight' of the model is missing"},
        {"input: [6, 6, 1]\nlayers:\n  - flatten\n  - {dense: {units: 5}, name: a}\n"
         "  - {dense: {units: 4}, name: b}\n  - {dense: {units: 3}, name: optimizer}\n"
         "  - softmax\n",
         "adam", "array 'optimizer.m.b.weight' of the model is missing"},
        {text, "sgd", "written with optimizer 'adam', this run has 'sgd'"},
    };
    struct lk_checkpoint_file *file = NULL;
    write_one(scratch_path("one.safetensors"));
    ok(lk_checkpoint_open(scratch_path("one.safetensors"), &file));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig rig = {0};
        char before[LK_SHA256_TEXT], after[LK_SHA256_TEXT];
        make(&rig, cases[i].model, cases[i].optimizer, 3);
        ok(lk_parameters_sha256(rig.replica, before));
        assert_refused((int)lk_checkpoint_read(file, rig.replica, rig.info), LK_E_DATA,
                       lk_error_text(), cases[i].said);
        lk_error_clear();
        ok(lk_parameters_sha256(rig.replica, after));
        assert_string_equal(before, after);
        clear(&rig);
    }
    lk_checkpoint_close(file);
}

static void refuses_damage(void **state)
{
    (void)state;
    struct lk_checkpoint_file *file = NULL;
    const char *path = scratch_path("whole.safetensors"),
               *bad = scratch_path("bad.safetensors");
    void *data = NULL;
    size_t bytes = 0;
    write_one(path);
    ok(lk_file_read(path, 1 << 20, &data, &bytes));
    unsigned char *byte = data;
    for (size_t cut = 0; cut < bytes; cut += 97) {
        scratch_put(bad, data, cut);
        assert_refused((int)lk_checkpoint_open(bad, &file), LK_E_DATA, lk_error_text(), "bad");
        lk_error_clear();
    }
    const size_t arrays = bytes - 4 * (size_t)(3 * (185 + 15) + 24);
    for (size_t at = arrays; at < bytes; at += 61) {
        byte[at] ^= 4;
        scratch_put(bad, data, bytes);
        assert_refused((int)lk_checkpoint_open(bad, &file), LK_E_DATA, lk_error_text(),
                       "damaged");
        lk_error_clear();
        byte[at] ^= 4;
    }
    scratch_put(bad, data, bytes);
    ok(lk_checkpoint_open(bad, &file));
    lk_checkpoint_close(file);
    free(data);
}

/* Every byte of the header counts, whatever it is changed to. */
static void refuses_a_changed_header(void **state)
{
    (void)state;
    struct lk_checkpoint_file *file = NULL;
    const char *path = scratch_path("head.safetensors"), *bad = scratch_path("hit.safetensors");
    void *data = NULL;
    size_t bytes = 0;
    write_one(path);
    ok(lk_file_read(path, 1 << 20, &data, &bytes));
    unsigned char *byte = data;
    const size_t end = bytes - 4 * (size_t)(3 * (185 + 15) + 24);
    for (size_t at = 0; at < end; at++) {
        const unsigned char before = byte[at];
        byte[at] = (unsigned char)(before ^ 1 << at % 7);
        scratch_put(bad, data, bytes);
        assert_refused((int)lk_checkpoint_open(bad, &file), LK_E_DATA, lk_error_text(), "hit");
        lk_error_clear();
        byte[at] = before;
    }
    free(data);
}

/* Texts and names changed by hand, to others that make sense. */
static void refuses_other_words(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"\"shards\":\"2\"", "\"shards\":\"1\""},
        {"\"header_sha256\"", "\"header_sha999\""},
        {"checkpoint-2", "checkpoint-1"},
        {"\"choices\":", "\"chosen_\":"},
        {"optimizer.m.a.weight", "optimizer.v.x.weight"},
        {"some device", "same device"},
    };
    struct lk_checkpoint_file *file = NULL;
    const char *path = scratch_path("said.safetensors"), *bad = scratch_path("hit.safetensors");
    void *data = NULL;
    size_t bytes = 0;
    write_one(path);
    ok(lk_file_read(path, 1 << 20, &data, &bytes));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i][0]);
        char *at = strstr((char *)data + 8, words[i][0]);
        assert_non_null(at);
        memcpy(at, words[i][1], length);
        scratch_put(bad, data, bytes);
        assert_refused((int)lk_checkpoint_open(bad, &file), LK_E_DATA, lk_error_text(), "hit");
        lk_error_clear();
        memcpy(at, words[i][0], length);
    }
    free(data);
}

static void refuses_other_files(void **state)
{
    (void)state;
    struct lk_checkpoint_file *file = NULL;
    const char *path = scratch_path("other.safetensors");
    const float one = 1;
    const struct lk_safetensor tensor = {.name = "x", .type = LK_SAFETENSOR_F32, .data = &one};
    struct lk_safetensors_text texts[] = {{"format", "lockstep-checkpoint-3"}};
    ok(lk_safetensors_write(path, &tensor, 1, NULL, 0));
    assert_refused((int)lk_checkpoint_open(path, &file), LK_E_DATA, lk_error_text(),
                   "expected a checkpoint of format lockstep-checkpoint-2, found other arrays");
    lk_error_clear();
    ok(lk_safetensors_write(path, &tensor, 1, texts, 1));
    assert_refused((int)lk_checkpoint_open(path, &file), LK_E_DATA, lk_error_text(),
                   "found format lockstep-checkpoint-3");
    lk_error_clear();
    texts[0].value = "lockstep-checkpoint-2";
    ok(lk_safetensors_write(path, &tensor, 1, texts, 1));
    assert_refused((int)lk_checkpoint_open(path, &file), LK_E_DATA, lk_error_text(),
                   "a checkpoint says 'header_sha256'");
    lk_error_clear();
    texts[0].value = "lockstep-checkpoint-1"; /* had no such sum */
    ok(lk_safetensors_write(path, &tensor, 1, texts, 1));
    assert_refused((int)lk_checkpoint_open(path, &file), LK_E_DATA, lk_error_text(),
                   "a checkpoint says 'model'");
    lk_error_clear();
    assert_refused((int)lk_checkpoint_open(scratch_path("absent"), &file), LK_E_IO,
                   lk_error_text(), "absent");
    lk_error_clear();
}

static int warned;

static void count_warning(void *context, enum lk_log_level level, const char *message)
{
    (void)context;
    warned += level == LK_LOG_WARNING && strstr(message, "passed over");
}

/* Cut off or with a flipped bit at 1,000 places the newest is passed over, which is said. */
static void passes_over_damage(void **state)
{
    (void)state;
    char folder[256], before[512], newest[512], found[512];
    void *data = NULL;
    size_t bytes = 0;
    uint64_t chance = 1;
    snprintf(folder, sizeof folder, "%s", scratch_path("hit"));
    ok(lk_folder_make(folder));
    ok(lk_checkpoint_path(folder, 8, before, sizeof before));
    ok(lk_checkpoint_path(folder, 9, newest, sizeof newest));
    write_one(before);
    write_one(newest);
    ok(lk_file_read(newest, 1 << 20, &data, &bytes));
    unsigned char *byte = data;
    lk_log_set(count_warning, NULL);
    warned = 0;
    for (int i = 0; i < 1000; i++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        const size_t at = (size_t)(chance >> 33) % bytes;
        const unsigned char bit = (unsigned char)(1u << (chance >> 30) % 8);
        byte[at] ^= bit;
        scratch_put(newest, data, i % 2 ? at : bytes);
        byte[at] ^= bit;
        ok(lk_checkpoint_newest(folder, found, sizeof found));
        assert_string_equal(found, before);
        assert_int_equal(warned, i + 1);
    }
    scratch_put(newest, data, bytes);
    ok(lk_checkpoint_newest(folder, found, sizeof found));
    assert_string_equal(found, newest);
    lk_log_set(NULL, NULL);
    free(data);
}

static void finds_the_newest(void **state)
{
    (void)state;
    static const int64_t steps[] = {5, 90, 100000000, 7};
    char folder[256], path[512], found[512] = "x";
    snprintf(folder, sizeof folder, "%s", scratch_path("checkpoints"));
    ok(lk_folder_make(folder));
    lk_error_clear();
    ok(lk_checkpoint_newest(folder, found, sizeof found));
    assert_string_equal(found, "");
    for (int i = 0; i < 4; i++) {
        ok(lk_checkpoint_path(folder, steps[i], path, sizeof path));
        write_one(path);
    }
    snprintf(path, sizeof path, "%s/step-999.safetensors", folder); /* not our name */
    scratch_put(path, "x", 1);
    ok(lk_checkpoint_newest(folder, found, sizeof found));
    assert_string_equal(strrchr(found, '/'), "/step-100000000.safetensors");

    lk_log_set(count_warning, NULL);
    warned = 0;
    scratch_put(found, "damaged", 7);
    ok(lk_checkpoint_newest(folder, found, sizeof found));
    assert_string_equal(strrchr(found, '/'), "/step-00000090.safetensors");
    assert_int_equal(warned, 1);
    assert_string_equal(lk_error_text(), "");

    ok(lk_checkpoint_prune(folder, 3, NULL, 0));
    assert_int_equal(scratch_entries(folder), 4);
    ok(lk_checkpoint_path(folder, 5, path, sizeof path));
    assert_false(lk_file_exists(path));
    ok(lk_checkpoint_path(folder, 7, path, sizeof path));
    assert_true(lk_file_exists(path));
    ok(lk_checkpoint_prune(folder, 1, (const int64_t[]){3, 7}, 2)); /* 3 is not there */
    assert_int_equal(scratch_entries(folder), 3);
    assert_true(lk_file_exists(path));
    ok(lk_checkpoint_prune(folder, 1, NULL, 0));
    assert_refused((int)lk_checkpoint_newest(folder, found, sizeof found), LK_E_DATA,
                   lk_error_text(), "none of its 1 checkpoints can be read");
    lk_log_set(NULL, NULL);
    lk_error_clear();
    assert_int_equal(lk_checkpoint_newest(scratch_path("absent"), found, sizeof found),
                     LK_E_IO);
    lk_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_bit_for_bit),   cmocka_unit_test(names_its_arrays),
        cmocka_unit_test(gives_parameters_alone),   cmocka_unit_test(refuses_another_model),
        cmocka_unit_test(passes_over_damage),       cmocka_unit_test(refuses_damage),
        cmocka_unit_test(refuses_a_changed_header), cmocka_unit_test(refuses_other_words),
        cmocka_unit_test(refuses_other_files),      cmocka_unit_test(finds_the_newest),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
