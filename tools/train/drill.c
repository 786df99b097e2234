/* Drills: starts training runs that are made to fail, hang or be killed, and checks how they
 * end. */
#define _GNU_SOURCE /* environ, mkdtemp() */
#include "train/drill.h"

#include "command.h"
#include "terminal/json.h"
#include "terminal/terminal.h"
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* 8 batches an epoch, the last of 52 samples. */
enum { SAMPLES = 500, EPOCH = 8, STEPS = 40, PATIENCE_MS = 120000 };

static const char run_file[] = "model:\n"
                               "  name: drill\n"
                               "  input: [28, 28, 1]\n"
                               "  layers:\n"
                               "    - conv2d: {filters: 4, kernel: 3, activation: relu}\n"
                               "    - max_pool: {size: 4}\n"
                               "    - flatten\n"
                               "    - dropout: {rate: 0.25}\n"
                               "    - dense: {units: 10}\n"
                               "    - softmax\n"
                               "data: synthetic:digits,count=500\n"
                               "validation: off\n"
                               "train:\n"
                               "  epochs: 5\n"
                               "  batch_size: 64\n"
                               "  shards: 8\n"
                               "  split: all\n"
                               "  tune: off\n"
                               "  checkpoint_every: 5\n";

/* What goes wrong in a run, how it ends, and whether it is started again to be ended. */
struct drill {
    const char *name;
    const char *fail, *slow; /* LOCKSTEP_FAIL, LOCKSTEP_SLOW; NULL: nothing */
    const char *steps;       /* it stops there; NULL: it does not */
    int status;
    bool is_killed, goes_on;
};

static const struct drill drills[] = {
    {.name = "two replicas"},
    {.name = "the first replica fails", .fail = "0:12"},
    {.name = "the second replica fails", .fail = "1:12"},
    {.name = "a replica hangs", .fail = "1:12:hang"},
    {.name = "both fail, the run goes on",
     .fail = "0:12,1:20",
     .status = NO_DEVICE,
     .goes_on = true},
    {.name = "stopped, goes on", .steps = "17", .goes_on = true},
    {.name = "killed, goes on", .slow = "0:50", .is_killed = true, .goes_on = true},
};

struct site {
    char folder[256], device[16];
    char log[300], metrics[300];
};

/* What metrics.jsonl has of a run. */
struct found {
    int steps; /* in their order, from 1 without a gap */
    long long samples;
    int checkpoints;
    char hash[65]; /* "": it has not ended */
};

/* --- runs ------------------------------------------------------------------------------- */

static bool is_kept(const char *name)
{
    static const char *const kept[] = {"LOCKSTEP_CACHE",         "LOCKSTEP_CLASS",
                                       "LOCKSTEP_VECTOR",        "LOCKSTEP_SHARED",
                                       "LOCKSTEP_BUILD_THREADS", "LOCKSTEP_PROGRAM_CACHE"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(kept[i], name) == 0)
            return true;
    return strncmp(name, "LOCKSTEP_", 9) != 0;
}

/* The user's settings would change the run. */
static void set_environment(const struct drill *drill)
{
    for (char **at = environ; *at;) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (is_kept(name) || unsetenv(name) != 0)
            at++;
        else
            at = environ;
    }
    setenv("LOCKSTEP_HANG_SECONDS", "2", 1);
    if (drill && drill->fail)
        setenv("LOCKSTEP_FAIL", drill->fail, 1);
    if (drill && drill->slow)
        setenv("LOCKSTEP_SLOW", drill->slow, 1);
}

