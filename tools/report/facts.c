/* Settings and environment of runs: what they share, what differs, and what happened. */
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 100 };

/* Names and texts of a run; NULL: they cannot be read. */
typedef json_t *(*facts_of)(const struct run *run);

static json_t *settings_of(const struct run *run)
{
    return run->settings;
}

static json_t *environment_of(const struct run *run)
{
    return run->environment;
}

/* NULL: the run has no such fact. */
static const char *fact(const struct report *report, facts_of facts, int run, const char *name)
{
    return json_string_value(json_object_get(facts(&report->runs[run]), name));
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether all runs whose facts can be read have the same. */
static bool is_common(const struct report *report, facts_of facts, const char *name)
{
    const char *first = NULL;
    bool has_first = false;
    for (int i = 0; i < report->count; i++) {
        const char *text = fact(report, facts, i, name);
        if (!facts(&report->runs[i]))
            continue;
        if (has_first && !is_same(first, text))
            return false;
        first = text;
        has_first = true;
    }
    return true;
}

/* All names that any run has, in the order of the first that has each: {name: text}. */
static json_t *names_of(const struct report *report, facts_of facts)
{
    json_t *names = json_object();
    for (int i = 0; i < report->count; i++)
        if (facts(&report->runs[i]))
            json_object_update_missing(names, facts(&report->runs[i]));
    return names;
}

static const char *shown(const char *text)
{
    return !text ? "-" : *text ? text : "none";
}

/* --- what differs ----------------------------------------------------------------------- */

/* A table that begins with its first row: one without rows is none. */
struct lazy {
    const char *caption;
    const char *const *columns; /* as page_table_begin() */
    int words;
    bool is_open;
};

static void add_row(struct page *page, struct lazy *table, const char *group,
                    const char *const *cells)
{
    if (!table->is_open)
        page_table_begin(page, table->caption, table->columns, table->words);
    table->is_open = true;
    if (group)
        page_table_group(page, group);
    page_table_row(page, cells);
}

static void end_table(struct page *page, const struct lazy *table)
{
    if (table->is_open)
        page_table_end(page);
}

static void add_differing(struct page *page, const struct report *report, facts_of facts,
                          struct lazy *table, const char *group)
{
    json_t *names = names_of(report, facts), *value;
    const char *name, *cells[MOST_RUNS + 1];
    json_object_foreach(names, name, value)
    {
        if (is_common(report, facts, name))
            continue;
        cells[0] = name;
        for (int i = 0; i < report->count; i++)
            cells[i + 1] = shown(fact(report, facts, i, name));
        add_row(page, table, group, cells);
        group = NULL;
    }
    json_decref(names);
}

static void add_differences(struct page *page, const struct report *report)
{
    const char *columns[MOST_RUNS + 2] = {""};
    struct lazy table = {"Settings and environment", columns, report->count + 1, false};
    for (int i = 0; i < report->count; i++)
        columns[i + 1] = report->runs[i].record.path;
    page_heading(page, 2, "What differs between the runs");
    add_differing(page, report, settings_of, &table, "settings");
    add_differing(page, report, environment_of, &table, "environment");
    end_table(page, &table);
    if (!table.is_open)
        page_paragraph(page, "Nothing: all settings and all of the environment are the same.");
}

/* --- what they share -------------------------------------------------------------------- */

/* Those facts that all runs share; of settings those that are, or are not, `standard`. */
static void add_common(struct page *page, const struct report *report, facts_of facts,
                       const char *caption, json_t *standard, bool is_standard)
{
    json_t *names = names_of(report, facts), *value;
    struct lazy table = {.caption = caption};
    const char *name;
    json_object_foreach(names, name, value)
    {
        const char *usual = json_string_value(json_object_get(standard, name));
        const char *text = json_string_value(value);
        if (is_common(report, facts, name) && (!usual || is_same(usual, text) == is_standard))
            add_row(page, &table, NULL, (const char *[]){name, shown(text)});
    }
    end_table(page, &table);
    json_decref(names);
}

/* What settings are where nobody says otherwise: {name: text}. */
static json_t *standard_settings(void)
{
    struct lk_settings *settings = NULL;
    json_t *standard = json_object();
    char value[4096];
    if (lk_settings_create(&settings) == LK_OK)
        for (int i = 0; lk_setting_name(i); i++)
            if (lk_settings_get(settings, lk_setting_name(i), value, sizeof value) == LK_OK)
                json_object_set_new(standard, lk_setting_name(i), json_text(value));
    lk_settings_destroy(settings);
    return standard;
}

static void add_settings(struct page *page, const struct report *report)
{
    const bool is_one = report->count == 1;
    json_t *standard = standard_settings();
    page_heading(page, 2, is_one ? "Settings" : "Settings that the runs share");
    for (int i = 0; i < report->count; i++)
        if (!report->runs[i].settings)
            page_paragraph(page, "Those of %s cannot be read: %s", report->runs[i].record.path,
                           report->runs[i].why);
    page_columns_begin(page);
    add_common(page, report, settings_of, "Chosen", standard, false);
    add_common(page, report, settings_of, "At their defaults", standard, true);
    page_columns_end(page);
    json_decref(standard);
}

static void add_environment(struct page *page, const struct report *report)
{
    const bool is_one = report->count == 1;
    page_heading(page, 2, is_one ? "Environment" : "Environment that the runs share");
    for (int i = 0; i < report->count; i++)
        if (!report->runs[i].environment)
            page_paragraph(page,
                           "That of %s cannot be read: it has no env.json, or a damaged "
                           "one.",
                           report->runs[i].record.path);
    add_common(page, report, environment_of, "Program, devices, algorithms", NULL, false);
}

/* --- what happened ---------------------------------------------------------------------- */

static void add_happened(struct page *page, const struct run *run)
{
    static const char *const columns[] = {"step", "what", NULL};
    const size_t count = json_array_size(run->happened);
    char step[32];
    if (count == 0)
        return;
    page_table_begin(page, run->record.path, columns, 2);
    for (size_t i = 0; i < count && i < MOST_ROWS; i++) {
        const json_t *row = json_array_get(run->happened, i);
        snprintf(step, sizeof step, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_array_get(row, 0)));
        page_table_row(page, (const char *[]){step, json_string_value(json_array_get(row, 1))});
    }
    page_table_end(page);
    if (count > MOST_ROWS)
        page_paragraph(page, "%zu more are in its metrics.jsonl.", count - MOST_ROWS);
}

void report_facts(struct page *page, const struct report *report)
{
    size_t happened = 0;
    if (report->count > 1)
        add_differences(page, report);
    add_settings(page, report);
    add_environment(page, report);
    for (int i = 0; i < report->count; i++)
        happened += json_array_size(report->runs[i].happened);
    if (happened > 0)
        page_heading(page, 2, "What happened");
    for (int i = 0; i < report->count; i++)
        add_happened(page, &report->runs[i]);
}
