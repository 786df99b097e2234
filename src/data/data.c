/* Opening a data set by its SPEC, and reading its samples. */
#include "data/data.h"

#include "base/fail.h"
#include "base/option.h"
#include "data/paired.h"
#include "data/sources/field.h"
#include "data/sources/named_sets.h"
#include "data/vocabulary.h"
#include "io/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lk_source *const sources[] = {
    &lk_source_idx, &lk_source_folder, &lk_source_csv,       &lk_source_tfrecord,
    &lk_source_npy, &lk_source_text,   &lk_source_synthetic, NULL};

static int source_count(void)
{
    return LK_COUNT(sources) - 1;
}

/* What a SPEC may begin with: the kinds, then the known names. */
static const char *beginning(const void *context, int i)
{
    (void)context;
    return i < source_count() ? sources[i]->kind : lk_named_sets[i - source_count()].name;
}

/* What the user may have meant: a known name or a kind; where nothing follows the kind, with
 * what has to, "synthetic:digits" or "folder:DIR", but without options. "": nothing is near. */
static void print_near(const char *spec, const char *word, char *text, size_t bytes)
{
    const char *near = lk_nearest_name(word, beginning, NULL);
    int kind = 0;
    while (near && sources[kind] && sources[kind]->kind != near)
        kind++;
    const bool is_bare = near && sources[kind] && !strchr(spec, ':');
    const char *meant = is_bare ? sources[kind]->usage : near ? near : "";
    snprintf(text, bytes, "%.*s", (int)strcspn(meant, "["), meant);
}

static bool ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), more = strlen(end);
    return length > more && strcmp(path + length - more, end) == 0;
}

/* The kind of data that a bare path is likely to mean; NULL: none is likely. */
static const char *kind_of_path(const char *path)
{
    static const struct {
        const char *end, *kind;
    } likely[] = {{".csv", "csv"}, {".tfrecord", "tfrecord"}, {".tfrecords", "tfrecord"}};
    for (int i = 0; i < LK_COUNT(likely); i++)
        if (ends_in(path, likely[i].end))
            return likely[i].kind;
    return lk_folder_exists(path) ? "folder" : NULL;
}

static enum lk_status refuse_spec(const char *spec, const char *word)
{
    char path[1024];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(spec, ","), spec);
    const char *kind = kind_of_path(path);
    if (kind)
        return lk_fail(LK_E_ARGUMENT,
                       "unknown data '%s': the kind is missing; did you mean '%s:%s'?", spec,
                       kind, spec);
    char known[512] = "";
    size_t used = 0;
    for (int i = 0; sources[i]; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s, ", sources[i]->usage);
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", row->name,
                                 row[1].name ? ", " : "");
    char near[128];
    print_near(spec, word, near, sizeof near);
    return lk_fail(LK_E_ARGUMENT, "unknown data '%s'%s%s%s known are %s", spec,
                   *near ? "; did you mean '" : "", near, *near ? "'?" : ";", known);
}

/* Opens the source of the data, and takes what is wanted of its samples. */
static enum lk_status open_samples(struct lk_data *data, struct lk_data_request *request)
{
    struct lk_open_source opened = {.source = data->source, .info = &data->info};
    LK_TRY(data->source->open(request, &data->info, &opened.state));
    const enum lk_status status = lk_data_learn(data, request, &opened);
    if (status != LK_OK) {
        opened.source->close(opened.state);
        return lk_fail_within(status, "%s:%s", data->source->kind, request->text);
    }
    data->source = opened.source;
    data->state = opened.state;
    return LK_OK;
}

static enum lk_status open_images(struct lk_data *data, const char *text,
                                  enum lk_data_part part, const struct lk_data_options *wanted)
{
    struct lk_image_options options;
    char *path = strdup(text);
    if (!path)
        return lk_fail_memory("a SPEC", strlen(text));
    struct lk_data_request request = {
        .text = path, .part = part, .options = &options, .wanted = wanted};
    enum lk_status status = lk_source_parse_options(data->source->options, path, &options);
    if (status == LK_OK)
        status = open_samples(data, &request);
    if (status == LK_OK) {
        status = lk_images_create(data->source, data->state, &request, wanted, &data->info,
                                  &data->images);
        if (status == LK_OK)
            data->broken = lk_images_broken(data->images);
        else
            data->source->close(data->state);
    }
    free(path);
    return status;
}

