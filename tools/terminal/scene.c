/* Composes lines: colours, cutting, which are left out. */
#include "terminal/scene.h"

#include "terminal/character.h"
#include "terminal/terminal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void scene_start(struct scene *scene, int columns, bool has_colour, bool has_unicode)
{
    scene->count = 0;
    scene->columns = columns < SCENE_COLUMNS ? columns : SCENE_COLUMNS;
    scene->has_colour = has_colour;
    scene->has_unicode = has_unicode;
}

void scene_line(struct scene *scene, int rank)
{
    if (scene->count == SCENE_LINES)
        scene->count--;
    struct scene_line *line = &scene->lines[scene->count++];
    line->used = line->columns = 0;
    line->text[0] = '\0';
    line->rank = rank;
}

static struct scene_line *last_line(struct scene *scene)
{
    if (scene->count == 0)
        scene_line(scene, 0);
    return &scene->lines[scene->count - 1];
}

int scene_room(const struct scene *scene)
{
    return scene->count > 0 ? scene->columns - scene->lines[scene->count - 1].columns
                            : scene->columns;
}

static void put(struct scene_line *line, const char *bytes, size_t count)
{
    if (line->used + (int)count >= SCENE_BYTES)
        return;
    memcpy(line->text + line->used, bytes, count);
    line->used += (int)count;
    line->text[line->used] = '\0';
}

/* Characters that would control the terminal become "?"; where a colour ends there is room. */
static void put_text(struct scene *scene, struct scene_line *line, const char *text)
{
    uint32_t code;
    while (*text && line->used < SCENE_BYTES - 32) {
        const int bytes = character_read(text, &code);
        if (line->columns + character_columns(code) > scene->columns)
            break;
        if (character_is_harmless(code))
            put(line, text, (size_t)bytes);
        else
            put(line, "?", 1);
        line->columns += character_columns(code);
        text += bytes;
    }
}

static void add_text(struct scene *scene, enum ink ink, const char *text)
{
    static const char *const codes[INK_INKS] = {
        [INK_DIM] = "2",   [INK_BOLD] = "1", [INK_GOOD] = "32",
        [INK_WARN] = "33", [INK_BAD] = "31", [INK_BLUE] = "36"};
    struct scene_line *line = last_line(scene);
    const char *code = scene->has_colour ? codes[ink] : NULL;
    char begin[16];
    if (line->used >= SCENE_BYTES - 64)
        return;
    if (code)
        put(line, begin, (size_t)snprintf(begin, sizeof begin, "\x1b[%sm", code));
    put_text(scene, line, text);
    if (code)
        put(line, "\x1b[0m", 4);
}

void scene_add(struct scene *scene, enum ink ink, const char *format, ...)
{
    char text[SCENE_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    add_text(scene, ink, text);
}

void scene_name(struct scene *scene, enum ink ink, int columns, const char *text)
{
    const char *mark = scene->has_unicode ? "\u2026" : "..";
    const int width = terminal_width(text), more = width - columns;
    int left = more + terminal_width(mark);
    uint32_t code;
    if (more > 0) {
        for (; left > 0 && *text; left -= character_columns(code))
            text += character_read(text, &code);
        scene_add(scene, ink, "%s%s%*s", mark, text, left < 0 ? -left : 0, "");
    } else {
        scene_add(scene, ink, "%s%*s", text, -more, "");
    }
}

void scene_to(struct scene *scene, int column)
{
    const int blanks = column - last_line(scene)->columns;
    if (blanks > 0)
        scene_add(scene, INK_PLAIN, "%*s", blanks, "");
}

void scene_fit(struct scene *scene, int first, int most)
{
    while (scene->count - first > most) {
        int least = first;
        for (int i = first; i < scene->count; i++)
            if (scene->lines[i].rank >= scene->lines[least].rank)
                least = i;
        if (scene->lines[least].rank == 0)
            return;
        memmove(&scene->lines[least], &scene->lines[least + 1],
                (size_t)(scene->count - least - 1) * sizeof *scene->lines);
        scene->count--;
    }
}
