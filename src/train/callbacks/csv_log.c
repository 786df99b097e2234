/* csv_log: a line of a table for each epoch, as keras.callbacks.CSVLogger; and time_history,
 * which measures how long epochs take. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/number.h"
#include "io/file.h"
#include "train/callbacks/kinds.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- csv_log ---------------------------------------------------------------------------- */

struct csv_options {
    char file[512], separator[2];
};

struct csv_state {
    int64_t bytes;
};

struct csv_memory {
    struct lk_log_file log;
    struct lk_figures columns; /* behind the first two, names alone */
    bool has_columns;
};

static const struct lk_option csv_table[] = {
    {LK_CALLED_OPTION(struct csv_options, file), .kind = LK_OPTION_TEXT, .count = 512,
     .standard = "log.csv",
     .help = "its path, below the run directory unless it begins with /"},
    {LK_CALLED_OPTION(struct csv_options, separator), .kind = LK_OPTION_TEXT, .count = 2,
     .standard = ",", .help = "what stands between columns, one character"},
    {0},
};

static const struct lk_option csv_state_table[] = {
    {LK_CALLED_OPTION(struct csv_state, bytes), .kind = LK_OPTION_INT, .standard = "0"},
    {0},
};

static const char first_column[] = "epoch";

static enum lk_status check_csv(const void *options, const struct lk_callback_site *site)
{
    const struct csv_options *o = options;
    (void)site;
    if (strlen(o->separator) != 1 || strchr("\"\n\r.-+eE0123456789", *o->separator))
        return lk_fail(LK_E_ARGUMENT,
                       "option 'separator': a character that is in no number is expected, "
                       "found '%s'",
                       o->separator);
    return LK_OK;
}

/* Cuts a field off a line of the table; quotes round it are taken away. */
static bool next_field(const char **line, char separator, char field[LK_FIGURE_NAME])
{
    const char *p = *line;
    int used = 0;
    bool is_quoted = false;
    if (!*p || *p == '\n')
        return false;
    for (; *p && *p != '\n' && (is_quoted || *p != separator); p++) {
        if (*p == '"')
            is_quoted = !is_quoted;
        else if (used < LK_FIGURE_NAME - 1)
            field[used++] = *p;
    }
    field[used] = '\0';
    *line = p + (*p == separator);
    return true;
}

/* The columns that the table has. */
static enum lk_status read_columns(struct csv_memory *m, char separator)
{
    void *data = NULL;
    size_t bytes = 0;
    char field[LK_FIGURE_NAME];
    LK_TRY(lk_file_read(m->log.path, (size_t)1 << 30, &data, &bytes));
    const char *line = data;
    for (int i = 0; next_field(&line, separator, field); i++)
        if (i >= 2)
            lk_figures_set(&m->columns, field, NAN);
    free(data);
    m->has_columns = true;
    return LK_OK;
}

static enum lk_status open_csv(struct lk_called *called, int64_t step)
{
    const struct csv_options *o = called->options;
    const struct csv_state *s = called->state;
    struct csv_memory *m = calloc(1, sizeof *m);
    (void)step;
    if (!m)
        return lk_fail_memory("a table", sizeof *m);
    called->memory = m;
    LK_TRY(lk_log_file_open(called->site->logs, &m->log, o->file, s->bytes, LK_JOURNAL_LINES,
                            first_column));
    return m->log.begun > 0 ? read_columns(m, *o->separator) : LK_OK;
}

static void put_columns(struct csv_memory *m, const struct lk_epoch *epoch, char separator)
{
    FILE *file = lk_journal_stream(m->log.journal);
    fprintf(file, "%s%cstep", first_column, separator);
    for (int i = 0; i < epoch->figures.count; i++) {
        const char *name = epoch->figures.items[i].name;
        const char *quote = strchr(name, separator) ? "\"" : "";
        fprintf(file, "%c%s%s%s", separator, quote, name, quote);
    }
    putc('\n', file);
    m->columns = epoch->figures;
    m->has_columns = true;
}

