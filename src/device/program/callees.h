/* The kernels of a chain (device/chain.h) and the text that calls them. Floor 1. Private to
 * src/device. */
#ifndef LK_DEVICE_PROGRAM_CALLEES_H
#define LK_DEVICE_PROGRAM_CALLEES_H

#include "device/program/kernel.h"

enum { LK_MOST_CALLEES = 96 };

struct lk_callee {
    const struct lk_program *program;
    char name[64];
    char *call; /* a function that calls it, as text */
};

struct lk_callees {
    struct lk_callee each[LK_MOST_CALLEES];
    int count;
};

/* Adds the kernel, unless it is there or can be no part of a chain. In a chain's table a buffer
 * has two numbers, a struct all of its own, local memory none, everything else one. */
void lk_callees_note(struct lk_callees *callees, const struct lk_kernel *kernel,
                     const struct lk_arg *args, int count);

/* Its number; -1: it is not there. */
int lk_callees_find(const struct lk_callees *callees, const struct lk_kernel *kernel);

/* Appends a program of all of them; `loop`, of cl/device/chain.cl, is its unit 0. */
void lk_callees_print(const struct lk_callees *callees, const struct lk_program *loop,
                      struct lk_text *text);

void lk_callees_clear(struct lk_callees *callees);

#endif
