/* Operations on the benchmark's page: of one device percent of its peak, of several how fast
 * they are beside the fastest. */
#include "bench/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BARS = 64, PASS_LETTERS = 7, MOST_ALGORITHMS = PAGE_COLOURS };

/* What the bars of a page have in common. */
struct style {
    const char *algorithms[MOST_ALGORITHMS]; /* by colour; the last stands for all others */
    int count;
    double most; /* percent at the full width */
    int behind;  /* letters of the longest text */
};

struct text {
    char label[64], text[96], detail[160];
};

static bool is_same_group(const struct kernel_figures *a, const struct kernel_figures *b)
{
    return strcmp(a->set, b->set) == 0 && strcmp(a->op, b->op) == 0 &&
           strcmp(a->shape, b->shape) == 0;
}

/* --- one device ------------------------------------------------------------------------- */

static int algorithm_colour(struct style *style, const char *algorithm)
{
    for (int i = 0; i < style->count; i++)
        if (strcmp(style->algorithms[i], algorithm) == 0)
            return i;
    if (style->count == MOST_ALGORITHMS)
        return MOST_ALGORITHMS - 1;
    const int colour = style->count++;
    style->algorithms[colour] = colour == MOST_ALGORITHMS - 1 ? "others" : algorithm;
    return colour;
}

static struct style choose_style(const struct joined *joined)
{
    struct style style = {.most = 100};
    for (int i = 0; i < joined->kernel_count; i++) {
        const struct kernel_figures *k = joined->kernels[i].any;
        const int letters = (int)strlen("87.5 %, ") + (int)strnlen(k->algorithm, 20);
        algorithm_colour(&style, k->algorithm);
        style.most = fmax(style.most, k->percent_of_peak);
        style.behind = letters > style.behind ? letters : style.behind;
    }
    return style;
}

static struct page_bar percent_bar(struct style *style, const struct kernel_figures *k,
                                   struct text *t)
{
    char percent[32], rate[32];
    const double rated = k->memory_bound ? k->gbs : k->gflops;
    snprintf(t->label, sizeof t->label, "%.20s", k->pass);
    snprintf(t->text, sizeof t->text, "%s %%, %.20s", number_text(k->percent_of_peak, percent),
             k->algorithm);
    snprintf(t->detail, sizeof t->detail, "%.3f ms, %s %s", k->ms, number_text(rated, rate),
             k->memory_bound ? "GB/s" : "GFLOP/s");
    return (struct page_bar){.label = t->label,
                             .text = t->text,
                             .detail = t->detail,
                             .value = k->percent_of_peak,
                             .colour = algorithm_colour(style, k->algorithm)};
}

/* --- several ---------------------------------------------------------------------------- */

static int speed_bars(const struct joined *joined, const struct kernel_row *row,
                      struct page_bar *bars, struct text *texts)
{
    double best = INFINITY;
    int count = 0;
    for (int i = 0; i < joined->count; i++)
        if (row->of[i])
            best = fmin(best, row->of[i]->ms);
    for (int i = 0; i < joined->count; i++) {
        const struct kernel_figures *k = row->of[i];
        struct text *t = &texts[count];
        char ms[32], ratio[32];
        if (!k)
            continue;
        snprintf(t->label, sizeof t->label, "%.10s %c", k->pass, 'A' + i);
        ratio_text(row->of[0] ? row->of[0]->ms : NAN, k->ms, ratio);
        snprintf(t->text, sizeof t->text, "%s ms%s%s, %.20s", number_text(k->ms, ms),
                 i && *ratio ? " " : "", i ? ratio : "", k->algorithm);
        snprintf(t->detail, sizeof t->detail, "%.100s", joined->all[i].device.name);
        bars[count++] = (struct page_bar){.label = t->label,
                                          .text = t->text,
                                          .detail = t->detail,
                                          .value = best / k->ms,
                                          .colour = i};
    }
    return count;
}

/* --- groups ----------------------------------------------------------------------------- */

/* The bars of all rows of one operation and shape, from its first row on. */
static void add_group(struct page *page, const struct joined *joined, struct style *style,
                      int first)
{
    struct page_bar bars[MOST_BARS];
    struct text texts[MOST_BARS];
    const struct kernel_figures *group = joined->kernels[first].any;
    char title[640], description[768];
    int count = 0;
    for (int i = first; i < joined->kernel_count; i++) {
        const struct kernel_row *row = &joined->kernels[i];
        if (!is_same_group(row->any, group) || count + joined->count > MOST_BARS)
            continue;
        if (joined->count > 1) {
            count += speed_bars(joined, row, bars + count, texts + count);
            continue;
        }
        bars[count] = percent_bar(style, row->any, &texts[count]);
        count++;
    }
    snprintf(title, sizeof title, "%.80s %.500s", group->op, group->shape);
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof description; i++)
        used += (size_t)snprintf(description + used, sizeof description - used, "%s%s: %s",
                                 i ? "; " : "", texts[i].label, texts[i].text);
    page_bars(page, &(struct page_bars){.title = title,
                                        .description = description,
                                        .bars = bars,
                                        .count = count,
                                        .most = joined->count > 1 ? 1 : style->most,
                                        .before = PASS_LETTERS,
                                        .behind = joined->count > 1 ? 0 : style->behind,
                                        .line = joined->count > 1 ? 0 : 100});
}

