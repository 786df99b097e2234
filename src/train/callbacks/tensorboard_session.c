/* The settings of a run as TensorBoard's hyper-parameters, by which it compares runs. */
#include "base/fail.h"
#include "io/records/event_write.h"
#include "train/callbacks/tensorboard.h"
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024 };

/* Those by which people tell runs apart. */
static const char *const names[] = {
    "model",     "data",       "pipeline",     "weights",    "init_from", "freeze_until",
    "epochs",    "steps",      "batch_size",   "optimizer",  "lr",        "schedule",
    "precision", "mode",       "ema",          "clip_value", "clip_norm", "seed",
    "shards",    "train_last", "max_staleness"};

/* Reads "  name: value" of a run file, without quotes; false: it is no such line, or its value
 * is empty. `parameter` points into the line. */
static bool read_line(char *line, struct lk_hyper_parameter *parameter)
{
    char *name = line + strspn(line, " "), *value = strstr(name, ": "), *end;
    if (!value)
        return false;
    *value = '\0';
    value += 2;
    const size_t length = strlen(value);
    if (length >= 2 && *value == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        value++;
    }
    const double number = strtod(value, &end);
    *parameter = (struct lk_hyper_parameter){name, *end ? value : NULL, number};
    return *value != '\0';
}

static bool is_listed(const char *name)
{
    for (int i = 0; i < LK_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void lk_board_add_session(struct lk_summary *summary, const char *settings, double now)
{
    struct lk_hyper_parameter list[LK_COUNT(names)];
    char lines[LK_COUNT(names)][LINE];
    int count = 0;
    while (*settings && count < LK_COUNT(names)) {
        const size_t length = strcspn(settings, "\n");
        if (length < LINE) {
            memcpy(lines[count], settings, length);
            lines[count][length] = '\0';
            count += read_line(lines[count], &list[count]) && is_listed(list[count].name);
        }
        settings += length + (settings[length] != '\0');
    }
    lk_summary_add_session(summary, now, list, count);
}
