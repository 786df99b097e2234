/* What PoCL's faults ask of whoever works with several contexts. Floor 1; device/ alone. */
#ifndef LK_DEVICE_POCL_H
#define LK_DEVICE_POCL_H

#include "device/opencl.h"

bool lk_pocl_is(const char *platform);

/* The number of the group that a context belongs to until it leaves; programs of different
 * groups are to differ in their options. The text is "" for the first group. */
int lk_pocl_enter(void);
void lk_pocl_leave(int group);
const char *lk_pocl_options(int group, char *text, size_t bytes);

/* clFinish(), and nobody but us holds the queue's last command, or a second is over. */
void lk_pocl_finish(cl_command_queue queue);

/* Asks the system for huge pages where a new buffer holds some; what fails changes nothing.
 * Waits. */
void lk_pocl_advise(cl_command_queue queue, cl_mem mem, size_t bytes);

#endif
