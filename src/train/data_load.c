#include "train/trainer_parts.h"

#include "base/fail.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>

/* The standard validation data is the test part of the training data, where it has one. */
static enum lk_status open_validation(struct lk_data_load *load)
{
    const char *spec = load->settings->validation;
    if (strcmp(spec, "off") == 0)
        return LK_OK;
    if (*spec)
        return lk_data_open(spec, LK_DATA_TEST, &load->validation);
    const enum lk_status status =
        lk_data_open(load->settings->data, LK_DATA_TEST, &load->validation);
    if (status != LK_E_IO)
        return status;
    lk_log(LK_LOG_WARNING, "no validation: %s", lk_error_text());
    lk_error_clear();
    return LK_OK;
}

static void *load_data(void *argument)
{
    struct lk_data_load *load = argument;
    load->status = lk_data_open(load->settings->data, LK_DATA_TRAIN, &load->train);
    if (load->status == LK_OK)
        load->status = open_validation(load);
    if (load->status != LK_OK) {
        snprintf(load->text, sizeof load->text, "%s", lk_error_text());
        atomic_store(&load->has_failed, true);
    }
    return NULL;
}

enum lk_status lk_data_load_start(struct lk_data_load *load, const struct lk_settings *settings)
{
    if (!settings->data[0])
        return lk_fail(LK_E_ARGUMENT,
                       "no data: give --data idx:DIR, fashion-mnist or synthetic:digits");
    load->settings = settings;
    if (pthread_create(&load->thread, NULL, load_data, load) != 0)
        return lk_fail(LK_E_MEMORY, "cannot start a thread");
    load->is_running = true;
    return LK_OK;
}

enum lk_status lk_data_load_join(struct lk_data_load *load)
{
    if (load->is_running) {
        pthread_join(load->thread, NULL);
        load->is_running = false;
    }
    return load->status == LK_OK ? LK_OK : lk_fail(load->status, "%s", load->text);
}
