/* Numbers as text, the same in every locale: files, settings and kernel options always have a
 * decimal point, never a comma. Floor 0. */
#ifndef LK_BASE_NUMBER_H
#define LK_BASE_NUMBER_H

#include <stddef.h>

/* As strtod() in the C locale. */
double lk_number_read(const char *text, char **end);

/* Writes the shortest text that lk_number_read() reads back as the same number. */
void lk_number_print(double number, char *text, size_t bytes);

#endif
