/* Hints to the caches: PREFETCH(p) brings a line into all of them, PREFETCH_TO_WRITE(p) one
 * that will be written, STREAM_STORE(p, v) writes past them. They are empty unless the compiler
 * makes code for a CPU: translators to SPIR-V know neither, whatever they say of builtins, and
 * some end the process. APART is no instruction, but none is moved over it or taken together
 * with one on its other side. */
#if defined(__has_builtin) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(p) __builtin_prefetch(p, 0, 3)
#define PREFETCH_TO_WRITE(p) __builtin_prefetch(p, 1, 3)
#endif
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(p, v) __builtin_nontemporal_store(v, p)
#define APART __asm__ volatile("")
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(p)
#define PREFETCH_TO_WRITE(p)
#endif
#ifndef STREAM_STORE
#define STREAM_STORE(p, v) (*(p) = (v))
#define APART
#endif