static enum lk_status read_nothing(void *context, int64_t index)
{
    const struct lk_data *data = context;
    static void *const nowhere[LK_MOST_FIELDS];
    return data->source->read(data->state, index, nowhere);
}

/* Prepares counting broken samples of a source that has fields; if it knows which are broken,
 * they are noted at once. */
static enum lk_status open_broken(struct lk_data *data, const struct lk_data_request *request)
{
    const char *wanted = request->wanted->max_bad;
    const struct lk_broken_config config = {.name = data->info.name,
                                            .count = data->info.count,
                                            .max_bad = *request->max_bad ? request->max_bad
                                                       : wanted          ? wanted
                                                                         : "1%",
                                            .lost = request->lost};
    LK_TRY(lk_broken_create(&config, &data->broken));
    for (int64_t i = 0; data->source->knows_broken && i < config.count; i++)
        LK_TRY(lk_broken_read(data->broken, i, read_nothing, data));
    return LK_OK;
}

/* A file for samples that would never be written must be a mistake; memory is all the same. */
static enum lk_status check_cache(const struct lk_data *data,
                                  const struct lk_data_request *request)
{
    const char *cache = request->wanted->cache;
    if (request->part != LK_DATA_TRAIN || !cache || !*cache || strcmp(cache, "none") == 0 ||
        strcmp(cache, "memory") == 0)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "cache '%s': %s data is not decoded, so none of it is kept",
                   cache, data->source->kind);
}

/* Puts pairs of samples in place of samples; none of them is broken. */
static enum lk_status pair_samples(struct lk_data *data)
{
    struct lk_open_source opened = {data->source, data->state, &data->info};
    LK_TRY(lk_paired_take(&opened, data->pairs, data->broken));
    data->source = opened.source;
    data->state = opened.state;
    lk_broken_destroy(data->broken);
    data->broken = NULL;
    return LK_OK;
}

static enum lk_status open_fields(struct lk_data *data, struct lk_data_request *request)
{
    LK_TRY(check_cache(data, request));
    LK_TRY(open_samples(data, request));
    const char *kind = data->source->kind;
    enum lk_status status = data->source->can_break ? open_broken(data, request) : LK_OK;
    if (status == LK_OK && data->pairs > 0)
        status = pair_samples(data);
    if (status != LK_OK) {
        lk_broken_destroy(data->broken);
        data->source->close(data->state);
        return lk_fail_within(status, "%s:%s", kind, request->text);
    }
    return LK_OK;
}

static enum lk_status open_source(struct lk_data *data, const char *text,
                                  enum lk_data_part part, const struct lk_data_options *wanted)
{
    static const char *const labels[] = {"label", "label_type"};
    struct lk_data_request request = {.text = text, .part = part, .wanted = wanted};
    if (data->source->of_fields &&
        (lk_source_has_option(text, "fields") ||
         (data->source->of_fields->texts && lk_source_has_option(text, "text"))))
        data->source = data->source->of_image_and_fields && lk_source_has_option(text, "image")
                           ? data->source->of_image_and_fields
                           : data->source->of_fields;
    for (int i = 0; data->source->of_fields && i < LK_COUNT(labels); i++)
        if (data->source->fetch && lk_source_has_option(text, labels[i]) &&
            !lk_option_find(data->source->options, labels[i]))
            return lk_fail(LK_E_ARGUMENT,
                           "%s:%s: '%s=' is for columns of numbers, which fields= names: "
                           "fields=a,b or fields=* (all but the labels) is missing",
                           data->source->kind, text, labels[i]);
    if (data->source->of_tokens && lk_data_wants_tokens(text, wanted))
        data->source = data->source->of_tokens;
    if (data->source->fetch && data->pairs > 0)
        return lk_fail(LK_E_ARGUMENT, "%s:%s: pairs= is for texts and numbers, and no images",
                       data->source->kind, text);
    if (data->source->fetch)
        return open_images(data, text, part, wanted);
    if (wanted->part_height)
        return lk_fail(LK_E_ARGUMENT, "%s:%s: only image files are cropped before resize",
                       data->source->kind, text);
    return open_fields(data, &request);
}

