/* Refuses values of the environment that nothing would understand. */
#include "base/variables.h"

#include "base/fail.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 4 };

static const struct {
    const char *name, *expected;
    const char *words[MOST_WORDS]; /* none: a number from 1 on */
} variables[] = {
    {"LOCKSTEP_MATRIX", "0, 1 or emulated", {"0", "1", "emulated"}},
    {"LOCKSTEP_SHARED", "copy or map", {"copy", "map"}},
    {"LOCKSTEP_SUBGROUPS", "0 or 1", {"0", "1"}},
    {"LOCKSTEP_BUILD_THREADS", "a number of threads", {NULL}},
    {"LOCKSTEP_PROGRAM_CACHE", "0 or 1", {"0", "1"}},
    {"LOCKSTEP_WIDE", "0 or 1", {"0", "1"}},
};

static bool is_count(const char *text)
{
    const size_t length = strlen(text);
    return length < 7 && strspn(text, "0123456789") == length && strtol(text, NULL, 10) > 0;
}

enum lk_status lk_variables_check(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i].name);
        bool is_known = !value || !*value;
        if (!is_known && !variables[i].words[0])
            is_known = is_count(value);
        for (int k = 0; k < MOST_WORDS && variables[i].words[k] && !is_known; k++)
            is_known = strcmp(value, variables[i].words[k]) == 0;
        if (!is_known)
            return lk_fail(LK_E_ARGUMENT, "%s='%s' in the environment: expected %s",
                           variables[i].name, value, variables[i].expected);
    }
    return LK_OK;
}