/* Replaces this (child) process by `lockstep train`. */
static void train(const struct site *site, const struct drill *drill, bool is_fresh)
{
    const int log = open(site->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const char *words[16] = {"lockstep", "train",   "drill.yaml", "--run",
                             "run",      "--quiet", "--device",   site->device};
    int count = 8;
    if (is_fresh)
        words[count++] = "--fresh";
    if (drill && drill->steps) {
        words[count++] = "--steps";
        words[count++] = drill->steps;
    }
    set_environment(drill);
    if (log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || chdir(site->folder) != 0)
        _exit(127);
    execv("/proc/self/exe", (char *const *)words);
    _exit(127);
}

/* Reads one line of metrics.jsonl; the last one, if it is incomplete, is ignored. */
static void add_line(struct found *found, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    const char *hash = json_string_value(json_object_get(event, "parameters_sha256"));
    if (kind && strcmp(kind, "step") == 0) {
        found->steps += json_integer_value(json_object_get(event, "step")) == found->steps + 1;
        found->samples += json_integer_value(json_object_get(event, "samples"));
    }
    found->checkpoints += kind && strcmp(kind, "checkpoint") == 0;
    if (hash)
        snprintf(found->hash, sizeof found->hash, "%s", hash);
    json_decref(event);
}

static struct found read_metrics(const struct site *site)
{
    struct found found = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(site->metrics, "r");
    while (file && getline(&line, &room, file) > 0)
        add_line(&found, line);
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* The run's exit status; 128 and more: it was killed, once it has a checkpoint where the drill
 * wants that. */
static int run_once(const struct site *site, const struct drill *drill, bool is_fresh)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    int status = 0;
    const pid_t child = fork();
    if (child < 0)
        return 127;
    if (child == 0)
        train(site, drill, is_fresh);
    for (int ms = 0; waitpid(child, &status, WNOHANG) == 0; ms += 5) {
        if (ms >= PATIENCE_MS ||
            (drill && drill->is_killed && read_metrics(site).checkpoints > 0))
            kill(child, SIGKILL);
        nanosleep(&moment, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- drills ----------------------------------------------------------------------------- */

/* Says what is wrong, and where more is said. */
static int judge(const struct site *site, const char *name, int status, const char *wanted)
{
    const struct found found = read_metrics(site);
    const long long samples = STEPS / EPOCH * SAMPLES;
    char text[160] = "";
    if (status != DONE)
        snprintf(text, sizeof text, "exit status %d", status);
    else if (found.steps != STEPS || found.samples != samples)
        snprintf(text, sizeof text, "%d of %d steps, %lld of %lld samples", found.steps, STEPS,
                 found.samples, samples);
    else if (!*found.hash || strcmp(found.hash, wanted) != 0)
        snprintf(text, sizeof text, "parameters %.16s..., undisturbed %.16s...", found.hash,
                 wanted);
    if (!*text)
        return DONE;
    printf("  FAILED %s: %s (log: %s)\n", name, text, site->log);
    return FAILED;
}

static int drill_once(const struct site *site, const struct drill *drill, const char *wanted)
{
    const int expected = drill->is_killed ? 128 + SIGKILL : drill->status;
    int status = run_once(site, drill, true);
    if (status != expected) {
        printf("  FAILED %s: exit status %d, expected %d (log: %s)\n", drill->name, status,
               expected, site->log);
        return FAILED;
    }
    if (drill->goes_on)
        status = run_once(site, NULL, false);
    return judge(site, drill->name, status, wanted);
}

static int drill_all(struct site *site, int device)
{
    const int count = (int)(sizeof drills / sizeof *drills);
    int good = 0;
    const int status = run_once(site, NULL, true);
    const struct found undisturbed = read_metrics(site);
    if (judge(site, "one device, undisturbed", status, undisturbed.hash) != DONE)
        return FAILED;
    snprintf(site->device, sizeof site->device, "%d*2", device);
    for (int i = 0; i < count; i++) {
        terminal_status(drills[i].name);
        const int result = drill_once(site, &drills[i], undisturbed.hash);
        terminal_status(NULL);
        good += result == DONE;
    }
    printf("  %d of %d disturbed runs ended with the parameters of an undisturbed one\n", good,
           count);
    return good == count ? DONE : FAILED;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about;
    (void)kind;
    (void)place;
    return remove(path);
}

static bool write_run_file(const struct site *site)
{
    char path[300];
    snprintf(path, sizeof path, "%s/drill.yaml", site->folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    const bool is_written = fputs(run_file, file) >= 0;
    return fclose(file) == 0 && is_written;
}

int drill_faults(int device)
{
    const char *where = getenv("TMPDIR");
    struct site site;
    snprintf(site.folder, sizeof site.folder, "%.200s/lockstep-drill-XXXXXX",
             where && *where ? where : "/tmp");
    if (!mkdtemp(site.folder) || !write_run_file(&site)) {
        fprintf(stderr, "lockstep: no folder for drills can be made: %s\n", site.folder);
        return FAILED;
    }
    snprintf(site.device, sizeof site.device, "%d", device);
    snprintf(site.log, sizeof site.log, "%s/log.txt", site.folder);
    snprintf(site.metrics, sizeof site.metrics, "%s/run/metrics.jsonl", site.folder);
    const int result = drill_all(&site, device);
    if (result == DONE) /* else the log is left to be read */
        nftw(site.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return result;
}
