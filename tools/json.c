#include "json.h"

#include "command.h"
#include "terminal.h"
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
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p >= 128)
            *p = '?';
    return json_string(copy);
}

int json_print(json_t *value, size_t flags)
{
    char *text = value ? json_dumps(value, flags | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(value);
    if (!text) {
        say("out of memory");
        return FAILED;
    }
    puts(text);
    free(text);
    return DONE;
}