static enum lk_status flush_csv(struct lk_called *called, bool is_last)
{
    struct csv_memory *m = called->memory;
    struct csv_state *s = called->state;
    return lk_log_file_flush(&m->log, is_last, &s->bytes);
}

static enum lk_status sync_csv(const struct lk_called *called)
{
    return lk_log_file_sync(&((const struct csv_memory *)called->memory)->log);
}

static enum lk_status put_row(struct lk_called *called, const struct lk_epoch *epoch,
                              struct lk_callback_wish *wish)
{
    const struct csv_options *o = called->options;
    struct csv_memory *m = called->memory;
    (void)wish;
    lk_journal_find_end(m->log.journal);
    if (!m->has_columns || lk_journal_bytes(m->log.journal) == 0)
        put_columns(m, epoch, *o->separator);
    FILE *file = lk_journal_stream(m->log.journal);
    fprintf(file, "%lld%c%lld", (long long)epoch->number, *o->separator,
            (long long)epoch->step);
    for (int i = 0; i < m->columns.count; i++) {
        double value = NAN;
        char number[32] = "nan";
        (void)lk_figures_find(&epoch->figures, m->columns.items[i].name, &value);
        if (!isnan(value))
            lk_number_print(value, number, sizeof number);
        fprintf(file, "%c%s", *o->separator, number);
    }
    putc('\n', file);
    return flush_csv(called, false);
}

static void close_csv(struct lk_called *called)
{
    struct csv_memory *m = called->memory;
    if (m)
        lk_log_file_close(&m->log);
}

const struct lk_callback_kind lk_csv_log = {
    .name = "csv_log",
    .options = csv_table,
    .state = csv_state_table,
    .options_bytes = sizeof(struct csv_options),
    .state_bytes = sizeof(struct csv_state),
    .needs_run = true,
    .check = check_csv,
    .path = "file",
    .open = open_csv,
    .see_epoch = put_row,
    .flush = flush_csv,
    .sync = sync_csv,
    .close = close_csv,
};

/* --- time_history ----------------------------------------------------------------------- */

struct time_state {
    double seconds, epoch_seconds; /* of steps, in all and since the last epoch */
    int64_t steps;                 /* since then */
};

static const struct lk_option no_options[] = {{0}};

static const struct lk_option time_state_table[] = {
    {LK_CALLED_OPTION(struct time_state, seconds), .kind = LK_OPTION_REAL, .standard = "0"},
    {LK_CALLED_OPTION(struct time_state, epoch_seconds), .kind = LK_OPTION_REAL,
     .standard = "0"},
    {LK_CALLED_OPTION(struct time_state, steps), .kind = LK_OPTION_INT, .standard = "0"},
    {0},
};

static enum lk_status add_time(struct lk_called *called, const struct lk_event *event,
                               struct lk_callback_wish *wish)
{
    struct time_state *s = called->state;
    (void)wish;
    s->seconds += event->step_ms / 1000;
    s->epoch_seconds += event->step_ms / 1000;
    s->steps++;
    return LK_OK;
}

static void add_time_figures(struct lk_called *called, struct lk_epoch *epoch)
{
    struct time_state *s = called->state;
    lk_figures_set(&epoch->figures, "seconds", s->seconds);
    lk_figures_set(&epoch->figures, "epoch_seconds", s->epoch_seconds);
    if (s->epoch_seconds > 0)
        lk_figures_set(&epoch->figures, "steps_per_s", (double)s->steps / s->epoch_seconds);
    s->epoch_seconds = 0;
    s->steps = 0;
}

const struct lk_callback_kind lk_time_history = {
    .name = "time_history",
    .options = no_options,
    .state = time_state_table,
    .state_bytes = sizeof(struct time_state),
    .see_step = add_time,
    .measure = add_time_figures,
};
