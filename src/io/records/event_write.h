/* Writes the event files that TensorBoard reads: records of what has a name, a step and a time.
 * Floor 1. Knows bytes and numbers only.
 * source: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto,
 * tensor.proto, plugins/hparams/plugin_data.proto of
 * TensorBoard, graph.proto, node_def.proto and attr_value.proto; protobuf.dev, Encoding */
#ifndef LK_IO_EVENT_WRITE_H
#define LK_IO_EVENT_WRITE_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Values of one step under their names (tags), as they are encoded. {0} is empty; the owner
 * frees `bytes`. */
struct lk_summary {
    uint8_t *bytes;
    size_t used, room;
    bool failed; /* memory ran out: it is incomplete */
};

/* How numbers are spread: `counts` of them in LK_HISTOGRAM_BUCKETS runs of equal width between
 * least and most. */
enum { LK_HISTOGRAM_BUCKETS = 30 };
struct lk_histogram {
    double least, most, sum, sum_of_squares;
    int64_t count; /* of finite numbers; the others are left out */
    int64_t counts[LK_HISTOGRAM_BUCKETS];
};

/* values [count] */
void lk_histogram_make(const float *values, int64_t count, struct lk_histogram *histogram);

/* Append a value; nothing happens after a failure. A text may be Markdown. */
void lk_summary_add_number(struct lk_summary *summary, const char *tag, double value);
void lk_summary_add_histogram(struct lk_summary *summary, const char *tag,
                              const struct lk_histogram *histogram);
void lk_summary_add_text(struct lk_summary *summary, const char *tag, const char *text);

/* A setting: a number where `text` is NULL. */
struct lk_hyper_parameter {
    const char *name, *text;
    double number;
};

/* Appends what begins a session with these settings, in seconds since 1970, and what ends it
 * with success. */
void lk_summary_add_session(struct lk_summary *summary, double began,
                            const struct lk_hyper_parameter *list, int count);
void lk_summary_end_session(struct lk_summary *summary, double ended);

/* An image as a file in memory, such as a PNG. */
struct lk_encoded_image {
    void *data;
    size_t bytes;
};

/* Appends images of one size, in pixels, under one name. */
void lk_summary_add_images(struct lk_summary *summary, const char *tag, int width, int height,
                           const struct lk_encoded_image *images, int count);

/* A node of a graph. Texts are UTF-8; a name has letters, digits and _ . / - alone. */
struct lk_drawn_node {
    const char *name, *kind, *device, *options; /* device, options: "": none */
    const char *const *inputs;                  /* [input_count] names */
    int input_count;
    const int64_t *shape; /* [rank] of what it gives */
    int rank;
};

/* Appends a node to a graph, which is empty at first. */
void lk_summary_add_node(struct lk_summary *graph, const struct lk_drawn_node *node);

/* Appends the record that a file begins with. wall_time: seconds since 1970.
 * fails: LK_E_IO, naming `path`; LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_event_file_begin(FILE *file, const char *path,
                                                 double wall_time);

/* Appends the values as a record, and empties the summary. fails: as above */
LK_MUST_CHECK enum lk_status lk_event_file_add(FILE *file, const char *path, double wall_time,
                                               int64_t step, struct lk_summary *summary);

/* Appends the graph as a record, and empties it. fails: as above */
LK_MUST_CHECK enum lk_status lk_event_file_add_graph(FILE *file, const char *path,
                                                     double wall_time,
                                                     struct lk_summary *graph);

#endif
