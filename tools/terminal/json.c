/* Prints results as JSON. */
#include "terminal/json.h"

#include "command.h"
#include "terminal/character.h"
#include "terminal/terminal.h"
#include <lockstep/file.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    char *copy = malloc(4 * strlen(text) + 1), *end = copy;
    for (uint32_t code; copy && *text;) {
        const int length = character_read(text, &code);
        if (code > 0)
            end += sprintf(end, "%.*s", length, text);
        else
            end += sprintf(end, "\\x%02x", (unsigned char)*text);
        text += length;
    }
    string = copy ? json_string(copy) : NULL;
    free(copy);
    return string;
}

/* Releases the value; the text is the caller's. */
static char *text_of(json_t *value, size_t flags)
{
    char *text = value ? json_dumps(value, flags | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(value);
    if (!text)
        say("out of memory");
    return text;
}

int json_print(json_t *value, size_t flags)
{
    char *text = text_of(value, flags);
    if (!text)
        return FAILED;
    puts(text);
    free(text);
    return DONE;
}

int json_write(json_t *value, const char *path)
{
    char *text = text_of(value, JSON_INDENT(2));
    if (!text)
        return FAILED;
    const size_t length = strlen(text);
    text[length] = '\n';
    const enum lk_status status = lk_file_write(path, text, length + 1);
    free(text);
    return status == LK_OK ? DONE : failed(status);
}
