/* tensorboard: event files of TensorBoard, as keras.callbacks.TensorBoard lays them out: one of
 * the training and one of the validation. */
#include "train/callbacks/tensorboard.h"
#include "base/fail.h"
#include "base/log.h"
#include "graph/replica.h"
#include "io/file.h"
#include "io/records/event_write.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    char folder[512];
    int64_t every, histograms, images;
};

struct state {
    int64_t train_bytes, validation_bytes, session_bytes;
};

struct memory {
    struct lk_log_file train, validation, session; /* session: of their parent */
    struct lk_summary histograms, mistakes;
    bool has_missed_images; /* which was said */
};

#define OPTION(field) LK_CALLED_OPTION(struct options, field)
#define STATE(field) LK_CALLED_OPTION(struct state, field)

static const struct lk_option options_table[] = {
    {OPTION(folder), .kind = LK_OPTION_TEXT, .count = 512, .standard = "tensorboard",
     .help =
         "where train/ and validation/ are, below the run directory unless it begins with /"},
    {OPTION(every), .kind = LK_OPTION_INT, .max = 1e15, .standard = "0",
     .help = "steps between figures of single steps; 0: epochs alone"},
    {OPTION(histograms), .kind = LK_OPTION_INT, .max = 1e15, .standard = "0",
     .help = "steps between histograms of all parameters and, in mode sync, of their "
             "gradients; 0: none"},
    {OPTION(images), .kind = LK_OPTION_INT, .max = LK_MOST_BOARD_IMAGES, .standard = "0",
     .help = "so many images with each evaluation: of the step's batch as they are trained on, "
             "and of the worst mistakes; 0: none"},
    {0},
};

static const struct lk_option state_table[] = {
    {STATE(train_bytes), .kind = LK_OPTION_INT, .standard = "0"},
    {STATE(validation_bytes), .kind = LK_OPTION_INT, .standard = "0"},
    {STATE(session_bytes), .kind = LK_OPTION_INT, .standard = "0"},
    {0},
};

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Opens a writer's file; one that is new has the record that files begin with. */
static enum lk_status open_writer(const struct lk_called *called, const char *writer,
                                  int64_t bytes, struct lk_log_file *log)
{
    const struct options *o = called->options;
    char folder[LK_LOG_PATH], path[700];
    snprintf(path, sizeof path, "%s/%s", o->folder, writer);
    LK_TRY(lk_log_path(called->site->run, path, folder));
    LK_TRY(lk_folder_make(folder));
    snprintf(path, sizeof path, "%s/%s/events.out.tfevents.0.lockstep", o->folder, writer);
    LK_TRY(lk_log_file_open(called->site->logs, log, path, bytes, LK_JOURNAL_RECORDS, NULL));
    return log->begun > 0
               ? LK_OK
               : lk_event_file_begin(lk_journal_stream(log->journal), log->path, wall_time());
}

static enum lk_status put(struct lk_log_file *log, int64_t step, struct lk_summary *summary)
{
    return lk_event_file_add(lk_journal_stream(log->journal), log->path, wall_time(), step,
                             summary);
}

/* All settings, as TensorBoard shows preformatted text. */
static enum lk_status put_settings(const struct lk_called *called)
{
    struct memory *m = called->memory;
    struct lk_summary summary = {0};
    const char *from = called->site->settings;
    char *text = malloc(5 * strlen(from) + 8), *to = text;
    if (!text)
        return lk_fail_memory("settings", 5 * strlen(from));
    for (bool begins = true; *from; from++) { /* Markdown: what is indented is shown as it is */
        to += sprintf(to, "%s%c", begins ? "    " : "", *from);
        begins = *from == '\n';
    }
    *to = '\0';
    lk_summary_add_text(&summary, "settings", text);
    free(text);
    return put(&m->train, 0, &summary);
}

static enum lk_status put_graph(const struct lk_called *called)
{
    struct memory *m = called->memory;
    struct lk_summary graph = {0};
    lk_summary_add_model(&graph, called->site->model);
    return lk_event_file_add_graph(lk_journal_stream(m->train.journal), m->train.path,
                                   wall_time(), &graph);
}

