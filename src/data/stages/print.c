/* Writing a pipeline as text that is read back to the same. */
#include "data/stages/table.h"

#include "base/number.h"

#include <stdio.h>

struct printed {
    char *text;
    size_t used, bytes;
};

static void print(struct printed *to, const char *text)
{
    if (to->used < to->bytes)
        to->used += (size_t)snprintf(to->text + to->used, to->bytes - to->used, "%s", text);
}

static void print_stage(struct printed *to, const char *name)
{
    print(to, to->used ? " | " : "");
    print(to, name);
}

static void print_number(struct printed *to, const char *before, double number)
{
    char text[64];
    print(to, before);
    lk_number_print(number, text, sizeof text);
    print(to, text);
}

static void print_size(struct printed *to, const int size[2])
{
    char text[64];
    snprintf(text, sizeof text, " size=%dx%d", size[0], size[1]);
    if (size[0])
        print(to, text);
}

static void print_numbers(struct printed *to, const char *before, const double *numbers,
                          int count)
{
    print(to, before);
    for (int i = 0; i < count; i++)
        print_number(to, i ? ", " : "", numbers[i]);
    print(to, "]");
}

static void print_sizes(struct printed *to, const struct lk_pipeline *p)
{
    if (p->first_crop[0]) {
        print_stage(to, p->first_crop_by_chance ? "crop" : "center_crop");
        print_size(to, p->first_crop);
    }
    if (p->first_crop[0] || p->resize[0]) {
        print_stage(to, "resize");
        print_size(to, p->resize);
    }
}

bool lk_pipeline_print(const struct lk_pipeline *p, char *text, size_t bytes)
{
    static const char *const names[] = {"", "brightness", "contrast", "saturation"};
    struct printed to = {.text = text, .bytes = bytes};
    text[0] = '\0';
    if (p->decodes_full)
        print_stage(&to, "decode jpeg=full");
    print_sizes(&to, p);
    if (p->rotate > 0) {
        print_stage(&to, "rotate");
        print_number(&to, " degrees=", p->rotate);
    }
    if (p->crop[0] || p->padding) {
        print_stage(&to, p->crops_by_chance ? "crop" : "center_crop");
        print_size(&to, p->crop);
        if (p->padding)
            print_number(&to, " padding=", (double)p->padding);
    }
    if (p->flip != LK_FLIP_NONE) {
        print_stage(&to, "flip axis=");
        print(&to, lk_flip_names[p->flip]);
    }
    for (int i = 0; i < LK_COLOUR_STAGES && p->colours[i] != LK_COLOUR_NONE; i++) {
        print_stage(&to, names[p->colours[i]]);
        print_number(&to, " amount=", p->amounts[i]);
    }
    if (p->values > 0) {
        print_stage(&to, "normalize");
        print_number(&to, " scale=", p->scale);
        print_numbers(&to, " mean=[", p->mean, p->values);
        print_numbers(&to, " std=[", p->deviation, p->values);
        print(&to, p->reverses ? " order=bgr" : "");
    }
    if (p->standardizes) {
        print_stage(&to, "standardize");
        print(&to, *p->standardize ? " " : "");
        print(&to, p->standardize);
    }
    if (p->is_one_hot) {
        print_stage(&to, "one_hot");
        print_number(&to, " smoothing=", p->smoothing);
    }
    return to.used < to.bytes;
}
