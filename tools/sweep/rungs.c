/* Trains trials as processes of their own: one that crashes, or loses its device, leaves the
 * others and the sweep alone, and is told from one that is merely bad. */
#include "sweep/rungs.h"

#include "command.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A trial that a signal has ended goes on from its checkpoint so often. */
enum { MOST_CRASHES = 2, MOST_WORDS = 16 + 2 * LK_MOST_SWEEP_SETTINGS, WORD = 1200 };

enum { TRAINED_ELSEWHERE = -2 }; /* by a process that an earlier sweep has left */

static const struct timespec moment = {.tv_nsec = 50000000};

static volatile sig_atomic_t must_stop;

static void stop(void *running)
{
    (void)running;
    must_stop = 1;
}

static const struct interrupt_words words = {
    .stop = stop,
    .first = "lockstep: the trials write checkpoints; once more stops at once\n",
    .second = "lockstep: stopped at once\n",
};

/* --- devices ------------------------------------------------------------------------------ */

/* Of "0*2", one device for two, each is a slot. */
static void add_slots(struct slots *slots, const char *name)
{
    const char *times = strchr(name, '+') ? NULL : strchr(name, '*');
    const int copies = times ? (int)strtol(times + 1, NULL, 10) : 1;
    const int length = times ? (int)(times - name) : (int)strlen(name);
    for (int i = 0; i < copies && slots->count < MOST_SLOTS; i++)
        snprintf(slots->device[slots->count++], SLOT_TEXT, "%.*s", length, name);
}

int slots_find(struct slots *slots, const char *list)
{
    static const bool is_lost[MOST_SLOTS * 16];
    char names[MOST_SLOTS * SLOT_TEXT], *rest = names, *name;
    int each = 0, count = 0;
    *slots = (struct slots){0};
    enum lk_status status = lk_device_list_groups(list, &each);
    if (status == LK_OK)
        status = lk_device_list_count(list, &count);
    if (status == LK_OK && (count > MOST_SLOTS || (each && strlen(list) >= sizeof names))) {
        say("%d devices, at most %d", count, (int)MOST_SLOTS);
        return USAGE;
    }
    if (status == LK_OK && each) /* groups stand as they are */
        strcpy(names, list);
    else if (status == LK_OK)
        status = lk_device_list_left(list, is_lost, names, sizeof names, &count);
    if (status != LK_OK)
        return failed(status);
    while ((name = strtok_r(rest, ",", &rest)))
        add_slots(slots, name);
    return DONE;
}

/* --- one trial ---------------------------------------------------------------------------- */

/* In the child: `lockstep train` of the trial, with a log of its own. Its own process group,
 * so that Ctrl-C reaches the sweep alone, which asks each trial once to stop. */
static void train(const struct trials *trials, int trial, int rung, const char *device)
{
    static char texts[MOST_WORDS][WORD];
    const char *list[MOST_WORDS + 1] = {"lockstep", "train"};
    char path[TRIAL_PATH + 24], log[TRIAL_PATH + 40];
    const int64_t epochs = trials->plan->epochs[rung];
    int count = 2;
    trial_path(trials, trial, path);
    snprintf(texts[count], WORD, "%s/run.yaml", trials->folder);
    list[count] = texts[count];
    count++;
    const char *const fixed[] = {"--run", path, "--device", device, "--quiet"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        list[count++] = fixed[i];
    for (int i = 0; i <= trials->plan->settings; i++) {
        if (i == trials->plan->settings && epochs == 0)
            break;
        if (i < trials->plan->settings)
            snprintf(texts[count], WORD, "--set=%s=%s", lk_sweep_setting(trials->sweep, i),
                     lk_sweep_value(trials->sweep, trial, i));
        else
            snprintf(texts[count], WORD, "--set=epochs=%" PRId64, epochs);
        list[count] = texts[count];
        count++;
    }
    snprintf(log, sizeof log, "%s/log.txt", path);
    const int from = open("/dev/null", O_RDONLY);
    const int to = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (setpgid(0, 0) != 0 || from < 0 || to < 0 || dup2(from, 0) < 0 || dup2(to, 1) < 0 ||
        dup2(to, 2) < 0)
        _exit(127);
    execv("/proc/self/exe", (char *const *)list);
    _exit(127);
}

/* Locks a trial's run directory as training does, before there is a process that trains: where
 * this one is killed, the next sweep sees that the trial is taken. -1: it cannot be locked. */
static int hold(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0)
        return folder;
    const bool is_taken = errno == EWOULDBLOCK;
    close(folder);
    return is_taken ? TRAINED_ELSEWHERE : -1;
}