/* Row `row` is the first of its set, or of its group. */
static bool begins(const struct joined *joined, int row, bool is_group)
{
    const struct kernel_figures *k = joined->kernels[row].any;
    for (int i = 0; i < row; i++) {
        const struct kernel_figures *other = joined->kernels[i].any;
        if (is_group ? is_same_group(other, k) : strcmp(other->set, k->set) == 0)
            return false;
    }
    return true;
}

/* --- tables ----------------------------------------------------------------------------- */

static const char *const columns_of_one[] = {
    "pass, algorithm", "ms",      "GFLOP/s",  "GB/s", "% of peak",
    "FLOP/B",          "host µs", "build ms", NULL};

static void add_row_of_one(struct page *page, const struct kernel_figures *k)
{
    const double numbers[] = {
        k->ms,      k->gflops,  k->gbs, k->percent_of_peak, k->flops / k->bytes,
        k->host_us, k->build_ms};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    char texts[NUMBERS][32], name[160];
    const char *cells[NUMBERS + 1] = {name};
    snprintf(name, sizeof name, "%.60s, %.60s", k->pass, k->algorithm);
    for (int i = 0; i < NUMBERS; i++)
        cells[i + 1] = number_text(numbers[i], texts[i]);
    page_table_row(page, cells);
}

static void add_row(struct page *page, const struct joined *joined,
                    const struct kernel_row *row)
{
    char texts[2 * MOST_FILES][32], pass[64];
    const char *cells[2 * MOST_FILES + 1] = {pass};
    int count = 1;
    snprintf(pass, sizeof pass, "%.50s%s", row->any->pass, row->any->is_reference ? " *" : "");
    for (int i = 0; i < joined->count; i++) {
        const double ms = row->of[i] ? row->of[i]->ms : NAN;
        cells[count] = number_text(ms, texts[count - 1]);
        count++;
        if (i == 0)
            continue;
        cells[count] = ratio_text(row->of[0] ? row->of[0]->ms : NAN, ms, texts[count - 1]);
        count++;
    }
    page_table_row(page, cells);
}

static void begin_table(struct page *page, const struct joined *joined, const char *caption)
{
    char names[2 * MOST_FILES][16];
    const char *columns[2 * MOST_FILES + 2] = {"pass"};
    int count = 1;
    for (int i = 0; i < joined->count; i++) {
        snprintf(names[count - 1], sizeof *names, "%c, ms", 'A' + i);
        columns[count] = names[count - 1];
        count++;
        if (i == 0)
            continue;
        snprintf(names[count - 1], sizeof *names, "%c to A", 'A' + i);
        columns[count] = names[count - 1];
        count++;
    }
    if (joined->count > 1)
        page_table_begin(page, caption, columns, 1);
    else
        page_table_begin(page, caption, columns_of_one, 1);
}

static void add_rows(struct page *page, const struct joined *joined, int first)
{
    const struct kernel_figures *group = joined->kernels[first].any;
    char text[640];
    snprintf(text, sizeof text, "%.80s %.500s", group->op, group->shape);
    page_table_group(page, text);
    for (int i = first; i < joined->kernel_count; i++) {
        const struct kernel_row *row = &joined->kernels[i];
        if (!is_same_group(row->any, group))
            continue;
        if (joined->count > 1)
            add_row(page, joined, row);
        else
            add_row_of_one(page, row->any);
    }
}

/* --- sets ------------------------------------------------------------------------------- */

static void add_set(struct page *page, const struct joined *joined, struct style *style,
                    int first)
{
    const char *set = joined->kernels[first].any->set;
    char caption[640];
    page_heading(page, 3, *set ? set : "operations");
    page_columns_begin(page);
    for (int i = first; i < joined->kernel_count; i++)
        if (strcmp(joined->kernels[i].any->set, set) == 0 && begins(joined, i, true))
            add_group(page, joined, style, i);
    page_columns_end(page);
    snprintf(caption, sizeof caption, "Operations of %s", *set ? set : "no set");
    begin_table(page, joined, caption);
    for (int i = first; i < joined->kernel_count; i++)
        if (strcmp(joined->kernels[i].any->set, set) == 0 && begins(joined, i, true))
            add_rows(page, joined, i);
    page_table_end(page);
}

void bench_operations(struct page *page, const struct joined *joined)
{
    const char *names[MOST_FILES];
    char texts[MOST_FILES][160];
    struct style style = choose_style(joined);
    if (joined->kernel_count == 0)
        return;
    page_heading(page, 2, "Operations");
    if (joined->count == 1) {
        page_paragraph(page, "Percent of the peak that bounds each: the multiply-add rate of "
                             "convolutions and dense layers, the bandwidth of the others. The "
                             "dashed line is 100 %%. Colours are algorithms:");
        page_legend(page, style.algorithms, style.count);
    } else {
        page_paragraph(page, "Speed beside the fastest device: longer is faster. The ratios "
                             "are to A; * is a library's product alone, beside ours.");
        for (int i = 0; i < joined->count; i++) {
            snprintf(texts[i], sizeof texts[i], "%c: %.150s", 'A' + i,
                     joined->all[i].device.name);
            names[i] = texts[i];
        }
        page_legend(page, names, joined->count);
    }
    for (int i = 0; i < joined->kernel_count; i++)
        if (begins(joined, i, false))
            add_set(page, joined, &style, i);
}
