/* Passes messages on to the program's handler; by default warnings go to stderr. */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static void log_to_stderr(void *context, enum lk_log_level level, const char *text)
{
    (void)context;
    if (level >= LK_LOG_WARNING)
        fprintf(stderr, "lockstep: %s\n", text);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void (*current)(void *, enum lk_log_level, const char *) = log_to_stderr;
static void *current_context;

void lk_log_set(void (*handler)(void *, enum lk_log_level, const char *), void *context)
{
    pthread_mutex_lock(&mutex);
    current = handler ? handler : log_to_stderr;
    current_context = context;
    pthread_mutex_unlock(&mutex);
}

void lk_log(enum lk_log_level level, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&mutex);
    current(current_context, level, text);
    pthread_mutex_unlock(&mutex);
}
