/* What tests of model texts share: warnings that are kept, and reading a text. Knows cmocka. */
#ifndef TESTS_MODEL_RIG_H
#define TESTS_MODEL_RIG_H

#include <lockstep/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char warnings[2048];

static inline void keep_warning(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level == LK_LOG_WARNING) {
        const size_t used = strlen(warnings);
        snprintf(warnings + used, sizeof warnings - used, "%s\n", text);
    }
}

/* Setup and teardown: warnings of the library are kept. */
static inline int catch_warnings(void **state)
{
    (void)state;
    warnings[0] = '\0';
    lk_error_clear();
    lk_log_set(keep_warning, NULL);
    return 0;
}

static inline int release_warnings(void **state)
{
    (void)state;
    lk_log_set(NULL, NULL);
    return 0;
}

/* The model of a text that must be good. */
static inline struct lk_model *read_model(const char *text)
{
    struct lk_model *model = NULL;
    if (lk_model_read(text, strlen(text), "m.yaml", &model) != LK_OK)
        fail_msg("'%s' gave '%s'", text, lk_error_text());
    return model;
}

#endif
