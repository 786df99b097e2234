/* Shows slow work of the library: building kernels, checking them, measuring, evaluating. On a
 * terminal in the status line, with a count and the seconds; elsewhere a line when building or
 * checking or measuring has taken a second, and one when it is over. */
#ifndef TOOLS_TASK_H
#define TOOLS_TASK_H

/* From now on, until task_quiet(). */
void task_start(void);

/* Nothing more is shown. */
void task_quiet(void);

/* Only building is shown, on a terminal; for what prints results between the tasks. */
void task_only_building(void);

#endif
