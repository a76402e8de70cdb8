/* nn/run/step.h - one replica's computation on a model, batch by batch: forward, loss, backward,
 * update. Independent of ranks and data sets.
 *
 * Arenas: all parameters are in one contiguous buffer and all gradients in another of the same
 * layout, ordered so that backward finishes gradients from the beginning to the end (last layer
 * first). Reduce, update and broadcast work on ranges. The layout within a parameter is the
 * backend's; processes have equal layouts iff fingerprints are equal. States (untrained parameters:
 * moving statistics, frozen layers) have a third arena. */
#ifndef HPCT_NN_RUN_STEP_H
#define HPCT_NN_RUN_STEP_H

#include "nn/backend/types.h"
#include "nn/graph/compile.h"
#include "nn/graph/hold.h"
#include "nn/graph/peers.h"
#include "nn/plan/options.h"
#include "nn/run/synced.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>

/* On a device: makes the calling thread use replica k's device of this process
 * (hpct_backend_device.enter). has_devices: whether there are that many. */
hpct_status hpct_model_enter_replica(const hpct_model *model, int replica);
bool hpct_model_has_devices(const hpct_model *model, int count);

/* Sets the callbacks of the model's steps (copied); NULL, or no call: none. They persist across
 * builds. */
void hpct_model_set_peers(hpct_model *model, const hpct_graph_step_peers *peers);
const hpct_graph_step_peers *hpct_model_peers(const hpct_model *model);

/* Whether the model computes in device memory: the host accesses arenas only through
 * hpct_model_read and hpct_model_write. */
bool hpct_model_on_device(const hpct_model *model);
/* Share of about the last second in which its device computed; NaN: not known, or none. */
double hpct_model_device_busy(const hpct_model *model);
/* Free bytes of device memory; SIZE_MAX for host memory. */
hpct_status hpct_model_memory_left(const hpct_model *model, size_t *bytes);

/* Copies `count` floats between the host and an arena. Synchronous, after all work. */
hpct_status hpct_model_read(const hpct_model *model, float *host, const float *arena, size_t count);
hpct_status hpct_model_write(const hpct_model *model, float *arena, const float *host,
                             size_t count);
/* Factor by which gradients in the arena are scaled: the loss scale in fp16, else 1.
 * Synchronous. */
hpct_status hpct_model_gradient_scale(const hpct_model *model, float *scale);
/* The loss scale's state, [hpct_model_scaling_bytes], 0 without. Synchronous. */
size_t hpct_model_scaling_bytes(const hpct_model *model);
hpct_status hpct_model_read_scaling(const hpct_model *model, void *state);
hpct_status hpct_model_write_scaling(hpct_model *model, const void *state);
/* Its address, in the backend's memory; NULL without loss scaling. */
void *hpct_model_scaling(const hpct_model *model);
/* For updates made elsewhere: divides gradients[count], in host memory, by the scale, and updates
 * the scale. *again: they are not finite, the scale was reduced, and the step must be recomputed.
 * No effect without a scale. Synchronous. */
hpct_status hpct_model_unscale(hpct_model *model, float *gradients, size_t count, bool *again);
bool hpct_run_are_finite(const float *values, size_t count); /* host memory */
/* Copies the state of `from` to `to`; either may be built. Synchronous. */
hpct_status hpct_model_copy_scaling(const hpct_model *from, hpct_model *to);
hpct_status hpct_model_wait(const hpct_model *model); /* for all device work */
/* Sets all gradients to zero, except the piggybacked tail. */
hpct_status hpct_model_clear_gradients(hpct_model *model);

/* From now on the learning rate is the schedule's times 0.5 to the power of `halvings`; also in
 * models that are made of this one. */
void hpct_model_set_halvings(hpct_model *model, int halvings);
/* In place of the schedule's, halved or not; 0: the schedule's again. */
void hpct_model_set_learning_rate(hpct_model *model, double rate);

/* From now on backward stores all gradients, also those that it applies itself, which it otherwise
 * does not (hpct_run_build_options.fuse_update). Host memory only. */
void hpct_model_show_gradients(hpct_model *model, bool shown);

/* The arenas, 64-byte aligned; valid until the next build. Call again before each write to
 * parameters, so that copies in other types are remade. *count: floats including padding, without
 * the tail. */
float *hpct_model_parameters(hpct_model *model, size_t *count);
float *hpct_model_gradients(hpct_model *model, size_t *count);
/* The same for states; *count may be 0. Forward with `training` changes them. */
float *hpct_model_states(hpct_model *model, size_t *count);
/* The same for parameters of frozen layers, which no step changes. */
float *hpct_model_frozen(hpct_model *model, size_t *count);
/* The k-th arena of optimizer slots, laid out as parameters; NULL if there are not so many. */
float *hpct_model_slots(hpct_model *model, int k, size_t *count);
hpct_status hpct_model_scale_states(hpct_model *model, float factor);     /* every one *= factor */
hpct_status hpct_model_scale_parameters(hpct_model *model, float factor); /* trained ones */
uint64_t hpct_model_layout_fingerprint(const hpct_model *model);

/* Sets the input, [n][floats of a sample], preferably 64-byte aligned, and labels, [n]: the
 * caller's memory, read only. A device copies from it; it may be overwritten once sums, outputs or
 * an arena of that step have been read. */
