/* Validation on a share of the training data, as a setting of its own. */
#include "base/fail.h"
#include "base/number.h"
#include "train/settings/settings.h"
#include <stdio.h>
#include <string.h>

enum lk_status lk_settings_hold_out(struct lk_settings *settings)
{
    char *end, made[sizeof settings->data];
    (void)lk_number_read(settings->validation, &end);
    if (end == settings->validation || strcmp(end, "%") != 0)
        return LK_OK;
    if (strstr(settings->data, ",val="))
        return lk_fail(
            LK_E_ARGUMENT,
            "validation is to be %s of the data, and its SPEC '%s' holds a share out "
            "already: leave one of them out",
            settings->validation, settings->data);
    const int length =
        snprintf(made, sizeof made, "%s,val=%s", settings->data, settings->validation);
    if (length >= (int)sizeof made)
        return lk_fail(LK_E_ARGUMENT, "the SPEC '%s' is too long", settings->data);
    memcpy(settings->data, made, (size_t)length + 1);
    settings->validation[0] = '\0';
    return LK_OK;
}
