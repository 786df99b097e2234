/* lockstep train: settings from the command line, the environment and files; then the trainer,
 * its events shown, and Ctrl-C. */
#include "train/train.h"
#include "command.h"
#include "figures.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "train/events.h"
#include "train/progress.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option options[] = {
    {"data", "SPEC", "training data: folder:DIR, tfrecord:GLOB, fashion-mnist, ..."},
    {"val", "SPEC|P%",
     "validation: data, or 10% of it; default: its part val or test; off: none"},
    {"max-bad", "N|P%", "broken samples that are left out; more end the run"},
    {"augment", "STAGES", "by chance: 'flip=horizontal padding=4 rotate=10 brightness=0.2'"},
    {"pipeline", "STAGES", "what images go through, in order: 'crop padding=4 | flip both'"},
    {"data-threads", "N", "threads that read batches ahead"},
    {"cache", "memory|FILE", "keep decoded, resized samples"},
    {"freeze-until", "NAME", "train only what comes behind this entry of the model"},
    {"train-last", "N", "train only the last N entries with parameters"},
    {"cache-features", "memory|FILE", "compute the frozen part once a sample, and keep it"},
    {"cache-augmentations", "K", "keep K random variants of each sample's features"},
    {"run", "DIR", "run directory; training goes on from a checkpoint that is there"},
    {"fresh", NULL, "start over in a run directory that has checkpoints"},
    {"weights", "FILE", "begin with these weights, of another program too; ',by=order' behind"},
    {"init-from", "RUN|CHECKPOINT", "begin with the weights of another run, on its data"},
    {"skip-mismatch", NULL, "leave what of weights does not fit the model as initialized"},
    {"epochs", "N", "times through the training data"},
    {"steps", "N", "stop after this many steps"},
    {"batch-size", "N", "samples a step, over all devices"},
    {"batch-per-device", "N", "samples a step on each device, instead of --batch-size"},
    {"bucket", "N", "texts: sort the samples of N batches at a time by length, 0: do not"},
    {"device", "LIST",
     "devices: 0, 0,2, all, gpu, cpu; 0/2: halves of 0; 0*2: two replicas; 0+1,2+3: "
     "groups"},
    {"memory-limit", "BYTES", "device memory that may be taken of each device: 4G, 512M"},
    {"recompute", "auto|sqrt|off", "activations that backward computes again to save memory"},
    {"split", "HOW",
     "shares of devices: measured, all (measured, but none rests), equal, or 2:1"},
    {"place", "PLACES",
     "divide the model among devices: auto, or a=0,b=1 of what it calls a and b"},
    {"shards", "N", "parts of a batch with sums of their own; a power of two"},
    {"math", "strict|normal|fast", "direct sums; faster algorithms; reduced precision too"},
    {"tune", "quick|off", "measure kernel blockings before a long run (quick)"},
    {"precision", "float|mixed", "mixed keeps activations and their gradients as halves"},
    {"mode", "sync|async", "devices in lockstep, or without waiting for one another"},
    {"max-staleness", "N",
     "mode async: updates a gradient may miss; default: twice the devices"},
    {"seed", "N", "of weights, shuffling and dropout"},
    {"lr", "X", "learning rate"},
    {"optimizer", "NAME", "optimizer and its options: 'adam beta_1=0.9'"},
    {"set", "KEY=VALUE", "any setting of 'lockstep help train'; may be given several times"},
    {"config", "FILE", "run file, read after RUN.yaml"},
    {"callback", "NAME [OPTIONS]", "such as 'early_stopping patience=3'; may be given again"},
    {"eval-every", "PERIOD", "validate every 200steps, 2epochs (1epoch) or 5minutes"},
    {"checkpoint-every", "N", "steps between checkpoints"},
    {"check-every", "N",
     "steps between comparisons of the devices' parameters, which are compared at pauses too; "
     "0: never"},
    {"profile", "FILE", "trace of kernels and transfers for chrome://tracing and Perfetto"},
    {"no-progress", NULL, "no bar and no regular lines"},
    {"log-format", "text|jsonl", "jsonl: each event on stdout as a line of JSON"},
    {"quiet", NULL, "errors and the result only"},
    {0},
};

/* What the events tell beyond the moment. */
struct watch {
    struct progress progress;
    bool as_json, is_quiet;
    int64_t step;
    double seconds, step_seconds, samples;
    char found[512], outputs[4096]; /* of the last validation, as it is printed */
    bool has_validation;
    char hash[80];
    char run[1024]; /* where checkpoints go: it may have been moved; "": none was written */
    int64_t updates, stale[256]; /* mode async: how many missed so many others */
    bool is_async;
    double loss_scale; /* precision mixed; else 0 */
    int64_t skipped;
};

