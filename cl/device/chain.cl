/* Runs the launches of a chain (src/device/chain.h), one after the other. A step is a launch:
 * steps[]: [kernel, its work-groups (tasks) in all and in three dimensions, where its arguments
 * begin, and 1 in how many of the tasks that are left are taken at once: many first, in the end
 * one by one, so that no group waits long]. Groups of this kernel take tasks by a counter,
 * those of a step when all of the steps before it are done. What a group waits for was taken by
 * one that runs, so it ends however many run at a time. One that has waited for long leaves:
 * the other has lost its core to another program, and goes on alone.
 *
 * Groups have two sides. In one step they come from both ends of the tasks, in the next from
 * the middle: a core first reads what it has written last, where the tasks of one step write
 * channels that those of the next one read. Who takes tasks takes as many places of its side;
 * since no more are taken than there are, those of both sides never meet.
 *
 * state: zeros, and again when all is done; table: steps, then arguments. CHAIN_CALL, which
 * what is compiled with this file defines, calls a kernel as one of its groups. scratch: memory
 * for any of them. Group id 0: no meaning; there are as many groups as shall run.
 */
#include "lib/real.cl"

#ifndef CHAIN_CALL
#define CHAIN_CALL(kernel, a, base, scratch, group, groups) (void)(group)
#endif

#define APART_BY 32 /* ints: each in cache lines of its own */
#define TAKEN 0
#define DONE APART_BY
#define LEFT (2 * APART_BY)
#define ENTERED (3 * APART_BY)
#define MOST_STEPS 64
#define PLACES(side) (4 * APART_BY + (side) * MOST_STEPS) /* [steps]: taken by this side */
#define STEP 7
#define BASES 12
#define PATIENCE (1 << 13) /* 0.2 ms or so */

#if defined(__has_builtin) && defined(__x86_64__)
#if __has_builtin(__builtin_ia32_pause)
#define REST __builtin_ia32_pause()
#endif
#endif
#ifndef REST
#define REST
#endif

/* What a group has written before LET_SEE another one sees that reads behind SEE. OpenCL 1.2
 * knows no loads between groups; on CPUs they are cheaper than changing a counter by 0. */
#if defined(__has_builtin) && (defined(__x86_64__) || defined(__aarch64__))
#if __has_builtin(__c11_atomic_thread_fence)
#define SEE __c11_atomic_thread_fence(__ATOMIC_ACQUIRE)
#define LET_SEE __c11_atomic_thread_fence(__ATOMIC_RELEASE)
#define NOW(counter) state[counter]
#endif
#endif
#ifndef SEE
#define SEE mem_fence(CLK_GLOBAL_MEM_FENCE)
#define LET_SEE mem_fence(CLK_GLOBAL_MEM_FENCE)
#define NOW(counter) atomic_or(&state[counter], 0)
#endif

/* Tasks that follow on one another, in runs of dimension 0: group[3] of them in one call. */
BODY void run_tasks(__global const int *step, __global const int *args,
                    __global char *const *base, __local char *scratch, int task, int count)
{
    const int groups[3] = {step[2], step[3], step[4]};
    for (int run; count > 0; task += run, count -= run) {
        run = min(count, groups[0] - task % groups[0]);
        const int group[4] = {task % groups[0], task / groups[0] % groups[1],
                              task / groups[0] / groups[1], run};
        CHAIN_CALL(step[0], args + step[5], base, scratch, group, groups);
    }
}

/* The task at a side's place, of so many in a step. */
INLINE int task_at(int side, int place, int step, int all)
{
    const int middle = all / 2;
    if (step % 2 == 0)
        return side ? all - 1 - place : place;
    if (side)
        return place < all - middle ? middle + place : place - (all - middle);
    return place < middle ? middle - 1 - place : all - 1 - (place - middle);
}

BODY void run_steps(volatile __global int *state, __global const int *table, int steps,
                    __global char *const *base, __local char *scratch)
{
    const int side = atomic_inc(&state[ENTERED]) % 2;
    int step = 0, first = 0; /* first: tasks of the steps before this one */
    for (int waited = 0; waited < PATIENCE; waited++) {
        const int task = NOW(TAKEN);
        for (; step < steps && task >= first + table[step * STEP + 1]; step++)
            first += table[step * STEP + 1];
        if (step == steps)
            return;
        if (NOW(DONE) < first) {
            REST;
            continue;
        }
        const int all = table[step * STEP + 1];
        const int count = max((first + all - task) / table[step * STEP + 6], 1);
        if (atomic_cmpxchg(&state[TAKEN], task, task + count) != task)
            continue;
        waited = 0;
        SEE;
        const int place = atomic_add(&state[PLACES(side) + step], count);
        const int a = task_at(side, place, step, all);
        const int b = task_at(side, place + count - 1, step, all);
        const bool is_run = abs(b - a) == (uint)count - 1;
        for (int i = 0; i < (is_run ? 1 : count); i++)
            run_tasks(table + step * STEP, table + steps * STEP, base, scratch,
                      is_run ? min(a, b) : task_at(side, place + i, step, all),
                      is_run ? count : 1);
        LET_SEE;
        atomic_add(&state[DONE], count);
    }
}

#define CHAIN_KERNEL __kernel WIDE NOT_SPREAD __attribute__((reqd_work_group_size(1, 1, 1)))

CHAIN_KERNEL void chain(volatile __global int *state, __global const int *table, int steps,
                        __global char *b0, __global char *b1, __global char *b2,
                        __global char *b3, __global char *b4, __global char *b5,
                        __global char *b6, __global char *b7, __global char *b8,
                        __global char *b9, __global char *b10, __global char *b11,
                        __local char *scratch)
{
    const int groups = get_num_groups(0);
    __global char *const base[BASES] = {b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11};
    run_steps(state, table, steps, base, scratch);
    if (atomic_inc(&state[LEFT]) < groups - 1)
        return;
    atomic_xchg(&state[TAKEN], 0);
    atomic_xchg(&state[DONE], 0);
    atomic_xchg(&state[LEFT], 0);
    atomic_xchg(&state[ENTERED], 0);
    for (int i = 0; i < steps; i++) {
        state[PLACES(0) + i] = 0;
        state[PLACES(1) + i] = 0;
    }
}