/* In the child, which trains with the lock that it inherits. */
static void hand_over(int held)
{
    char number[16];
    snprintf(number, sizeof number, "%d", held);
    if (held >= 0 && fcntl(held, F_SETFD, 0) == 0)
        setenv("LOCKSTEP_RUN_LOCK", number, 1);
}

static int start(struct trials *trials, struct slots *slots, int trial, int rung, int slot)
{
    char path[TRIAL_PATH + 24];
    struct trial *t = &trials->list[trial];
    trial_path(trials, trial, path);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        say("cannot make the folder '%s': %s", path, strerror(errno));
        return BAD_INPUT;
    }
    const int held = hold(path);
    if (held == TRAINED_ELSEWHERE)
        return DONE;
    const pid_t child = fork();
    if (child == 0) {
        hand_over(held);
        train(trials, trial, rung, slots->device[slot]);
    }
    if (held >= 0)
        close(held);
    if (child < 0) {
        say("cannot start a process: %s", strerror(errno));
        return FAILED;
    }
    t->process = child;
    t->slot = slot;
    slots->is_taken[slot] = true;
    return DONE;
}

static void tell(const struct trials *trials, int trial, int rung)
{
    const struct trial *t = &trials->list[trial];
    char text[1024], path[TRIAL_PATH + 24];
    int used = snprintf(text, sizeof text, "trial %d ", trial + 1);
    trial_path(trials, trial, path);
    for (int i = 0; i < trials->plan->settings && used < (int)sizeof text; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %s=%s",
                         lk_sweep_setting(trials->sweep, i),
                         lk_sweep_value(trials->sweep, trial, i));
    if (t->failed)
        say_plain("%s  failed (status %d), see %s/log.txt", text, t->failed, path);
    else
        say_plain("%s  %s %.4g", text, trials->plan->metric, t->value[rung]);
}

/* Takes what a child has left. One that somebody has interrupted waits to be started again. */
static int finish(struct trials *trials, int trial, int rung, int status)
{
    struct trial *t = &trials->list[trial];
    const bool is_killed = WIFSIGNALED(status);
    const int result = is_killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    t->process = 0;
    if (result == DONE) {
        bool is_known = true;
        t->value[rung] = trial_value(trials, trial, &is_known);
        if (!is_known) { /* no trial would be better than another one */
            say("evaluations of these runs have no '%s', by which trials are compared; "
                "'metric' "
                "says which figure is, val_loss for example",
                trials->plan->metric);
            return USAGE;
        }
        t->done = rung + 1;
        if (isnan(t->value[rung]))
            say_plain("trial %d: none of its evaluations has a number '%s'", trial + 1,
                      trials->plan->metric);
    } else if (must_stop || (is_killed && ++t->crashes < MOST_CRASHES)) {
        return DONE;
    } else {
        t->failed = result;
    }
    tell(trials, trial, rung);
    return trials_save(trials);
}

/* --- a rung ------------------------------------------------------------------------------- */

static int collect(struct trials *trials, struct slots *slots, int rung, int *running)
{
    int result = DONE;
    *running = 0;
    for (int i = 0; i < trials->plan->trials; i++) {
        struct trial *t = &trials->list[i];
        int status;
        if (!t->process)
            continue;
        if (waitpid(t->process, &status, WNOHANG) != t->process) {
            ++*running;
            continue;
        }
        slots->is_taken[t->slot] = false;
        const int taken = finish(trials, i, rung, status);
        result = result == DONE ? taken : result;
    }
    return result;
}

