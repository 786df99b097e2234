/* Settings: everything that decides a run, by names as run files have them. Floor 8. */
#ifndef LOCKSTEP_SETTINGS_H
#define LOCKSTEP_SETTINGS_H

#include <lockstep/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything that decides a run; saved as config.yaml. */
struct lk_settings;

/* All settings at their defaults. */
LK_API LK_MUST_CHECK enum lk_status lk_settings_create(struct lk_settings **settings);
LK_API void lk_settings_destroy(struct lk_settings *settings);

/* Sets one: "model", "data", "validation", "run", "epochs", "batch_size", "optimizer", "lr",
 * "seed" ... (lk_setting_name() lists them). fails: LK_E_ARGUMENT with the nearest name */
LK_API LK_MUST_CHECK enum lk_status lk_settings_set(struct lk_settings *settings,
                                                    const char *name, const char *value);

/* Sets all that a run file (YAML: model, input, classes, data, validation, train) says.
 * fails: LK_E_MODEL with the line, LK_E_IO */
LK_API LK_MUST_CHECK enum lk_status lk_settings_read(struct lk_settings *settings,
                                                     const char *path);

/* Whether lk_settings_read() is for this file: YAML, a map with `model`; or damaged YAML, by
 * its name's ending, of which it says what is wrong. */
LK_API bool lk_settings_is_run_file(const char *path);

/* Writes a setting's value as text. fails: LK_E_ARGUMENT for an unknown name or no room */
LK_API LK_MUST_CHECK enum lk_status lk_settings_get(const struct lk_settings *settings,
                                                    const char *name, char *value,
                                                    size_t bytes);

/* Bytes of device memory that setting memory_limit allows: of "512M" or "4G", powers of 1024;
 * 0: "", no limit. fails: LK_E_ARGUMENT */
LK_API LK_MUST_CHECK enum lk_status lk_memory_limit_parse(const char *text, size_t *bytes);

struct lk_model;

/* Sets "input" and "classes" of a zoo model where they are left open: to those of the run that
 * goes on in the settings' run directory, else to what the data has. Images of other sizes are
 * scaled to the model's own, unless SPEC or pipeline name a size. Nothing happens without data,
 * and to models of files. fails: as lk_data_open_as() */
LK_API LK_MUST_CHECK enum lk_status lk_settings_fit(struct lk_settings *settings);

/* Takes data (with "validation" and "max_bad") and model where none is named from the run of
 * "init_from", as its config.yaml has them, and of the same model "input", "classes" and
 * parameters; says in a line what it took. Nothing happens without init_from.
 * fails: LK_E_ARGUMENT there is no config.yaml; as lk_settings_read() */
LK_API LK_MUST_CHECK enum lk_status lk_settings_inherit(struct lk_settings *settings);

/* Opens the settings' model, as lk_model_open() does. fails: LK_E_ARGUMENT none is named */
LK_API LK_MUST_CHECK enum lk_status lk_settings_open_model(const struct lk_settings *settings,
                                                           struct lk_model **model);

/* Names and one-line explanations of all settings; NULL past the last. */
LK_API const char *lk_setting_name(int index);
LK_API const char *lk_setting_help(int index);

#ifdef __cplusplus
}
#endif
#endif
