/* hpctrain/checkpoint.h - what a folder of checkpoints holds.
 *
 * A run writes DIR/step-0000000100/ with the tensors as safetensors, state.json, and last
 * manifest.json with sizes and checksums (XXH3) of all files. */
#ifndef HPCTRAIN_CHECKPOINT_H
#define HPCTRAIN_CHECKPOINT_H

#include <hpctrain/model.h>
#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Prints a line per checkpoint, newest first: step, epoch, time, size, whether it is complete, and
 * whether it is the best. Contents are not verified. Returns HPCT_ERR_NO_INPUT if there is none. */
HPCT_API hpct_status hpct_checkpoint_list(const char *dir, FILE *stream);

/* Reads every file of a folder's checkpoints, or of one checkpoint, and prints a line for each.
 * Returns HPCT_ERR_DATA, naming the first, if one is damaged, HPCT_ERR_NO_INPUT if there is none.
 */
HPCT_API hpct_status hpct_checkpoint_verify(const char *path, FILE *stream);

/* Writes the weights and class names of the newest valid checkpoint, or of one checkpoint, to a
 * safetensors file. Prints which one it was and, before, those that are damaged. Returns as
 * hpct_checkpoint_verify, or HPCT_ERR_IO. */
HPCT_API hpct_status hpct_checkpoint_export(const char *path, const char *file, FILE *stream);

/* Loads weights and class names of the newest valid checkpoint, or of one checkpoint, into a
 * compiled model, as hpct_model_load_weights() does from a file. Prints which checkpoints are
 * damaged to `stream` (NULL: nowhere). Returns HPCT_ERR_DATA, naming it, if a weight is missing, of
 * another shape or unknown to the model, or, unless allow_nan, NaN or infinite. */
HPCT_API hpct_status hpct_checkpoint_load_weights(const char *path, hpct_model *model,
                                                  bool allow_nan, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