/* Hyper-parameters are of the folder that has both. */
static enum lk_status begin_session(const struct lk_called *called)
{
    struct memory *m = called->memory;
    struct lk_summary session = {0};
    lk_board_add_session(&session, called->site->settings, wall_time());
    return put(&m->session, 0, &session);
}

static enum lk_status flush(struct lk_called *called, bool is_last)
{
    struct memory *m = called->memory;
    struct state *s = called->state;
    LK_TRY(lk_log_file_flush(&m->train, is_last, &s->train_bytes));
    LK_TRY(lk_log_file_flush(&m->session, is_last, &s->session_bytes));
    return lk_log_file_flush(&m->validation, is_last, &s->validation_bytes);
}

static enum lk_status sync_files(const struct lk_called *called)
{
    const struct memory *m = called->memory;
    LK_TRY(lk_log_file_sync(&m->train));
    LK_TRY(lk_log_file_sync(&m->session));
    return lk_log_file_sync(&m->validation);
}

static enum lk_status begin(struct lk_called *called, int64_t step)
{
    const struct state *s = called->state;
    struct memory *m = calloc(1, sizeof *m);
    (void)step;
    if (!m)
        return lk_fail_memory("event files", sizeof *m);
    called->memory = m;
    LK_TRY(open_writer(called, "train", s->train_bytes, &m->train));
    LK_TRY(open_writer(called, ".", s->session_bytes, &m->session));
    if (called->site->has_validation)
        LK_TRY(open_writer(called, "validation", s->validation_bytes, &m->validation));
    if (m->train.begun == 0) {
        LK_TRY(put_settings(called));
        LK_TRY(put_graph(called));
    }
    if (m->session.begun == 0)
        LK_TRY(begin_session(called));
    return flush(called, false);
}

static enum lk_status see_step(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    struct memory *m = called->memory;
    struct lk_summary summary = {0};
    (void)wish;
    if (o->every == 0 || event->step % o->every != 0)
        return LK_OK;
    lk_summary_add_number(&summary, "batch_loss", event->loss);
    if (!isnan(event->accuracy))
        lk_summary_add_number(&summary, "batch_accuracy", event->accuracy);
    lk_summary_add_number(&summary, "batch_learning_rate", event->lr);
    lk_summary_add_number(&summary, "batch_samples_per_second", event->samples_per_s);
    for (int i = 0; i < event->figure_count; i++) {
        char tag[LK_FIGURE_NAME];
        snprintf(tag, sizeof tag, "batch_%.100s", event->figures[i].name);
        lk_summary_add_number(&summary, tag, event->figures[i].value);
    }
    return put(&m->train, event->step, &summary);
}

/* They are put when the epoch is over: of other evaluations nothing follows. */
static enum lk_status see_evaluation(struct lk_called *called,
                                     const struct lk_evaluation *evaluation)
{
    const struct options *o = called->options;
    struct memory *m = called->memory;
    m->mistakes.used = 0;
    return o->images > 0 ? lk_board_add_mistakes(&m->mistakes, called->site->validation,
                                                 evaluation, (int)o->images)
                         : LK_OK;
}

static enum lk_status put_images(struct lk_called *called, const struct lk_epoch *epoch,
                                 int64_t at)
{
    const struct options *o = called->options;
    struct memory *m = called->memory;
    struct lk_summary inputs = {0};
    const enum lk_status status =
        o->images > 0 ? lk_board_add_inputs(&inputs, called->site, epoch->step, (int)o->images)
                      : LK_OK;
    if (status != LK_OK || inputs.used == 0)
        free(inputs.bytes);
    LK_TRY(status);
    if (inputs.used > 0)
        LK_TRY(put(&m->train, at, &inputs));
    else if (o->images > 0 && !m->has_missed_images) {
        lk_log(LK_LOG_WARNING,
               "callback 'tensorboard': images are left out: the data has none, "
               "or features stand for them");
        m->has_missed_images = true;
    }
    return m->mistakes.used > 0 ? put(&m->validation, at, &m->mistakes) : LK_OK;
}