static enum lk_status open_known(const struct lk_named_set *known, enum lk_data_part part,
                                 const struct lk_data_options *wanted, struct lk_data *data)
{
    char *folder = NULL;
    LK_TRY(lk_named_set_folder(known, &folder));
    data->source = known->source;
    data->info.name = known->name;
    data->info.class_names = known->class_names;
    const enum lk_status status = open_source(data, folder, part, wanted);
    free(folder);
    return status;
}

static enum lk_status open_spec(const char *spec, enum lk_data_part part,
                                const struct lk_data_options *wanted, struct lk_data *data)
{
    char word[64];
    const size_t length = strcspn(spec, ":");
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 0), spec);
    if (wanted->max_bad)
        LK_TRY(lk_broken_check_most(wanted->max_bad));
    for (int i = 0; spec[length] == ':' && sources[i]; i++)
        if (strcmp(word, sources[i]->kind) == 0) {
            data->source = sources[i];
            return open_source(data, spec + length + 1, part, wanted);
        }
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++)
        if (strcmp(spec, row->name) == 0)
            return open_known(row, part, wanted, data);
    return refuse_spec(spec, word);
}

/* Opens a part of a SPEC with val=: its training part is divided; its test part is what it
 * would be without val=, or what is held out where there is none. */
static enum lk_status open_divided(const char *spec, enum lk_data_part part,
                                   const struct lk_data_options *wanted, struct lk_data *data)
{
    const double share = data->training_share = data->share;
    if ((part == LK_DATA_TEST || part == LK_DATA_TEST_OR_ALL) &&
        !lk_source_has_option(spec, "part")) {
        data->share = 0;
        const enum lk_status status = open_spec(spec, LK_DATA_TEST, wanted, data);
        if (status != LK_E_IO)
            return status;
        lk_error_clear();
        *data = (struct lk_data){.share = share, .training_share = share, .pairs = data->pairs};
    }
    data->is_held_out = part != LK_DATA_TRAIN;
    if (part == LK_DATA_VALIDATION && !lk_source_has_option(spec, "part"))
        lk_held_out_tell(spec);
    return open_spec(spec, LK_DATA_TRAIN, wanted, data);
}

bool lk_data_known_shape(const char *spec, int64_t shape[3], int64_t *classes)
{
    const size_t length = strcspn(spec, ",");
    for (const struct lk_named_set *row = lk_named_sets; row->name; row++) {
        if (strlen(row->name) != length || strncmp(spec, row->name, length) != 0)
            continue;
        for (int i = 0; i < 3; i++)
            shape[i] = row->shape[i];
        for (*classes = 0; row->class_names[*classes];)
            ++*classes;
        return true;
    }
    return false;
}

/* The fields of sources that leave them open: an image and its class. */
static void make_standard_fields(struct lk_data *data)
{
    struct lk_data_info *info = &data->info;
    data->fields[LK_FIELD_IMAGE] =
        (struct lk_field){.name = "image",
                          .dtype = LK_U8,
                          .shape = {3, {info->height, info->width, info->channels}},
                          .role = LK_FIELD_INPUT,
                          .length = -1};
    data->fields[LK_FIELD_CLASS] = (struct lk_field){.name = "label",
                                                     .dtype = LK_I32,
                                                     .role = LK_FIELD_LABEL,
                                                     .length = -1,
                                                     .classes = info->classes,
                                                     .class_names = info->class_names};
    info->field_count = 2;
}

int lk_data_first_classes(const struct lk_data *data)
{
    for (int i = 0; i < data->info.field_count; i++)
        if (data->fields[i].role == LK_FIELD_LABEL && data->fields[i].classes > 0)
            return i;
    return -1;
}

