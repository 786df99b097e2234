/* TensorFlow Serving's files: how requests are batched, and which models and versions there
 * are. Floor 9. Both refuse fields that they do not know, by name.
 * source: github.com/tensorflow/serving, session_bundle_config.proto and
 * model_server_config.proto */
#ifndef LK_SERVE_CONFIG_H
#define LK_SERVE_CONFIG_H

#include <lockstep/serve.h>

enum { LK_CONFIG_MODELS = 64, LK_CONFIG_VERSIONS = 16, LK_CONFIG_LABELS = 16 };

/* A model of a file, with room for what `model` points to. */
struct lk_config_model {
    struct lk_serve_model model;
    char name[128], path[1024];
    int64_t versions[LK_CONFIG_VERSIONS];
    struct lk_serve_label labels[LK_CONFIG_LABELS];
    char label_names[LK_CONFIG_LABELS][128];
};

/* max_batch_size, batch_timeout_micros, max_enqueued_batches, num_batch_threads: sets what
 * `options` leaves open (0). fails: LK_E_IO; LK_E_DATA naming file, line and field */
LK_MUST_CHECK enum lk_status lk_config_read_batching(const char *path,
                                                     struct lk_serve_options *options);

/* The models of a model_config_list, [*count], which the caller frees. fails: likewise,
 * LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_config_read_models(const char *path,
                                                   struct lk_config_model **models, int *count);

#endif