/* epoch_loss, or evaluation_loss_vs_iterations as Keras has it where epochs do not evaluate;
 * those of the validation have the same names in the other file. */
static enum lk_status see_epoch(struct lk_called *called, const struct lk_epoch *epoch,
                                struct lk_callback_wish *wish)
{
    struct memory *m = called->memory;
    struct lk_summary train = {0}, validation = {0};
    const bool is_epoch = called->site->sees_epochs;
    const int64_t at = is_epoch ? epoch->number : epoch->step;
    (void)wish;
    for (int i = 0; i < epoch->figures.count; i++) {
        const struct lk_named_figure *figure = &epoch->figures.items[i];
        const bool is_val = strncmp(figure->name, "val_", 4) == 0 && m->validation.journal;
        const char *name =
            strcmp(figure->name, "lr") == 0 ? "learning_rate" : figure->name + (is_val ? 4 : 0);
        char tag[LK_FIGURE_NAME + 32];
        snprintf(tag, sizeof tag, is_epoch ? "epoch_%s" : "evaluation_%s_vs_iterations", name);
        lk_summary_add_number(is_val ? &validation : &train, tag, figure->value);
    }
    LK_TRY(put(&m->train, at, &train));
    if (m->validation.journal)
        LK_TRY(put(&m->validation, at, &validation));
    LK_TRY(put_images(called, epoch, at));
    return flush(called, false);
}

static enum lk_status add_histogram(void *context, const struct lk_param *param,
                                    const float *values)
{
    struct memory *m = context;
    struct lk_histogram histogram;
    if (!param) { /* from the start, on another device perhaps */
        m->histograms.used = 0;
        return LK_OK;
    }
    lk_histogram_make(values, param->count, &histogram);
    lk_summary_add_histogram(&m->histograms, param->name, &histogram);
    return LK_OK;
}

static enum lk_status add_gradient(void *context, const struct lk_param *param,
                                   const float *values)
{
    struct memory *m = context;
    struct lk_histogram histogram;
    char tag[sizeof param->name + 16];
    snprintf(tag, sizeof tag, "gradients/%s", param->name);
    lk_histogram_make(values, param->count, &histogram);
    lk_summary_add_histogram(&m->histograms, tag, &histogram);
    return LK_OK;
}

static enum lk_status see_pause(struct lk_called *called, int64_t step, bool saves,
                                struct lk_callback_wish *wish)
{
    const struct options *o = called->options;
    struct memory *m = called->memory;
    (void)saves;
    (void)wish;
    if (o->histograms == 0 || step % o->histograms != 0)
        return LK_OK;
    LK_TRY(called->site->each_param(called->site->trainer, m, add_histogram));
    LK_TRY(called->site->each_gradient(called->site->trainer, m, add_gradient));
    return put(&m->train, step, &m->histograms);
}

static void end_session(struct lk_called *called, struct lk_callback_wish *wish)
{
    struct memory *m = called->memory;
    struct lk_summary session = {0};
    (void)wish;
    lk_summary_end_session(&session, wall_time());
    if (put(&m->session, 0, &session) != LK_OK)
        lk_error_clear(); /* it is not worth failing for */
}

static int64_t pause_every(const struct lk_called *called)
{
    return ((const struct options *)called->options)->histograms;
}

static void leave(struct lk_called *called)
{
    struct memory *m = called->memory;
    if (!m)
        return;
    lk_log_file_close(&m->train);
    lk_log_file_close(&m->session);
    lk_log_file_close(&m->validation);
    free(m->histograms.bytes);
    free(m->mistakes.bytes);
}

const struct lk_callback_kind lk_tensorboard = {
    .name = "tensorboard",
    .options = options_table,
    .state = state_table,
    .options_bytes = sizeof(struct options),
    .state_bytes = sizeof(struct state),
    .needs_run = true,
    .sees_gradient = true,
    .path = "folder",
    .open = begin,
    .see_step = see_step,
    .see_evaluation = see_evaluation,
    .see_epoch = see_epoch,
    .pause = see_pause,
    .pause_every = pause_every,
    .end = end_session,
    .flush = flush,
    .sync = sync_files,
    .close = leave,
};
