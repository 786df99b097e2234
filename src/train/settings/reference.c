/* Words and options that texts may use, as a public list over the tables that parse them. */
#include <lockstep/reference.h>

#include "base/option.h"
#include "data/stages/table.h"
#include "metrics/metric.h"
#include "ops/op.h"
#include "optim/lr_schedule.h"
#include "optim/optimizer.h"
#include "train/settings/settings.h"
#include <stdio.h>
#include <string.h>

/* Above it a limit only keeps numbers within memory, and tells a reader nothing. */
static const double telling_limit = 65536;

/* A word of a table; name NULL: there is none. */
struct word {
    const char *name;
    const struct lk_option *options;
};

static bool is_loss(const struct lk_metric_kind *kind)
{
    for (int i = 0; lk_ops[i]; i++)
        if (strcmp(lk_ops[i]->name, kind->name) == 0)
            return true;
    return false;
}

/* A loss is a metric that an operation of the same name trains for. */
static struct word find_figure(bool wants_loss, int index)
{
    const struct lk_metric_kind *kind;
    for (int i = 0; (kind = lk_metric_kind(i)) != NULL; i++)
        if ((!wants_loss || is_loss(kind)) && index-- == 0)
            return (struct word){kind->name, kind->options};
    return (struct word){0};
}

static struct word find_optimizer(int index)
{
    for (int i = 0; lk_optimizer_kinds[i]; i++)
        if (i == index)
            return (struct word){lk_optimizer_kinds[i]->name, lk_optimizer_kinds[i]->options};
    return (struct word){0};
}

static struct word find_operation(int index)
{
    for (int i = 0; lk_ops[i]; i++)
        if (i == index)
            return (struct word){lk_ops[i]->name, lk_ops[i]->options};
    return (struct word){0};
}

static struct word find_stage(int index)
{
    for (int i = 0; lk_stages[i].name; i++)
        if (i == index)
            return (struct word){lk_stages[i].name, lk_stages[i].options};
    return (struct word){0};
}

static struct word find_word(enum lk_reference kind, int index)
{
    switch (kind) {
    case LK_REFERENCE_OPERATION:
        return find_operation(index);
    case LK_REFERENCE_LOSS:
        return find_figure(true, index);
    case LK_REFERENCE_METRIC:
        return find_figure(false, index);
    case LK_REFERENCE_OPTIMIZER:
        return find_optimizer(index);
    case LK_REFERENCE_STAGE:
        return find_stage(index);
    case LK_REFERENCE_SCHEDULE:
        if (index == 0)
            return (struct word){"schedule", lk_lr_schedule_options};
        break;
    case LK_REFERENCE_SETTING:
        if (index == 0)
            return (struct word){"settings", lk_settings_table};
        break;
    case LK_REFERENCE_CALLBACK:
        return (struct word){lk_callback_kind_name(index), lk_callback_kind_options(index)};
    }
    return (struct word){0};
}

const char *lk_reference_word(enum lk_reference kind, int index)
{
    return find_word(kind, index).name;
}

static void print_number(const struct lk_option *row, const char *what, char *text,
                         size_t bytes)
{
    const bool has_limits = row->min != row->max;
    const int used =
        snprintf(text, bytes, "%s%s", what, row->count == 2 ? ", or two of them" : "");
    if (has_limits && row->max <= telling_limit)
        snprintf(text + used, bytes - (size_t)used, ", %g..%g", row->min, row->max);
}

static void print_values(const struct lk_option *row, char *text, size_t bytes)
{
    int used = 0;
    text[0] = '\0';
    switch (row->kind) {
    case LK_OPTION_INT:
        print_number(row, "whole number", text, bytes);
        break;
    case LK_OPTION_REAL:
        print_number(row, "number", text, bytes);
        break;
    case LK_OPTION_BOOL:
        snprintf(text, bytes, "true|false");
        break;
    case LK_OPTION_TEXT:
        snprintf(text, bytes, "text");
        break;
    case LK_OPTION_CHOICE:
        for (int i = 0; row->choices[i] && used < (int)bytes; i++)
            used += snprintf(text + used, bytes - (size_t)used, "%s%s", i ? "|" : "",
                             row->choices[i]);
        break;
    case LK_OPTION_END:
        break;
    }
}

bool lk_reference_read_option(enum lk_reference kind, int word, int index,
                              struct lk_reference_option *option)
{
    const struct lk_option *row = find_word(kind, word).options;
    for (; row && row->name && index > 0; index--)
        row++;
    if (!row || !row->name)
        return false;
    *option = (struct lk_reference_option){
        .name = row->name, .standard = row->standard, .help = row->help ? row->help : ""};
    print_values(row, option->values, sizeof option->values);
    return true;
}
