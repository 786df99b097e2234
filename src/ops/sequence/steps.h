/* What operations on the time steps of a sequence share. Floor 4. Private to this room.
 *
 * A sequence is [t, c], tokens are [t], a length is i32 [] behind the other inputs. Steps
 * behind a sample's length count for nothing: y and dx are 0 there, and x and dy are not looked
 * at. */
#ifndef LK_OPS_SEQUENCE_STEPS_H
#define LK_OPS_SEQUENCE_STEPS_H

#include "ops/args.h"
#include "ops/op.h"

/* Input 0 is a real sequence [t, c], and input 1, if there is one, a length. `name`: the
 * operation, for messages. fails: LK_E_SHAPE */
LK_MUST_CHECK enum lk_status lk_steps_check(const struct lk_op_shapes *shapes,
                                            const char *name);

/* Input 1, if there is one, is a length. fails: LK_E_SHAPE */
LK_MUST_CHECK enum lk_status lk_steps_check_length(const struct lk_op_shapes *shapes,
                                                   const char *name);

/* The buffer of the length; NULL: all steps are valid. */
const struct lk_buffer *lk_steps_length(const struct lk_op_setup *setup,
                                        const struct lk_op_run *run);

enum lk_steps_padding { LK_STEPS_VALID, LK_STEPS_SAME, LK_STEPS_CAUSAL };

/* Their words: "valid", "same", "causal", NULL. */
extern const char *const lk_steps_paddings[];

/* Places windows over `steps` time steps: sets before, lack and count of one whose size, stride
 * and gap are set. `name`: the operation, for messages. fails: LK_E_SHAPE where none fits */
LK_MUST_CHECK enum lk_status lk_steps_place(struct lk_step_windows *windows, int64_t steps,
                                            enum lk_steps_padding padding, const char *name);

#endif