/* Fills the info's image size and classes from the fields of a source that has its own. */
static void describe_by_fields(struct lk_data *data)
{
    struct lk_data_info *info = &data->info;
    info->height = info->width = info->channels = info->classes = 0;
    info->class_names = NULL;
    for (int i = info->field_count - 1; i >= 0; i--) {
        const struct lk_field *field = &data->fields[i];
        if (lk_field_is_image(field)) {
            info->height = (int)field->shape.dim[0];
            info->width = (int)field->shape.dim[1];
            info->channels = (int)field->shape.dim[2];
        }
    }
    const int label = lk_data_first_classes(data);
    if (label >= 0) {
        info->classes = (int)data->fields[label].classes;
        info->class_names = data->fields[label].class_names;
    }
}

static void describe_fields(struct lk_data *data)
{
    struct lk_data_info *info = &data->info;
    data->image = data->label = -1;
    if (info->fields) {
        memcpy(data->fields, info->fields, (size_t)info->field_count * sizeof *data->fields);
        for (int i = 0; data->images && i < info->field_count; i++)
            if (lk_field_is_image(&data->fields[i]))
                data->fields[i].shape =
                    (struct lk_shape){3, {info->height, info->width, info->channels}};
        describe_by_fields(data);
    } else {
        make_standard_fields(data);
    }
    info->fields = data->fields;
    for (int i = info->field_count - 1; i >= 0; i--) {
        data->field_bytes[i] = lk_field_bytes(&info->fields[i]);
        if (lk_field_is_image(&info->fields[i]))
            data->image = i;
        if (lk_field_is_class(&info->fields[i]))
            data->label = i;
    }
    data->sample_bytes = data->image < 0 ? 0 : data->field_bytes[data->image];
}

enum lk_status lk_data_open_as(const char *spec, enum lk_data_part part,
                               const struct lk_data_options *options, struct lk_data **data)
{
    static const struct lk_data_options standard;
    if ((unsigned)part > LK_DATA_VALIDATION_OR_ALL)
        return lk_fail(LK_E_ARGUMENT, "data '%s': part %d is none of train, validation, test",
                       spec, (int)part);
    struct lk_data *opened = calloc(1, sizeof *opened);
    char *text = strdup(spec);
    enum lk_status status =
        opened && text ? LK_OK : lk_fail_memory("a data set", sizeof *opened);
    if (status == LK_OK)
        status = lk_held_out_parse(text, &opened->share);
    if (status == LK_OK)
        status = lk_paired_parse(text, &opened->pairs);
    if (status == LK_OK)
        status = (opened->share > 0 ? open_divided : open_spec)(
            text, part, options ? options : &standard, opened);
    free(text);
    if (status != LK_OK) {
        if (opened)
            free(opened->vocabulary);
        free(opened);
        return status;
    }
    describe_fields(opened);
    *data = opened;
    return LK_OK;
}

enum lk_status lk_data_of_source(const struct lk_source *source, void *state,
                                 const struct lk_data_info *info, struct lk_data **data)
{
    struct lk_data *opened = calloc(1, sizeof *opened);
    if (!opened)
        return lk_fail_memory("a data set", sizeof *opened);
    opened->source = source;
    opened->state = state;
    opened->info = *info;
    describe_fields(opened);
    *data = opened;
    return LK_OK;
}

enum lk_status lk_data_open(const char *spec, enum lk_data_part part, struct lk_data **data)
{
    return lk_data_open_as(spec, part, NULL, data);
}

void lk_data_close(struct lk_data *data)
{
    if (data) {
        if (!data->images)
            lk_broken_destroy(data->broken);
        lk_images_destroy(data->images);
        data->source->close(data->state);
        for (int i = 0; i < LK_MOST_FIELDS; i++)
            lk_label_rule_clear(&data->rules[i]);
        free(data->vocabulary);
    }
    free(data);
}

int64_t lk_data_bad(const struct lk_data *data)
{
    return data->broken ? lk_broken_count(data->broken) : 0;
}

bool lk_data_is_bad(const struct lk_data *data, int64_t index)
{
    return data->broken && lk_broken_has(data->broken, index);
}

const struct lk_data_info *lk_data_info(const struct lk_data *data)
{
    return &data->info;
}

static enum lk_status check_index(const struct lk_data *data, int64_t index)
{
    if (index >= 0 && index < data->info.count)
        return LK_OK;
    return lk_fail(LK_E_ARGUMENT, "%s: sample %lld is not in 0..%lld", data->info.name,
                   (long long)index, (long long)data->info.count - 1);
}

