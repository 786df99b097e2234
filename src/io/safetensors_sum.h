/* The checksum of a safetensors file's header, kept in the header itself. Floor 1. Private to
 * src/io/safetensors*.c.
 *
 * The sum is that of the header as it is in the file, from its first '{' to its last space,
 * with the sum's own digits as zeros. */
#ifndef LK_IO_SAFETENSORS_SUM_H
#define LK_IO_SAFETENSORS_SUM_H

#include <lockstep/status.h>
#include <stddef.h>

/* The digits before the sum is known, as they are summed up. */
extern const char lk_safetensors_no_sum[];

/* Puts the sum in place of the zeros in header[bytes], which ends in '\0'. A header without the
 * key is left as it is. fails: LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_safetensors_add_sum(char *header, size_t bytes);

/* Compares the sum in a header that has the key; its digits are zeros afterwards.
 * fails: LK_E_DATA, LK_E_MEMORY */
LK_MUST_CHECK enum lk_status lk_safetensors_check_sum(char *header, size_t bytes);

#endif