void hpct_model_set_input(hpct_model *model, const float *input, const int32_t *labels);

/* After hpct_model_set_input or set_resident_input: targets of that batch, [n][outputs], the
 * caller's memory like the input. No effect on a build without dense targets. */
void hpct_model_set_targets(hpct_model *model, const float *targets);

/* Promises that the input does not change until the next set_input or hpct_model_input: a device
 * copies it once. */
void hpct_model_keep_input(hpct_model *model);

/* The model's own input buffers, [largest batch size, or input_samples][one sample] and [largest],
 * allocated on demand and used from then on. NULL if not built or out of memory. targets: with
 * dense_targets [largest][outputs], else NULL. */
float *hpct_model_input(hpct_model *model);
int32_t *hpct_model_labels(hpct_model *model);
float *hpct_model_targets(hpct_model *model);

/* Which classes the first n samples of the input just set are of, until another input is set:
 * shares[i] of labels[i], the rest of others[i], written to hpct_model_targets(). others NULL: of
 * labels[i] alone. Both are as hpct_model_await_input has them. */
hpct_status hpct_model_mix_labels(hpct_model *model, int n, const int32_t *others,
                                  const float *shares);

/* Zeroed host memory, 64-byte aligned, for set_input: pinned for a model on a device. NULL if out
 * of memory. return_host accepts NULL, and must be called on the same model. */
void *hpct_model_take_host(const hpct_model *model, size_t bytes);
void hpct_model_return_host(const hpct_model *model, void *memory);

/* Outputs of the last forward: [n][outputs] floats. Synchronous on a device; NULL on error. */
const float *hpct_model_output(const hpct_model *model);

/* Position for random layers (Dropout): seed, step, and index of the local batch's first sample in
 * the global batch, so that results do not depend on the number of ranks and threads. Initially
 * zeros. */
void hpct_model_set_position(hpct_model *model, uint64_t seed, int64_t step, int64_t first_sample);

/* Forward over the first n samples of the input; n must be one of the built batch sizes. */
hpct_status hpct_model_forward(hpct_model *model, int n, bool training);

/* Loss and accuracy of the last forward against the labels (below hpct_model_count_labels, checked
 * by the caller). With `scale` != 0 also computes scale * d(sum of losses)/d(output) for backward:
 * for a mean over a global batch of G use 1/G on every rank. sums: NULL, or read synchronously; on
 * a device better call hpct_model_sums at the end of the step. */
hpct_status hpct_model_loss(hpct_model *model, int n, float scale, hpct_backend_batch_sums *sums);
hpct_status hpct_model_sums(const hpct_model *model, hpct_backend_batch_sums *sums);

/* Asynchronous on a device, so that results are read while it computes the next step. On the host
 * put_sums and send copy at once, and fetched copies the value at that time: call it before the
 * next step.
 *   put_sums     loss, correct and in_top_k of the last loss as floats, to[3] of an arena;
 *   send         `host`[count], from hpct_model_take_host, to an arena; must not change until a
 *                result of a later call has been read;
 *   fetch        starts copying `bytes` (at most HPCT_RUN_FETCH_BYTES) of an arena to the host, or
 *                fetch_sums those of the last loss; `which` is 0 or 1, for two concurrent fetches;
 *   fetched      waits for the last fetch with that number and copies its result;
 *   await_input  waits until the host memory that the last forward read may be overwritten. */
hpct_status hpct_model_put_sums(const hpct_model *model, float *to);
hpct_status hpct_model_send(const hpct_model *model, float *arena, const float *host, size_t count);
hpct_status hpct_model_fetch(const hpct_model *model, int which, const float *arena, size_t bytes);
hpct_status hpct_model_fetch_sums(const hpct_model *model, int which);
hpct_status hpct_model_fetched(const hpct_model *model, int which, void *to, size_t bytes);
hpct_status hpct_model_await_input(const hpct_model *model);

/* Fills the gradient arena (overwrites; does not accumulate). After a loss with scale != 0. */
hpct_status hpct_model_backward(hpct_model *model, int n);

/* After backward, before the sum over ranks. *due: whether update() must follow; always, unless
 * gradients are accumulated: then only after the last batch, when the gradient arena receives their
 * sum. */
hpct_status hpct_model_accumulate(hpct_model *model, bool *due);

/* Updates the whole arena, with the scheduled learning rate. Counts a step; so does an accumulate
 * without update. */
hpct_status hpct_model_update(hpct_model *model);

/* Updates [begin, end), bounded by hpct_model_cut. */
hpct_status hpct_model_update_part(hpct_model *model, size_t begin, size_t end);

/* A whole step on a device, without gradient accumulation: forward, loss with `scale` (not 0),
 * backward, the peers' reduce, update. With other replicas the peers need an `agree`; n may then be
 * 0. */
hpct_status hpct_model_step(hpct_model *model, int n, float scale);

/* Drops recordings; to be called before memory used in them is freed. */
void hpct_model_drop_recordings(hpct_model *model);

/* The last position at or before `at` where the arenas may be divided for separate updates:
 * anywhere (64-byte aligned); between parameters for optimizers with per-parameter norms; only 0 or
 * the end with a global norm. */
size_t hpct_model_cut(const hpct_model *model, size_t at);

#endif