static enum lk_status apply_rules(const struct lk_data *data, enum lk_field_role role,
                                  int64_t index, void *const to[])
{
    for (int f = 0; data->has_rules && f < data->info.field_count; f++)
        if (to[f] && data->fields[f].role == role)
            LK_TRY(lk_label_rule_apply(&data->rules[f], data->info.name, &data->fields[f],
                                       index, to[f]));
    return LK_OK;
}

enum lk_status lk_data_read_crop(const struct lk_data *data, int64_t index,
                                 const struct lk_image_crop *crop,
                                 void *const to[LK_MOST_FIELDS])
{
    LK_TRY(check_index(data, index));
    LK_TRY(lk_images_read_fields(data->images, index, crop, to));
    LK_TRY(apply_rules(data, LK_FIELD_INPUT, index, to));
    return apply_rules(data, LK_FIELD_LABEL, index, to);
}

enum lk_status lk_data_check_image(const struct lk_data *data)
{
    char names[512] = "";
    size_t used = 0;
    if (data->image >= 0 && data->label >= 0)
        return LK_OK;
    for (int i = 0; i < data->info.field_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s'%s'", i ? ", " : "",
                                 data->info.fields[i].name);
    return lk_fail(LK_E_ARGUMENT, "%s: the data has no %s; its fields are %s", data->info.name,
                   data->image < 0 ? "image" : "label that is one class", names);
}

struct reading {
    const struct lk_data *data;
    void *const *to;
};

/* A sample with an input that the model does not take is as broken as one that cannot be read.
 */
static enum lk_status read_sample(void *context, int64_t index)
{
    const struct reading *reading = context;
    const struct lk_data *data = reading->data;
    LK_TRY(data->source->read(data->state, index, reading->to));
    return apply_rules(data, LK_FIELD_INPUT, index, reading->to);
}

static enum lk_status read_one(const struct lk_data *data, int64_t index, void *const to[])
{
    struct reading reading = {data, to};
    if (data->images)
        return lk_data_read_crop(data, index, NULL, to);
    LK_TRY(data->broken ? lk_broken_read(data->broken, index, read_sample, &reading)
                        : read_sample(&reading, index));
    return apply_rules(data, LK_FIELD_LABEL, index, to);
}

enum lk_status lk_data_read_fields(const struct lk_data *data, const int64_t *indices,
                                   int count, void *const to[LK_MOST_FIELDS])
{
    for (int i = 0; i < count; i++)
        LK_TRY(check_index(data, indices[i]));
    for (int i = 0; i < count; i++) {
        void *sample[LK_MOST_FIELDS] = {NULL};
        for (int f = 0; f < data->info.field_count; f++)
            sample[f] = to[f] ? (uint8_t *)to[f] + (size_t)i * data->field_bytes[f] : NULL;
        LK_TRY(read_one(data, indices[i], sample));
    }
    return LK_OK;
}

enum lk_status lk_data_identify(const struct lk_data *data, const bool of[LK_MOST_FIELDS],
                                struct lk_sha256 *sum)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    enum lk_status status = LK_OK;
    if (data->images)
        return lk_images_identify(data->images, sum);
    for (int f = 0; f < data->info.field_count && status == LK_OK; f++)
        if (of[f] && !(to[f] = malloc(data->field_bytes[f])))
            status = lk_fail_memory("a sample", data->field_bytes[f]);
    for (int64_t i = 0; i < data->info.count && status == LK_OK; i++) {
        status = lk_data_read_fields(data, &i, 1, to);
        for (int f = 0; f < data->info.field_count && status == LK_OK; f++)
            if (to[f])
                lk_sha256_add(sum, to[f], data->field_bytes[f]);
    }
    for (int f = 0; f < LK_MOST_FIELDS; f++)
        free(to[f]);
    return status;
}

enum lk_status lk_data_read(const struct lk_data *data, const int64_t *indices, int count,
                            uint8_t *samples, int32_t *labels)
{
    void *to[LK_MOST_FIELDS] = {NULL};
    LK_TRY(lk_data_check_image(data));
    to[data->image] = samples;
    to[data->label] = labels;
    return lk_data_read_fields(data, indices, count, to);
}
