/* Encodes the records of TensorBoard's event files. */
#include "io/records/event_write.h"

#include "base/fail.h"
#include "io/records/tfrecord_write.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of fields, and the numbers of those that are written. */
enum { VARINT = 0, EIGHT_BYTES = 1, WITH_LENGTH = 2, FOUR_BYTES = 5 };
enum { EVENT_TIME = 1, EVENT_STEP, EVENT_VERSION, EVENT_GRAPH, EVENT_SUMMARY };
enum { VALUE_TAG = 1, VALUE_NUMBER, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8, VALUE_METADATA };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE, TENSOR_FLOATS = 5, TENSOR_STRINGS = 8 };
enum { TYPE_FLOAT = 1, TYPE_STRING = 7 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, CLASS_TENSOR = 2, CLASS_BLOBS = 3 };
enum { PLUGIN_NAME = 1, PLUGIN_CONTENT };
enum { SESSION_START = 3, SESSION_END, SESSION_SETTINGS = 1, SESSION_BEGAN = 5 };
enum { SESSION_STATUS = 1, SESSION_ENDED, STATUS_SUCCESS = 1 };
enum { VALUE_DOUBLE = 2, VALUE_TEXT };
enum { HISTOGRAM_LIMITS = 6, HISTOGRAM_COUNTS = 7 };
enum { NODE_NAME = 1, NODE_KIND, NODE_INPUT, NODE_DEVICE, NODE_ATTRIBUTE };
enum { ATTRIBUTE_LIST = 1, ATTRIBUTE_BYTES, LIST_SHAPE = 7 };

/* --- fields ----------------------------------------------------------------------------- */

static void put(struct lk_summary *to, const void *data, size_t bytes)
{
    if (to->used + bytes > to->room && !to->failed) {
        const size_t room = 2 * (to->used + bytes);
        uint8_t *grown = realloc(to->bytes, room);
        to->failed = !grown;
        to->bytes = grown ? grown : to->bytes;
        to->room = grown ? room : to->room;
    }
    if (to->failed || bytes == 0)
        return;
    memcpy(to->bytes + to->used, data, bytes);
    to->used += bytes;
}

static void put_number(struct lk_summary *to, uint64_t value)
{
    do {
        const uint8_t byte = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        put(to, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_key(struct lk_summary *to, int field, int kind)
{
    put_number(to, (uint64_t)(field << 3 | kind));
}

static void put_whole(struct lk_summary *to, int field, uint64_t value)
{
    put_key(to, field, VARINT);
    put_number(to, value);
}

/* Little-endian, on any host. */
static void put_double(struct lk_summary *to, double value)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    put(to, bytes, sizeof bytes);
}

static void put_double_field(struct lk_summary *to, int field, double value)
{
    put_key(to, field, EIGHT_BYTES);
    put_double(to, value);
}

static void put_float_field(struct lk_summary *to, int field, double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint8_t bytes[] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                             (uint8_t)(bits >> 24)};
    put_key(to, field, FOUR_BYTES);
    put(to, bytes, sizeof bytes);
}

static void put_bytes(struct lk_summary *to, int field, const void *data, size_t bytes)
{
    put_key(to, field, WITH_LENGTH);
    put_number(to, bytes);
    put(to, data, bytes);
}

static void put_text(struct lk_summary *to, int field, const char *text)
{
    put_bytes(to, field, text, strlen(text));
}

/* Puts a message into one that holds it, and releases it. */
static void put_message(struct lk_summary *to, int field, struct lk_summary *message)
{
    put_bytes(to, field, message->bytes, message->used);
    to->failed |= message->failed;
    free(message->bytes);
}

/* --- values ----------------------------------------------------------------------------- */

void lk_histogram_make(const float *values, int64_t count, struct lk_histogram *histogram)
{
    struct lk_histogram h = {.least = INFINITY, .most = -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        h.least = fmin(h.least, values[i]);
        h.most = fmax(h.most, values[i]);
        h.sum += values[i];
        h.sum_of_squares += (double)values[i] * values[i];
        h.count++;
    }
    const double width = (h.most - h.least) / LK_HISTOGRAM_BUCKETS;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            const int bucket = width > 0 ? (int)((values[i] - h.least) / width) : 0;
            h.counts[bucket < LK_HISTOGRAM_BUCKETS ? bucket : LK_HISTOGRAM_BUCKETS - 1]++;
        }
    if (h.count == 0)
        h.least = h.most = 0;
    *histogram = h;
}