/* Of several outputs a line each, below the loss of all. */
static void keep_evaluation(struct watch *watch, const struct lk_evaluation *found)
{
    size_t used = 0;
    watch->outputs[0] = '\0';
    if (found->output_count == 1) {
        struct lk_output_evaluation whole = found->outputs[0];
        whole.loss += found->loss - found->data_loss;
        output_text(&whole, watch->found, sizeof watch->found);
        return;
    }
    char loss[32];
    snprintf(watch->found, sizeof watch->found, "loss %s", loss_text(found->loss, loss));
    for (int i = 0; i < found->output_count; i++) {
        char text[512];
        output_text(&found->outputs[i], text, sizeof text);
        if (found->outputs[i].loss_name && used < sizeof watch->outputs)
            used += (size_t)snprintf(watch->outputs + used, sizeof watch->outputs - used,
                                     "  %-8s  %s\n", found->outputs[i].name, text);
    }
}

/* The run directory of a checkpoint, DIR/checkpoints/NAME. */
static void keep_run(struct watch *watch, const char *file)
{
    int length = (int)strlen(file);
    for (int parts = 0; parts < 2 && length > 0;)
        parts += file[--length] == '/';
    snprintf(watch->run, sizeof watch->run, "%.*s", length, file);
}

static void watch_event(void *context, const struct lk_event *event)
{
    struct watch *watch = context;
    progress_event(&watch->progress, event);
    if (watch->as_json)
        events_print(event->json);
    watch->step = event->step;
    switch (event->kind) {
    case LK_EVENT_STEP:
        watch->samples += event->samples_per_s * event->step_ms / 1000;
        watch->step_seconds += event->step_ms / 1000;
        break;
    case LK_EVENT_EVALUATION:
        watch->has_validation = true;
        keep_evaluation(watch, event->evaluation);
        break;
    case LK_EVENT_CHECKPOINT:
        keep_run(watch, event->file);
        break;
    case LK_EVENT_START:
    case LK_EVENT_DEVICES:
    case LK_EVENT_SETTINGS:
    case LK_EVENT_CALLBACK:
        break;
    case LK_EVENT_END:
        watch->seconds = event->seconds;
        watch->loss_scale = event->loss_scale;
        watch->skipped = event->skipped_steps;
        watch->is_async = event->staleness != NULL;
        watch->updates = event->updates;
        for (int i = 0; watch->is_async && i <= event->max_staleness && i < 256; i++)
            watch->stale[i] = event->staleness[i];
        if (event->hash)
            snprintf(watch->hash, sizeof watch->hash, "%s", event->hash);
        break;
    }
}

static bool is_first; /* rank 0 speaks for a job of several */

static void stop(void *trainer)
{
    lk_trainer_stop(trainer);
}

/* The histogram up to its last entry. */
static void print_staleness(const struct watch *watch)
{
    int most = 255;
    while (most > 0 && watch->stale[most] == 0)
        most--;
    printf("updates     %" PRId64 ", of a staleness of 0 to %d:", watch->updates, most);
    for (int i = 0; i <= most; i++)
        printf(" %" PRId64, watch->stale[i]);
    printf("\nbits        differ from run to run in mode async\n");
}

/* The sum is that of all parameters: equal bits, equal sums. */
static void print_summary(const struct watch *watch, const char *run)
{
    char time[32], rate[32];
    printf("steps       %" PRId64 "\n", watch->step);
    printf("time        %s\n", duration_text(watch->seconds, time));
    if (watch->step_seconds > 0)
        printf("samples/s   %s\n", rate_text(watch->samples / watch->step_seconds, rate));
    if (watch->has_validation)
        printf("validation  %s\n%s", watch->found, watch->outputs);
    if (watch->is_async)
        print_staleness(watch);
    if (watch->loss_scale > 0)
        printf("loss scale  %g, %" PRId64 " step%s left out\n", watch->loss_scale,
               watch->skipped, watch->skipped == 1 ? "" : "s");
    printf("sha256      %s\n", watch->hash);
    if (*run)
        printf("run         %s\n", run);
}

/* A failure reaches all ranks, so rank 0 tells it and ends with its status; the others end in
 * peace, since mpirun would kill it for a status of theirs before it has spoken. */
static int tell(const struct watch *watch, enum lk_status status, const char *run)
{
    const char *now = *watch->run ? watch->run : run;
    if (!is_first)
        return DONE;
    if (status != LK_OK) {
        const int result = failed(status);
        if (status == LK_E_INTERRUPTED && strcmp(now, run) != 0)
            say("'%s' was moved: a checkpoint is in '%s'; the same command goes on from there "
                "with that as its --run",
                run, now);
        else if (status == LK_E_INTERRUPTED && *run)
            say("a checkpoint is in '%s'; the same command goes on from there", run);
        return result;
    }
    if (!watch->as_json)
        print_summary(watch, now);
    return DONE;
}

