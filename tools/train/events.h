/* The events of a training as lines of JSON on stdout. */
#ifndef TOOLS_EVENTS_H
#define TOOLS_EVENTS_H

/* Prints the line; whoever reads along sees it now. Where nobody reads for OUTLET_PATIENCE
 * seconds it is left out, as are those behind it until somebody reads again, and both is said
 * on stderr: the file metrics.jsonl of the run has all of them. */
void events_print(const char *json);

#endif
