/* Drills: training runs of this program in which something goes wrong. */
#ifndef TOOLS_DRILL_H
#define TOOLS_DRILL_H

/* Trains a small model on two replicas on the device, which fail, hang, are stopped or killed;
 * each run has to end, perhaps when it is started again, with every step done once and the
 * parameters of an undisturbed one. Prints what was found. Returns DONE or FAILED. */
int drill_faults(int device);

#endif
