/* tests/unit/nn/backend/ops_check.h - an operation of random shape, of every backend against the
 * reference: forward, both gradients, fused updates. */
#ifndef HPCT_TESTS_UNIT_NN_BACKEND_OPS_CHECK_H
#define HPCT_TESTS_UNIT_NN_BACKEND_OPS_CHECK_H

#include "tests/unit/nn/nn_case.h"

/* The backend that HPC_TRAIN_TEST_BACKEND names, instead of all that are built in; NULL: none. */
const hpct_backend *wanted(void);

extern uint64_t draws; /* random numbers so far: the seed of a case */
int pick(int low, int high);

/* Channels, often as many as make whole blocks. */
int pick_channels(int most);

/* bf16 in a third of the cases, or in all with HPC_TRAIN_TEST_PRECISION, where this machine has it.
 */
hpct_precision pick_precision(void);

/* A Conv2D or pooling of at most so many channels. */
nn_case random_window_case(hpct_op_kind kind, int max_in_c, int max_out_c);

/* With NN_OPS_ON_HOST the GPU's kernels on the host, which have no Conv2D and Dense. */
void check_case(const nn_case *c);
extern int added; /* cases in which a backend added to a gradient */

/* Where more is rounded on the way. */
void compare_loosely(const nn_case *c, const char *what, const float *got, const float *expected,
                     size_t count);

/* The cases so far had more than `least` with channels in blocks, unless this processor has no use
 * for blocks; and with values of 16 bits, of both types. */
void blocks_were_tried(int least);
void values_of_16_bits_were_tried(int least);

#endif