static bool is_wanted(const struct trial *trial, int rung)
{
    return !trial->is_dropped && !trial->failed && trial->done <= rung && !trial->process;
}

/* One that a process trains which an earlier, killed sweep has left is waited for. */
static int start_some(struct trials *trials, struct slots *slots, int rung, int *left)
{
    *left = 0;
    for (int i = 0; i < trials->plan->trials; i++) {
        int slot = 0;
        if (!is_wanted(&trials->list[i], rung))
            continue;
        ++*left;
        while (slot < slots->count && slots->is_taken[slot])
            slot++;
        if (slot == slots->count)
            continue;
        const int result = start(trials, slots, i, rung, slot);
        if (result != DONE)
            return result;
    }
    return DONE;
}

static void ask_to_stop(const struct trials *trials)
{
    for (int i = 0; i < trials->plan->trials; i++)
        if (trials->list[i].process)
            kill(trials->list[i].process, SIGINT);
}

static void show(const struct trials *trials, int rung, int left, int running)
{
    char text[256];
    int best = 0;
    for (int i = 1; i < trials->plan->trials; i++)
        if (trial_is_better(trials, i, best, rung))
            best = i;
    int used = 0;
    if (trials->plan->rungs > 1)
        used = snprintf(text, sizeof text, "rung %d of %d: ", rung + 1, trials->plan->rungs);
    used += snprintf(text + used, sizeof text - (size_t)used, "%d trial%s training, %d to come",
                     running, running == 1 ? "" : "s", left > running ? left - running : 0);
    if (trials->list[best].done > rung && isfinite(trials->list[best].value[rung]))
        snprintf(text + used, sizeof text - (size_t)used, ", best %s %.4g (trial %d)",
                 trials->plan->metric, trials->list[best].value[rung], best + 1);
    terminal_status(text);
}

static int run_rung(struct trials *trials, struct slots *slots, int rung)
{
    int left = 1, running = 0, result = DONE;
    bool is_asked = false;
    while (left + running > 0) {
        const int taken = collect(trials, slots, rung, &running);
        result = result == DONE ? taken : result;
        const bool ends = must_stop || result != DONE;
        if (ends && !is_asked)
            ask_to_stop(trials);
        is_asked |= ends;
        left = 0;
        if (!ends)
            result = start_some(trials, slots, rung, &left);
        show(trials, rung, left + running, running);
        nanosleep(&moment, NULL);
    }
    terminal_status(NULL);
    return result != DONE ? result : must_stop ? INTERRUPTED : DONE;
}

/* Those that are not among the best of the rung train no further. */
static int drop(struct trials *trials, int rung)
{
    int result = DONE;
    for (int i = 0; i < trials->plan->trials; i++) {
        int before = 0;
        for (int j = 0; j < trials->plan->trials; j++)
            before += j != i && !trials->list[j].is_dropped && trials->list[j].done > rung &&
                      trial_is_better(trials, j, i, rung);
        trials->list[i].crashes = before; /* only until all are counted */
    }
    for (int i = 0; i < trials->plan->trials; i++) {
        struct trial *t = &trials->list[i];
        const bool drops = !t->is_dropped && t->crashes >= trials->plan->kept[rung + 1];
        t->is_dropped |= drops;
        t->crashes = 0;
        if (result == DONE && drops && t->done > 0)
            result = trial_tell_dropped(trials, i);
    }
    return result;
}

int rungs_run(struct trials *trials, struct slots *slots)
{
    int result = DONE, good = 0;
    interrupt_catch(&words);
    interrupt_set_running(trials);
    for (int rung = 0; rung < trials->plan->rungs && result == DONE; rung++) {
        result = run_rung(trials, slots, rung);
        if (result == DONE && rung + 1 < trials->plan->rungs)
            result = drop(trials, rung);
    }
    interrupt_set_running(NULL);
    for (int i = 0; i < trials->plan->trials; i++)
        good += trials->list[i].done > 0;
    if (result == DONE && good == 0) {
        say("all trials have failed");
        return FAILED;
    }
    return result;
}
