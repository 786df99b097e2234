/* Prints the events of a training. */
#include "train/events.h"

#include "terminal/outlet.h"
#include "terminal/terminal.h"
#include <stdlib.h>
#include <string.h>

static long lost; /* lines in a row */

static bool print_line(const char *text)
{
    const size_t bytes = strlen(text);
    char *line = malloc(bytes + 1);
    if (!line)
        return false;
    memcpy(line, text, bytes);
    line[bytes] = '\n';
    const bool is_written = outlet_write(outlet_result, line, bytes + 1, OUTLET_PATIENCE);
    free(line);
    return is_written;
}

void events_print(const char *json)
{
    const bool is_written = print_line(json);
    if (is_written && lost > 0)
        say("stdout is read again: %ld event%s left out there", lost,
            lost == 1 ? " was" : "s were");
    if (!is_written && lost == 0)
        say("warning: nobody reads stdout: training goes on, events are left out there");
    lost = is_written ? 0 : lost + 1;
}
