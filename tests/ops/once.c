/* Remembers which kernels were tested, so that slow platforms test each only once. */
#include "once.h"

#include "device/program/kernel.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_TESTED = 512 };

static struct use {
    int configuration;
    const char *algorithm;
    const struct lk_embedded *source;
    char name[64];
} tested[MOST_TESTED];
static int tested_count;

bool once_is_asked(void)
{
    const char *text = getenv("LOCKSTEP_TEST_ONCE");
    return text && strcmp(text, "1") == 0;
}

bool once_all_are_asked(void)
{
    const char *text = getenv("LOCKSTEP_TEST_ALL");
    return text && strcmp(text, "1") == 0 && !once_is_asked();
}

static bool is_tested(const struct use *use)
{
    for (int i = 0; i < tested_count; i++)
        if (tested[i].configuration == use->configuration && tested[i].source == use->source &&
            strcmp(tested[i].name, use->name) == 0 &&
            strcmp(tested[i].algorithm, use->algorithm) == 0)
            return true;
    return false;
}

bool once_finds_new(struct lk_device *device, const char *algorithm, int configuration)
{
    bool found = false;
    for (const struct lk_kernel *k = device->pending; k; k = k->next_pending) {
        struct use use = {configuration, algorithm ? algorithm : "", k->program->source, ""};
        strcpy(use.name, k->name);
        if (is_tested(&use))
            continue;
        found = true;
        if (tested_count < MOST_TESTED)
            tested[tested_count++] = use;
    }
    return found;
}