void lk_summary_add_number(struct lk_summary *summary, const char *tag, double value)
{
    struct lk_summary made = {0};
    put_text(&made, VALUE_TAG, tag);
    put_float_field(&made, VALUE_NUMBER, value);
    put_message(summary, 1, &made);
}

/* Numbers that are all equal have one bucket. */
static int bucket_count(const struct lk_histogram *h)
{
    return h->most > h->least ? LK_HISTOGRAM_BUCKETS : 1;
}

static double bucket_limit(const struct lk_histogram *h, int bucket)
{
    return bucket + 1 == bucket_count(h)
               ? h->most
               : h->least + (h->most - h->least) * (bucket + 1) / LK_HISTOGRAM_BUCKETS;
}

void lk_summary_add_histogram(struct lk_summary *summary, const char *tag,
                              const struct lk_histogram *h)
{
    struct lk_summary made = {0}, histogram = {0}, limits = {0}, counts = {0};
    const double head[] = {h->least, h->most, (double)h->count, h->sum, h->sum_of_squares};
    for (int i = 0; i < LK_COUNT(head); i++)
        put_double_field(&histogram, i + 1, head[i]);
    for (int i = 0; i < bucket_count(h); i++) {
        put_double(&limits, bucket_limit(h, i));
        put_double(&counts, (double)h->counts[i]);
    }
    put_message(&histogram, HISTOGRAM_LIMITS, &limits);
    put_message(&histogram, HISTOGRAM_COUNTS, &counts);
    put_text(&made, VALUE_TAG, tag);
    put_message(&made, VALUE_HISTOGRAM, &histogram);
    put_message(summary, 1, &made);
}

/* An entry of a map: its key, then its value, which is released. */
static void put_entry(struct lk_summary *to, int map, const char *key, struct lk_summary *value)
{
    struct lk_summary entry = {0};
    put_text(&entry, 1, key);
    put_message(&entry, 2, value);
    put_message(to, map, &entry);
}

/* Puts a tensor of texts with what says how it is shown, and releases it. */
static void put_tensor(struct lk_summary *summary, const char *tag, struct lk_summary *tensor,
                       struct lk_summary *plugin, int class)
{
    struct lk_summary made = {0}, metadata = {0};
    put_text(&made, VALUE_TAG, tag);
    put_message(&made, VALUE_TENSOR, tensor);
    put_message(&metadata, METADATA_PLUGIN, plugin);
    put_whole(&metadata, METADATA_CLASS, (uint64_t) class);
    put_message(&made, VALUE_METADATA, &metadata);
    put_message(summary, 1, &made);
}

void lk_summary_add_text(struct lk_summary *summary, const char *tag, const char *text)
{
    struct lk_summary tensor = {0}, plugin = {0};
    put_whole(&tensor, TENSOR_TYPE, TYPE_STRING);
    put_bytes(&tensor, TENSOR_SHAPE, "", 0); /* of no dimension */
    put_text(&tensor, TENSOR_STRINGS, text);
    put_text(&plugin, PLUGIN_NAME, "text");
    put_tensor(summary, tag, &tensor, &plugin, CLASS_TENSOR);
}

/* A vector: width and height in decimal, then the files. */
void lk_summary_add_images(struct lk_summary *summary, const char *tag, int width, int height,
                           const struct lk_encoded_image *images, int count)
{
    struct lk_summary tensor = {0}, plugin = {0}, shape = {0}, size = {0};
    char side[16];
    put_whole(&tensor, TENSOR_TYPE, TYPE_STRING);
    put_whole(&size, 1, (uint64_t)count + 2);
    put_message(&shape, 2, &size);
    put_message(&tensor, TENSOR_SHAPE, &shape);
    snprintf(side, sizeof side, "%d", width);
    put_text(&tensor, TENSOR_STRINGS, side);
    snprintf(side, sizeof side, "%d", height);
    put_text(&tensor, TENSOR_STRINGS, side);
    for (int i = 0; i < count; i++)
        put_bytes(&tensor, TENSOR_STRINGS, images[i].data, images[i].bytes);
    put_text(&plugin, PLUGIN_NAME, "images");
    put_tensor(summary, tag, &tensor, &plugin, CLASS_BLOBS);
}

