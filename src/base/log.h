/* Messages to the user, through the handler that lk_log_set() has set. Floor 0. */
#ifndef LK_BASE_LOG_H
#define LK_BASE_LOG_H

#include <lockstep/status.h>

/* Formats a message (cut at 4 KB) and hands it to the handler. Any thread. */
void lk_log(enum lk_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
