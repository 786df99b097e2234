/* Results as JSON, on stdout or in a file. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <jansson.h>
#include <lockstep/device.h>

/* json_real(), or null where the number is none that JSON knows. */
json_t *json_number(double number);

/* A string; bytes that are no UTF-8 become \xHH. */
json_t *json_text(const char *text);

/* Prints the value and a newline to stdout and releases it; returns DONE or FAILED (said).
 * NULL, as from a failed json_pack(), is out of memory. */
int json_print(json_t *value, size_t flags);

/* As json_print(), in place of the file `path`: written beside it first. A status that is not
 * DONE is that of lk_file_write(), said. */
int json_write(json_t *value, const char *path);

/* A device as an object. */
json_t *device_json(const struct lk_device_info *info);

#endif
