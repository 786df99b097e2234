/* Charts: positions are percent of the room for the data, letters have their own size. */
#include "page/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TICKS = 8, BAR = 22, BAR_INK = 15, VIEW = 1000 };

/* --- axes ------------------------------------------------------------------------------- */

/* What an axis shows, from its first tick to its last. Of a logarithmic one both are powers
 * of 10, step a number of them. */
struct range {
    bool is_log;
    double first, last, step;
};

static bool can_show(bool is_log, double value)
{
    return isfinite(value) && (!is_log || value > 0);
}

/* 1, 2 or 5 times a power of 10, that divides `span` into at most MOST_TICKS parts. */
static double round_step(double span)
{
    const double least = span / MOST_TICKS, power = pow(10, floor(log10(least)));
    const double times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static struct range choose_range(bool is_log, double least, double most)
{
    struct range r = {.is_log = is_log, .first = 0, .last = 1, .step = 1};
    if (least > most)
        return r;
    if (is_log) {
        r.first = floor(log10(least));
        r.last = fmax(ceil(log10(most)), r.first + 1);
        r.step = ceil((r.last - r.first) / MOST_TICKS);
        r.last = r.first + r.step * ceil((r.last - r.first) / r.step);
        return r;
    }
    if (least == most) {
        least = fmin(least, 0);
        most = most > least ? most : least + 1;
    }
    r.step = round_step(most - least);
    r.first = floor(least / r.step) * r.step;
    r.last = ceil(most / r.step) * r.step;
    return r;
}

static struct range range_of(const struct page_plot *plot, bool is_y)
{
    const bool is_log = is_y ? plot->y.is_log : plot->x.is_log;
    double least = INFINITY, most = -INFINITY;
    for (int s = 0; s < plot->count; s++)
        for (int i = 0; i < plot->series[s].count; i++) {
            const double value = (is_y ? plot->series[s].y : plot->series[s].x)[i];
            if (!can_show(is_log, value))
                continue;
            least = fmin(least, value);
            most = fmax(most, value);
        }
    return choose_range(is_log, least, most);
}

/* 0 to 1 along the axis. */
static double place_of(const struct range *r, double value)
{
    return ((r->is_log ? log10(value) : value) - r->first) / (r->last - r->first);
}

static const char *tick_text(const struct range *r, double tick, char text[32])
{
    const double value = r->is_log ? pow(10, tick) : fabs(tick) < r->step / 2 ? 0 : tick;
    const double size = fabs(value);
    const double unit = size >= 1e9 ? 1e9 : size >= 1e6 ? 1e6 : size >= 1e4 ? 1e3 : 1;
    snprintf(text, 32, "%g%s", value / unit,
             unit == 1e9   ? "G"
             : unit == 1e6 ? "M"
             : unit == 1e3 ? "k"
                           : "");
    return text;
}

static void add_line(struct page *page, const char *class, bool is_y, double place)
{
    if (is_y)
        page_add(page, "<line class=\"%s\" x1=\"0\" x2=\"100%%\" y1=\"%.2f%%\" y2=\"%.2f%%\"/>",
                 class, 100 - 100 * place, 100 - 100 * place);
    else
        page_add(page, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"100%%\"/>",
                 class, 100 * place, 100 * place);
}

static void add_axis(struct page *page, const struct range *r, bool is_y, const char *label)
{
    const int ticks = (int)lround((r->last - r->first) / r->step);
    char text[32];
    for (int i = 0; i <= ticks; i++) {
        const double place = (double)i / ticks;
        tick_text(r, r->first + i * r->step, text);
        add_line(page, "grid", is_y, place);
        if (is_y)
            page_add(page,
                     "<text class=\"soft\" x=\"0\" dx=\"-7\" y=\"%.2f%%\" dy=\"4\" "
                     "text-anchor=\"end\">%s</text>\n",
                     100 - 100 * place, text);
        else
            page_add(page,
                     "<text class=\"soft\" x=\"%.2f%%\" y=\"100%%\" dy=\"17\" "
                     "text-anchor=\"middle\">%s</text>\n",
                     100 * place, text);
    }
    if (!*label)
        return;
    page_add(page, is_y ? "<text x=\"0\" dx=\"-44\" y=\"0\" dy=\"-16\">"
                        : "<text x=\"100%%\" y=\"100%%\" dy=\"36\" text-anchor=\"end\">");
    page_add_text(page, label);
    page_add(page, "</text>\n");
}

/* --- plots ------------------------------------------------------------------------------ */

static int colour_of(int colour)
{
    return colour % PAGE_COLOURS;
}

static void add_detail(struct page *page, const char *detail)
{
    if (!detail)
        return;
    page_add(page, "<title>");
    page_add_text(page, detail);
    page_add(page, "</title>");
}

static bool has_line(const struct page_series *s)
{
    return s->mark == PAGE_LINE || s->is_joined;
}

static bool is_shown(const struct page_series *s, int i, const struct range *x,
                     const struct range *y)
{
    return can_show(x->is_log, s->x[i]) && can_show(y->is_log, s->y[i]);
}

static void add_polyline(struct page *page, const struct page_series *s, const struct range *x,
                         const struct range *y)
{
    page_add(page,
             "<svg viewBox=\"0 0 %d %d\" width=\"100%%\" height=\"100%%\" "
             "preserveAspectRatio=\"none\"><polyline class=\"s%d%s\" "
             "vector-effect=\"non-scaling-stroke\" points=\"",
             VIEW, VIEW, colour_of(s->colour), s->is_faint ? " faint" : "");
    for (int i = 0; i < s->count; i++)
        if (is_shown(s, i, x, y))
            page_add(page, "%.1f,%.1f ", VIEW * place_of(x, s->x[i]),
                     VIEW - VIEW * place_of(y, s->y[i]));
    page_add(page, "\"/></svg>\n");
}

static void add_marks(struct page *page, const struct page_series *s, const struct range *x,
                      const struct range *y)
{
    for (int i = 0; i < s->count; i++) {
        if (!is_shown(s, i, x, y))
            continue;
        page_add(page, "<use class=\"c%d\" href=\"#mark%d\" x=\"%.2f%%\" y=\"%.2f%%\">",
                 colour_of(s->colour), (int)s->mark, 100 * place_of(x, s->x[i]),
                 100 - 100 * place_of(y, s->y[i]));
        add_detail(page, s->details ? s->details[i] : NULL);
        page_add(page, "</use>\n");
    }
}

static void begin_legend(struct page *page)
{
    page_add(page, "<ul class=\"legend\">\n");
}

static void add_entry(struct page *page, const char *name, int colour, const char *drawing)
{
    page_add(page,
             "<li><svg class=\"c%d s%d\" viewBox=\"0 0 18 12\" aria-hidden=\"true\">%s</svg>",
             colour_of(colour), colour_of(colour), drawing);
    page_add_text(page, name);
    page_add(page, "</li>\n");
}

static void add_plot_legend(struct page *page, const struct page_plot *plot)
{
    begin_legend(page);
    for (int i = 0; i < plot->count; i++) {
        const struct page_series *s = &plot->series[i];
        char drawing[160] = "";
        if (has_line(s))
            snprintf(drawing, sizeof drawing, "<path%s stroke-width=\"2\" d=\"M0 6H18\"/>",
                     s->is_faint ? " class=\"faint\"" : "");
        if (s->mark != PAGE_LINE)
            snprintf(drawing + strlen(drawing), sizeof drawing - strlen(drawing),
                     "<use href=\"#mark%d\" x=\"9\" y=\"6\"/>", (int)s->mark);
        add_entry(page, s->name, s->colour, drawing);
    }
    page_add(page, "</ul>\n");
}

/* Opens a figure: its caption, and the drawing up to its first element. */
static void begin_chart(struct page *page, const char *title, const char *description,
                        const char *attributes)
{
    const int id = page->charts++;
    page_add(page, "<figure><figcaption>");
    page_add_text(page, title);
    page_add(page,
             "</figcaption>\n<svg role=\"img\" aria-labelledby=\"t%d d%d\" %s>"
             "<title id=\"t%d\">",
             id, id, attributes, id);
    page_add_text(page, title);
    page_add(page, "</title><desc id=\"d%d\">", id);
    page_add_text(page, description);
    page_add(page, "</desc>\n");
}

void page_plot(struct page *page, const struct page_plot *plot)
{
    const struct range x = range_of(plot, false), y = range_of(plot, true);
    begin_chart(page, plot->title, plot->description, "class=\"plot\"");
    add_axis(page, &x, false, plot->x.label);
    add_axis(page, &y, true, plot->y.label);
    for (int i = 0; i < plot->count; i++)
        if (has_line(&plot->series[i]))
            add_polyline(page, &plot->series[i], &x, &y);
    for (int i = 0; i < plot->count; i++)
        if (plot->series[i].mark != PAGE_LINE)
            add_marks(page, &plot->series[i], &x, &y);
    page_add(page, "</svg>\n");
    add_plot_legend(page, plot);
    page_add(page, "</figure>\n");
}

/* --- bars ------------------------------------------------------------------------------- */

static struct range range_of_bars(const struct page_bars *bars)
{
    double least = INFINITY, most = -INFINITY;
    if (!bars->is_log)
        return (struct range){.last = bars->most, .step = bars->most};
    for (int i = 0; i < bars->count; i++) {
        if (!can_show(true, bars->bars[i].value))
            continue;
        least = fmin(least, bars->bars[i].value / 2); /* none has no length */
        most = fmax(most, bars->bars[i].value);
    }
    return choose_range(true, least, most);
}

/* The part of the room that a bar fills. */
static double length_of(const struct range *range, double value)
{
    return can_show(range->is_log, value) ? fmin(fmax(place_of(range, value), 0), 1) : 0;
}

/* A bar, or a part of one. from, to: of the room that bars have. */
static void add_ink(struct page *page, const struct page_bar *bar, int colour, int top,
                    double from, double to)
{
    page_add(page, "<rect class=\"c%d\" x=\"%.2f%%\" y=\"%d\" width=\"%.2f%%\" height=\"%d\">",
             colour_of(colour), 100 * from, top, 100 * (to - from), BAR_INK);
    add_detail(page, bar->detail);
    page_add(page, "</rect>");
}

static void add_bar(struct page *page, const struct page_bar *bar, const struct range *range,
                    int row)
{
    const int top = BAR * row + (BAR - BAR_INK) / 2, text = BAR * row + BAR / 2 + 4;
    double sum = 0;
    page_add(page,
             "<rect class=\"bed\" x=\"0\" y=\"%d\" width=\"100%%\" height=\"%d\"/>"
             "<text x=\"0\" dx=\"-7\" y=\"%d\" text-anchor=\"end\">",
             top, BAR_INK, text);
    page_add_text(page, bar->label);
    page_add(page, "</text>");
    for (int i = 0; i < bar->part_count; i++) {
        const double from = length_of(range, sum);
        sum += isfinite(bar->parts[i]) ? bar->parts[i] : 0;
        add_ink(page, bar, bar->colour + i, top, from, length_of(range, sum));
    }
    if (bar->part_count == 0)
        add_ink(page, bar, bar->colour, top, 0, length_of(range, bar->value));
    page_add(page, "<text x=\"100%%\" dx=\"7\" y=\"%d\">", text);
    page_add_text(page, bar->text);
    page_add(page, "</text>\n");
}

static int letters(const struct page_bars *bars, bool is_before)
{
    int most = is_before ? bars->before : bars->behind;
    for (int i = 0; i < bars->count; i++) {
        const char *text = is_before ? bars->bars[i].label : bars->bars[i].text;
        const int length = (int)strlen(text);
        most = length > most ? length : most;
    }
    return most;
}

void page_bars(struct page *page, const struct page_bars *bars)
{
    const struct range range = range_of_bars(bars);
    char attributes[128];
    snprintf(attributes, sizeof attributes,
             "class=\"bars%s\" height=\"%d\" style=\"--l:%dch;--r:%dch\"",
             bars->is_log ? " scaled" : "", BAR * bars->count, letters(bars, true) + 1,
             letters(bars, false) + 1);
    begin_chart(page, bars->title, bars->description, attributes);
    for (int i = 0; i < bars->count; i++)
        add_bar(page, &bars->bars[i], &range, i);
    if (bars->is_log)
        add_axis(page, &range, false, "");
    if (bars->line > 0)
        add_line(page, "line", false, length_of(&range, bars->line));
    page_add(page, "</svg>\n</figure>\n");
}

void page_legend(struct page *page, const char *const *names, int count)
{
    begin_legend(page);
    for (int i = 0; i < count; i++)
        add_entry(page, names[i], i, "<rect width=\"18\" height=\"12\" stroke=\"none\"/>");
    page_add(page, "</ul>\n");
}
