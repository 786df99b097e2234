/* Status codes, the text of the first failure, and messages.
 * Floor 0. Knows no device, no tensor, no file. */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define LK_API __attribute__((visibility("default")))
#define LK_MUST_CHECK __attribute__((warn_unused_result))

/* X(code, meaning). The order is part of the interface; new codes go last. */
#define LK_STATUSES(X)                                                                         \
    X(LK_OK, "ok")                                                                             \
    X(LK_E_ARGUMENT, "invalid argument")                                                       \
    X(LK_E_SHAPE, "shapes do not fit")                                                         \
    X(LK_E_MEMORY, "out of host memory")                                                       \
    X(LK_E_DEVICE_MEMORY, "out of device memory")                                              \
    X(LK_E_NO_DEVICE, "no usable device")                                                      \
    X(LK_E_DEVICE, "device failed")                                                            \
    X(LK_E_BUILD, "kernel does not build")                                                     \
    X(LK_E_IO, "input or output failed")                                                       \
    X(LK_E_DATA, "malformed data")                                                             \
    X(LK_E_MODEL, "malformed model")                                                           \
    X(LK_E_UNSUPPORTED, "not supported")                                                       \
    X(LK_E_INTERRUPTED, "interrupted")

enum lk_status {
#define LK_X(code, meaning) code,
    LK_STATUSES(LK_X)
#undef LK_X
};

/* The meaning of a code in a few words; never NULL. */
LK_API const char *lk_status_text(enum lk_status status);

/* What failed first on this thread since the last lk_error_clear(): what was expected, what was
 * found, where. "" where nothing failed. Valid until the next call into the library. */
LK_API const char *lk_error_text(void);

/* Forgets this thread's failure; for callers that go on after one. */
LK_API void lk_error_clear(void);

/* The name nearest to `wrong` by edit distance among names(context, i) until it gives NULL;
 * NULL where none is near. For "unknown X 'foo'; did you mean 'food'?" */
LK_API const char *lk_nearest_name(const char *wrong,
                                   const char *(*names)(const void *context, int i),
                                   const void *context);

enum lk_log_level { LK_LOG_DEBUG, LK_LOG_INFO, LK_LOG_WARNING };

/* Sends the library's messages to handler(context, level, text) on the thread that has them;
 * NULL restores the default: warnings to stderr, a line each. */
LK_API void lk_log_set(void (*handler)(void *context, enum lk_log_level level,
                                       const char *text),
                       void *context);

#ifdef __cplusplus
}
#endif
#endif