/* What the page of hyper-parameters reads is in the metadata; the value is a single 0. */
static void put_session(struct lk_summary *summary, const char *tag, int field,
                        struct lk_summary *info)
{
    struct lk_summary tensor = {0}, shape = {0}, size = {0}, plugin = {0}, content = {0};
    put_whole(&tensor, TENSOR_TYPE, TYPE_FLOAT);
    put_whole(&size, 1, 1);
    put_message(&shape, 2, &size);
    put_message(&tensor, TENSOR_SHAPE, &shape);
    put_bytes(&tensor, TENSOR_FLOATS, "\0\0\0", 4);
    put_message(&content, field, info);
    put_text(&plugin, PLUGIN_NAME, "hparams");
    put_message(&plugin, PLUGIN_CONTENT, &content);
    put_tensor(summary, tag, &tensor, &plugin, CLASS_TENSOR);
}

void lk_summary_add_session(struct lk_summary *summary, double began,
                            const struct lk_hyper_parameter *list, int count)
{
    struct lk_summary info = {0};
    for (int i = 0; i < count; i++) {
        struct lk_summary value = {0};
        if (list[i].text)
            put_text(&value, VALUE_TEXT, list[i].text);
        else
            put_double_field(&value, VALUE_DOUBLE, list[i].number);
        put_entry(&info, SESSION_SETTINGS, list[i].name, &value);
    }
    put_double_field(&info, SESSION_BEGAN, began);
    put_session(summary, "_hparams_/session_start_info", SESSION_START, &info);
}

void lk_summary_end_session(struct lk_summary *summary, double ended)
{
    struct lk_summary info = {0};
    put_whole(&info, SESSION_STATUS, STATUS_SUCCESS);
    put_double_field(&info, SESSION_ENDED, ended);
    put_session(summary, "_hparams_/session_end_info", SESSION_END, &info);
}

static void put_shape(struct lk_summary *node, const struct lk_drawn_node *from)
{
    struct lk_summary value = {0}, list = {0}, shape = {0};
    for (int i = 0; i < from->rank; i++) {
        struct lk_summary size = {0};
        put_whole(&size, 1, (uint64_t)from->shape[i]);
        put_message(&shape, 2, &size);
    }
    put_message(&list, LIST_SHAPE, &shape);
    put_message(&value, ATTRIBUTE_LIST, &list);
    put_entry(node, NODE_ATTRIBUTE, "_output_shapes", &value);
}

void lk_summary_add_node(struct lk_summary *graph, const struct lk_drawn_node *from)
{
    struct lk_summary node = {0}, options = {0};
    put_text(&node, NODE_NAME, from->name);
    put_text(&node, NODE_KIND, from->kind);
    for (int i = 0; i < from->input_count; i++)
        put_text(&node, NODE_INPUT, from->inputs[i]);
    if (*from->device)
        put_text(&node, NODE_DEVICE, from->device);
    put_shape(&node, from);
    if (*from->options) {
        put_text(&options, ATTRIBUTE_BYTES, from->options);
        put_entry(&node, NODE_ATTRIBUTE, "options", &options);
    }
    put_message(graph, 1, &node);
}

/* --- records ---------------------------------------------------------------------------- */

/* Releases the event. */
static enum lk_status write_event(FILE *file, const char *path, struct lk_summary *event)
{
    struct lk_tfrecord_frame frame;
    enum lk_status status = LK_OK;
    if (event->failed) {
        status = lk_fail_memory("an event of TensorBoard", event->room);
    } else {
        lk_tfrecord_frame(event->bytes, event->used, &frame);
        status = lk_tfrecord_write(file, path, event->bytes, event->used, &frame);
    }
    free(event->bytes);
    return status;
}

enum lk_status lk_event_file_begin(FILE *file, const char *path, double wall_time)
{
    struct lk_summary event = {0};
    put_double_field(&event, EVENT_TIME, wall_time);
    put_text(&event, EVENT_VERSION, "brain.Event:2");
    return write_event(file, path, &event);
}

enum lk_status lk_event_file_add(FILE *file, const char *path, double wall_time, int64_t step,
                                 struct lk_summary *summary)
{
    struct lk_summary event = {0};
    put_double_field(&event, EVENT_TIME, wall_time);
    put_whole(&event, EVENT_STEP, (uint64_t)step);
    put_message(&event, EVENT_SUMMARY, summary);
    *summary = (struct lk_summary){0};
    return write_event(file, path, &event);
}

enum lk_status lk_event_file_add_graph(FILE *file, const char *path, double wall_time,
                                       struct lk_summary *graph)
{
    struct lk_summary event = {0};
    put_double_field(&event, EVENT_TIME, wall_time);
    put_message(&event, EVENT_GRAPH, graph);
    *graph = (struct lk_summary){0};
    return write_event(file, path, &event);
}
