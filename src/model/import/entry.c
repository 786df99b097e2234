/* Names and lines of entries of an imported model's text. */
#include "model/import/import.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_NAME = 36 };

/* Words that YAML takes for something else than a text. */
static bool is_yaml_word(const char *name)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n",   NULL};
    char lower[8] = "";
    for (size_t i = 0; i < sizeof lower - 1 && name[i]; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    for (int i = 0; words[i]; i++)
        if (strcmp(lower, words[i]) == 0)
            return true;
    return false;
}

size_t lk_import_clean(const char *theirs, char base[LK_IMPORT_BASE])
{
    size_t used = 0;
    if (!isalpha((unsigned char)*theirs) || is_yaml_word(theirs))
        base[used++] = '_';
    for (const char *from = theirs; *from && used < LONGEST_NAME; from++)
        base[used++] = isalnum((unsigned char)*from) || strchr("_-/", *from) ? *from : '_';
    base[used] = '\0';
    return used;
}

void lk_import_choose_name(const struct lk_graph *graph, const struct lk_node *own,
                           const char *base, const char *suffix, char name[LK_IMPORT_NAME])
{
    const struct lk_node *there;
    snprintf(name, LK_IMPORT_NAME, "%s%s", base, suffix);
    for (int i = 2; (there = lk_graph_find(graph, name)) && there != own;
         i = i < 9 && graph->count < 500 ? i + 1 : i + graph->count)
        snprintf(name, LK_IMPORT_NAME, "%s%s_%d", base, suffix, i);
}

/* "filters=3 kernel=[3, 3] " becomes "filters: 3, kernel: [3, 3]". */
static void write_options(struct lk_text *text, const char *options)
{
    int depth = 0;
    for (const char *at = options; *at; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at == '=')
            lk_text_append(text, ": ");
        else if (*at == ' ' && depth == 0)
            lk_text_append(text, "%s", at[1] ? ", " : "");
        else
            lk_text_append(text, "%c", *at);
    }
}

void lk_import_write_entry(struct lk_text *text, const struct lk_import_entry *entry,
                           const char *before)
{
    lk_text_append(text, "  - {name: %s, ", entry->name);
    if (entry->count > 1 || !before || strcmp(before, entry->from[0]) != 0) {
        lk_text_append(text, entry->count > 1 ? "from: [" : "from: ");
        for (int i = 0; i < entry->count; i++)
            lk_text_append(text, "%s%s", i ? ", " : "", entry->from[i]);
        lk_text_append(text, entry->count > 1 ? "], " : ", ");
    }
    lk_text_append(text, "%s: ", entry->op);
    if (*entry->options || entry->activation) {
        lk_text_append(text, "{");
        write_options(text, entry->options);
        if (entry->activation)
            lk_text_append(text, "%sactivation: %s", *entry->options ? ", " : "",
                           entry->activation);
        lk_text_append(text, "}");
    }
    if (entry->weights)
        lk_text_append(text, ", weights: %s", entry->weights);
    else if (entry->is_frozen)
        lk_text_append(text, ", trainable: false");
    lk_text_append(text, "}\n");
}