/* What is said of the first and the second interrupt; on a terminal in the place of the bar and
 * of the "^C". */
static void choose_words(struct interrupt_words *words, bool has_run)
{
    static char first[128], second[128];
    const char *begin = terminal_has_status() ? "\r\x1b[J" : "";
    snprintf(first, sizeof first, "%slockstep: finishing the step%s; once more stops at once\n",
             begin, has_run ? " and writing a checkpoint" : "");
    snprintf(second, sizeof second, "%slockstep: stopped at once; nothing was saved now\n",
             begin);
    words->first = first;
    words->second = second;
}

/* Trains until the run ends; *goes_on: it can, on the devices that `settings` has then. */
static enum lk_status train_once(struct lk_settings *settings, struct watch *watch,
                                 bool has_run, bool *goes_on)
{
    struct lk_trainer *trainer = NULL;
    enum lk_status status = lk_trainer_create(settings, watch_event, watch, &trainer);
    *goes_on = false;
    if (status != LK_OK)
        return status;
    if (!has_run && !watch->is_quiet && is_first)
        say("no run directory, nothing is kept: --run DIR keeps checkpoints and metrics");
    interrupt_set_running(trainer);
    status = lk_trainer_run(trainer);
    interrupt_set_running(NULL);
    terminal_status(NULL);
    *goes_on = status == LK_E_DEVICE && lk_trainer_find_left(trainer, settings);
    lk_trainer_destroy(trainer);
    return status;
}

/* A model that is divided among devices is placed anew on those that are left, as often as
 * there could be fewer. */
static int train(struct lk_settings *settings, struct watch *watch)
{
    char run[1024] = "", devices[512];
    bool goes_on = true;
    enum lk_status status = lk_settings_get(settings, "run", run, sizeof run);
    is_first = lk_rank() == 0;
    static struct interrupt_words words = {.stop = stop};
    if (is_first)
        choose_words(&words, *run != 0);
    interrupt_catch(&words);
    while (status == LK_OK && goes_on) {
        status = train_once(settings, watch, *run != 0, &goes_on);
        if (!goes_on)
            break;
        say("%s", lk_error_text());
        lk_error_clear();
        status = lk_settings_get(settings, "device", devices, sizeof devices);
        say("the model is placed anew on what is left: --device %s", devices);
    }
    terminal_status(NULL);
    return tell(watch, status, run);
}

static int run(const struct arguments *arguments)
{
    const char *format = option_text(arguments, "log-format");
    struct watch watch = {.as_json = format && strcmp(format, "jsonl") == 0,
                          .is_quiet = option_given(arguments, "quiet")};
    if (arguments->word_count > 1 ||
        (!arguments->word_count && !option_text(arguments, "config") &&
         !option_text(arguments, "init-from")))
        return wrong_usage(arguments->command, "needs one MODEL or RUN.yaml, found %d words",
                           arguments->word_count);
    if (format && !watch.as_json && strcmp(format, "text") != 0)
        return wrong_usage(arguments->command,
                           "option '--log-format' needs text or jsonl, found '%s'", format);
    if (watch.is_quiet)
        terminal_quiet();
    progress_init(&watch.progress, watch.is_quiet || watch.as_json ? PROGRESS_SILENT
                                   : option_given(arguments, "no-progress")
                                       ? PROGRESS_MILESTONES
                                       : PROGRESS_FULL);
    struct lk_settings *settings = NULL;
    const enum lk_status made = lk_settings_create(&settings);
    if (made != LK_OK)
        return failed(made);
    watch.progress.settings = settings;
    int status = train_settings(arguments, settings);
    if (status == DONE)
        status = train(settings, &watch);
    lk_settings_destroy(settings);
    return status;
}

static const struct example examples[] = {
    {"lockstep train fashion-convnet --data fashion-mnist --run out",
     "five epochs on clothes; given again, it goes on"},
    {"lockstep train run.yaml -o out -e 15 -b 256",
     "a run file, with other epochs and another batch size"},
    {"lockstep train fashion-convnet --data fashion-mnist --device 0,1",
     "two devices train one model"},
    {"lockstep train --init-from out --lr 0.0001 --run tuned",
     "begins with the weights of a run, with its model and data"},
    {"lockstep train net.yaml -d folder:photos --augment 'flip=horizontal rotate=10'",
     "your own model and photographs, changed by chance"},
    {0},
};

const struct command train_command = {
    .name = "train",
    .usage = "MODEL|RUN.yaml [options]",
    .help = "train a model on data, or go on with a run that was interrupted",
    .options = options,
    .examples = examples,
    .run = run,
};
