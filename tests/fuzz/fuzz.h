/* What a fuzz target defines, for libFuzzer or for replay.c. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Reads the bytes as what the target parses; ends the process where a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
