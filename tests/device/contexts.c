/* Several contexts that run the same kernels at once. */
#include "rig.h"

#include <pthread.h>

enum { CONTEXTS = 4, LAUNCHES = 60, ROUNDS = 4000 };

static pthread_barrier_t start;

struct side {
    struct lk_device *device;
    struct lk_kernel *kernel;
    struct lk_buffer *y;
    int extra; /* groups */
    bool has_failed;
};

static void open_side(struct side *side, int position)
{
    const struct lk_kernel_spec spec = {.source = "bench/bench",
                                        .name = "bench_fma",
                                        .options = "-DCHAINS=8 -DITEMS=1 -DGROUP=1",
                                        .real_bytes = sizeof(float)};
    char list[16];
    snprintf(list, sizeof list, "0*%d", CONTEXTS);
    assert_ok(lk_device_open(list, position, &side->device));
    assert_ok(lk_kernel_create(side->device, &spec, &side->kernel));
    assert_ok(lk_device_build(side->device));
    assert_ok(lk_buffer_create(side->device, (size_t)1 << 20, &side->y));
    side->extra = position == CONTEXTS - 1;
}

static void *launch_wider(void *context)
{
    struct side *side = context;
    const struct timespec moment = {.tv_nsec = 100000};
    for (int i = 1; i <= LAUNCHES; i++) {
        const struct lk_grid grid = {{3 * i + side->extra, 1, 1}, 1};
        pthread_barrier_wait(&start);
        if (side->extra) /* while the others run */
            nanosleep(&moment, NULL);
        side->has_failed |= LK_ENQUEUE(side->kernel, grid, LK_BUF(side->y), LK_INT(ROUNDS),
                                       LK_REAL(0.5), LK_REAL(1)) != LK_OK ||
                            lk_device_finish(side->device) != LK_OK;
    }
    return NULL;
}

/* In PoCL 3.1 this ends the process, where all contexts share its compiled kernels. */
static void one_launches_a_wider_grid(void **state)
{
    struct side sides[CONTEXTS] = {{0}};
    pthread_t threads[CONTEXTS];
    (void)state;
    pthread_barrier_init(&start, NULL, CONTEXTS);
    for (int i = 0; i < CONTEXTS; i++)
        open_side(&sides[i], i);
    for (int i = 0; i < CONTEXTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_wider, &sides[i]), 0);
    for (int i = 0; i < CONTEXTS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(sides[i].has_failed);
        lk_buffer_destroy(sides[i].y);
        lk_kernel_destroy(sides[i].kernel);
        lk_device_close(sides[i].device);
    }
    pthread_barrier_destroy(&start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_launches_a_wider_grid)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
