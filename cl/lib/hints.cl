/* Hints to the caches. PREFETCH(p): into all of them, PREFETCH_FAR(p): not into the first, for
 * what is needed much later. STREAM_STORE(p, v): past them. Where the compiler makes code for a
 * CPU: translators to SPIR-V know neither, whatever they say of builtins, and some end the
 * process. */
#if defined(__has_builtin) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__builtin_prefetch)
#define PREFETCH(p) __builtin_prefetch(p, 0, 3)
#define PREFETCH_FAR(p) __builtin_prefetch(p, 0, 2)
#endif
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM_STORE(p, v) __builtin_nontemporal_store(v, p)
#endif
#endif
#ifndef PREFETCH
#define PREFETCH(p)
#define PREFETCH_FAR(p)
#endif
#ifndef STREAM_STORE
#define STREAM_STORE(p, v) (*(p) = (v))
#endif
