/* nn/step.h - one replica's arithmetic on one model, a batch at a time: forward, loss, backward,
 * update. Between the trainer (agent/) and nn; it knows nothing of ranks or data sets.
 *
 * Arenas: all parameters lie in one contiguous buffer and all gradients in another of the same
 * layout, ordered so that backward finishes gradients from the arena's beginning to its end
 * (last layer first). Reduction, update and broadcast work on ranges of them. The layout inside a
 * parameter is the backend's own; two processes have the same one iff their fingerprints agree.
 * Parameters that are not trained (moving statistics) lie in a third arena, the states. */
#ifndef HPCT_NN_STEP_H
#define HPCT_NN_STEP_H

#include "nn/replicas.h"
#include "nn/watcher.h"

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stdint.h>

/* Floats behind the gradients that belong to the caller: sums that ride in the same collective. */
#define HPCT_ARENA_TAIL 16

typedef struct hpct_build_options {
    const char *backend;    /* "cpu", "ref" or "cuda"; NULL: hpct_model_set_device's */
    const int *batch_sizes; /* every batch size that forward will be called with, > 0 */
    int num_batch_sizes;
    bool inference_only; /* no gradients, no optimizer slots */
    bool fuse_update;    /* backward applies the update itself wherever that saves memory traffic;
                            gradients() then has no defined content, and update() does the rest.
                            For when nobody else needs the gradient (one rank). Without effect
                            unless the update is rate * gradient and no more. */
    bool dense_targets;  /* the loss takes hpct_model_targets instead of the labels */
    bool plain_layout;   /* parameters in a layout that does not depend on the processor, for when
                            fingerprints differ between ranks; may cost speed */
    bool fp32;           /* computes so, whatever the model's precision */
    bool no_slots;       /* none of the optimizer's, and no update: another rank makes it */
    int input_samples;   /* that hpct_model_input has room for, where that is more than the largest
                            batch: replicas take parts of it (nn/clone.h) */
    hpct_model *storage; /* a built model of the same layers, whose parameters are this one's too,
                            without a copy: it has none of its own, no optimizer slots, and cannot
                            update. Only where both have one layout, as fingerprints tell; else as
                            without. Its build outlives this one. Default NULL. */
} hpct_build_options;

/* Sums over a batch, not means: they add up over ranks. */
typedef struct hpct_batch_sums {
    double loss;
    int64_t correct;  /* samples whose largest output is at the label; with one output, on its
                         side of one half */
    int64_t in_top_k; /* samples whose label's output is among the k largest; 0 without top_k */
} hpct_batch_sums;

/* Allocates and plans everything for these batch sizes; the step allocates nothing. The model must
 * be compiled. Weights and optimizer slots set before are kept, also from an earlier build. */
hpct_status hpct_model_build(hpct_model *model, const hpct_build_options *options);

/* Where most activations and gradients of theirs are in use at once: forward or backward of a
 * layer, whose name is the model's. */
typedef struct hpct_memory_peak {
    size_t bytes;
    const char *layer;
    bool backward;
} hpct_memory_peak;

/* Bytes of memory that a build with these options and its steps touch, all of the batch size that
 * takes most. */
typedef struct hpct_memory_plan {
    size_t parameters;  /* and states */
    size_t copies;      /* of parameters, in the precision that operations compute in */
    size_t gradients;   /* those that are stored; what backward applies itself is not */
    size_t optimizer;   /* slots, accumulated gradients */
    size_t activations; /* and their gradients, and what operations note for backward */
    hpct_memory_peak peak;
    size_t scratch; /* of the operation that wants most; dense targets */
    size_t input;   /* hpct_model_input and _labels, when they are asked for */
    size_t freed;   /* what the model keeps until it is moved in, or an earlier build */
} hpct_memory_plan;

/* Plans without taking that memory, and leaves the model as it is. */
hpct_status hpct_model_plan(const hpct_model *model, const hpct_build_options *options,
                            hpct_memory_plan *plan);

/* All of them, besides the input. What the process grows by is less: it gives back what is freed,
 * after it has taken what that is moved to. */
size_t hpct_memory_plan_total(const hpct_memory_plan *plan);
size_t hpct_memory_plan_growth(const hpct_memory_plan *plan);

/* The largest batch that operations can count; at least 1. */
int hpct_model_largest_batch(const hpct_model *model);

/* How often that was done: whoever keeps pointers into the model can tell whether they are its own
 * still. */
int64_t hpct_model_builds(const hpct_model *model);

/* Whoever keeps a model between calls holds it: hpct_model_free then waits until all have let go.
 */
void hpct_model_hold(hpct_model *model);
void hpct_model_let_go(hpct_model *model);

/* Of a model on a device: the calling thread computes on that of replica k of this process from now
 * on (hpct_device, enter); whether there are so many. */
hpct_status hpct_model_enter_replica(const hpct_model *model, int replica);
bool hpct_model_has_devices(const hpct_model *model, int count);

/* Replicas on other devices take parts of the model's input (hpct_model_take_part), itself among
 * them; NULL: none do any more. */
void hpct_model_divide_input(hpct_model *model, const hpct_division *division);

/* Whether the model computes, and has its arenas, in a device's memory: the host reads and writes
 * there by hpct_model_read and hpct_model_write alone. */
bool hpct_model_on_device(const hpct_model *model);
/* Bytes that are left there; SIZE_MAX where the memory is the host's. */
hpct_status hpct_model_memory_left(const hpct_model *model, size_t *bytes);

/* Between the host and `count` floats of an arena. Both wait until all is done that was called. */
hpct_status hpct_model_read(const hpct_model *model, float *host, const float *arena, size_t count);
hpct_status hpct_model_write(const hpct_model *model, float *arena, const float *host,
                             size_t count);
/* What gradients of the arena are multiplied by: the loss' scale in fp16, else 1. Waits. */
hpct_status hpct_model_gradient_scale(const hpct_model *model, float *scale);
/* The state of that scale, [hpct_model_scaling_bytes], which is 0 where there is none. Both wait.
 */
size_t hpct_model_scaling_bytes(const hpct_model *model);
hpct_status hpct_model_read_scaling(const hpct_model *model, void *state);
hpct_status hpct_model_write_scaling(hpct_model *model, const void *state);
/* Where it lies, in the memory of the arenas; NULL where there is none. */
void *hpct_model_scaling(const hpct_model *model);
/* In place of an update that is made elsewhere: gradients[count], of the host, are divided by the
 * scale, which moves. *again: they are not finite, the scale is smaller now, and the step is to be
 * computed again. Without a scale nothing. Waits. */
hpct_status hpct_model_unscale(hpct_model *model, float *gradients, size_t count, bool *again);
bool hpct_are_finite(const float *values, size_t count); /* of the host */
/* The state of `from` becomes that of `to`; either may be built, or not. Waits. */
hpct_status hpct_model_copy_scaling(const hpct_model *from, hpct_model *to);
hpct_status hpct_model_wait(const hpct_model *model); /* for all that was called */
/* Sets all gradients to zero, the tail not. */
hpct_status hpct_model_clear_gradients(hpct_model *model);

/* The arenas, 64-byte aligned; valid until the next build. Whoever writes parameters asks for them
 * again each time: a backend may keep copies, which then are made anew. *count: floats, padding of
 * the backend's layouts included, the tail not. */
float *hpct_model_parameters(hpct_model *model, size_t *count);
float *hpct_model_gradients(hpct_model *model, size_t *count);
/* The same for the states; *count may be 0. Forward with `training` changes them. */
float *hpct_model_states(hpct_model *model, size_t *count);
hpct_status hpct_model_scale_states(hpct_model *model, float factor);     /* every one *= factor */
hpct_status hpct_model_scale_parameters(hpct_model *model, float factor); /* trained ones */
/* A parameter as a matrix, row-major in the arena; a vector has one row. Its own matrix (a Dense's
 * kernel or that transposed, a convolution's by output channel) where the layout leaves it one;
 * elsewhere (oneDNN's blocked kernels) what the memory is in rows of as many floats as it has
 * output channels: a fixed permutation of its numbers, the same on all ranks whose fingerprints
 * agree. */
typedef struct hpct_arena_matrix {
    size_t offset, rows, columns; /* floats */
} hpct_arena_matrix;
/* All trained parameters, in the arena's order; returns how many. `out` may be NULL. */
int hpct_model_matrices(const hpct_model *model, hpct_arena_matrix *out);
uint64_t hpct_model_layout_fingerprint(const hpct_model *model);

/* Where forward reads its samples, [n][one sample, floats], best 64-byte aligned, and loss their
 * labels, [n], from now on: memory of the caller, who may fill another batch meanwhile. Nothing is
 * written to it. A device copies from there, which has ended when something of that step has been
 * waited for: its sums, its outputs, or an arena. */
void hpct_model_set_input(hpct_model *model, const float *input, const int32_t *labels);

/* What the next forward reads stays as it is until the next set_input or hpct_model_input: a device
 * is sent it once. */
void hpct_model_keep_input(hpct_model *model);

/* The model's own memory for a batch, [largest batch size, or input_samples][one sample] and
 * [largest]: made by the first call, and what forward and loss read from now on. NULL when the
 * model is not built or there is no memory. targets: with dense_targets [largest][outputs], else
 * NULL. */
float *hpct_model_input(hpct_model *model);
int32_t *hpct_model_labels(hpct_model *model);
float *hpct_model_targets(hpct_model *model);

/* Zeroed memory of the host, 64-byte aligned, for batches that set_input names: where the model is
 * on a device, it copies from there while others work. NULL when there is none left. return_host
 * allows NULL, and must be called on the same model. */
void *hpct_model_take_host(const hpct_model *model, size_t bytes);
void hpct_model_return_host(const hpct_model *model, void *memory);

/* The model's outputs of the last forward: [n][outputs] floats. On a device it waits for them, and
 * is NULL when that fails. */
const float *hpct_model_output(const hpct_model *model);

/* Threads that the cpu backend computes with, when called from this thread; at least 1. Without a
 * call OpenMP decides (OMP_NUM_THREADS, else the processors that this process may run on). */
void hpct_cpu_set_threads(int threads);
int hpct_cpu_threads(void);

/* What random layers (Dropout) draw from until the next call: a function of the seed, the steps
 * since training began, and where in the global batch this rank's samples begin, so that the
 * numbers of ranks and threads make no difference. Zeros at first. */
void hpct_model_set_position(hpct_model *model, uint64_t seed, int64_t step, int64_t first_sample);

/* Forward over the first n samples of the input; n must be one of the built batch sizes. */
hpct_status hpct_model_forward(hpct_model *model, int n, bool training);

/* Synchronized BatchNormalization in forward for training and in backward adds up over these
 * replicas from now on; NULL or no call: each is alone. Kept by the model, through builds. */
void hpct_model_set_replicas(hpct_model *model, const hpct_replicas *replicas);
/* The part in that of a replica that has no samples in this step, instead of forward for training
 * and of backward, whose gradients are zeros: it tells the watcher of them as backward does, so
 * that all replicas say the same in one order. */
hpct_status hpct_model_forward_absent(hpct_model *model);
hpct_status hpct_model_backward_absent(hpct_model *model);
/* Whether a BatchNormalization takes its statistics from its own replica's samples alone, so that
 * results depend on how a batch is cut. */
bool hpct_model_has_own_statistics(const hpct_model *model);
/* Floats that a step adds up in this way. */
size_t hpct_model_synced_floats(const hpct_model *model);

/* Loss and accuracy of the last forward against the labels (each below hpct_model_count_labels,
 * checked by the caller). With `scale` != 0 also leaves scale * d(sum of losses)/d(output) for
 * backward: a mean over a global batch of G is scale = 1/G on every rank. sums: NULL, or waits for
 * them, which a device better does at a step's end, where hpct_model_sums has them. */
hpct_status hpct_model_loss(hpct_model *model, int n, float scale, hpct_batch_sums *sums);
hpct_status hpct_model_sums(const hpct_model *model, hpct_batch_sums *sums);

/* Of a model on a device (await_input of any), without waiting for it: its results are looked at
 * while it goes on with the next step.
 * put_sums   loss, correct and in_top_k of the last loss as floats, to[3] of an arena;
 * send       `host`[count] to an arena; from hpct_model_take_host, and as it is until some result
 *            of what was called later has been taken;
 * fetch      `bytes` (at most HPCT_FETCH_BYTES) of an arena, or fetch_sums those of the last loss,
 *            come to the host; `which` is 0 or 1, for two that are under way;
 * fetched    waits for the last fetch of that number, and has them;
 * await_input  waits until the host's memory that the last forward read may be written. */
#define HPCT_FETCH_BYTES 64
hpct_status hpct_model_put_sums(const hpct_model *model, float *to);
hpct_status hpct_model_send(const hpct_model *model, float *arena, const float *host, size_t count);
hpct_status hpct_model_fetch(const hpct_model *model, int which, const float *arena, size_t bytes);
hpct_status hpct_model_fetch_sums(const hpct_model *model, int which);
hpct_status hpct_model_fetched(const hpct_model *model, int which, void *to, size_t bytes);
hpct_status hpct_model_await_input(const hpct_model *model);

/* Backward tells it how far the gradients are from now on; NULL or no call: nobody. Kept by the
 * model, through builds. */
void hpct_model_set_watcher(hpct_model *model, const hpct_watcher *watcher);

/* Fills the gradient arena (overwrites; does not accumulate). After a loss with scale != 0. */
hpct_status hpct_model_backward(hpct_model *model, int n);

/* After backward, before the gradients of all ranks are summed. *due: whether update() follows;
 * always, unless gradients of several batches are accumulated: then they are kept until the last
 * of them, when the gradient arena receives their sum. */
hpct_status hpct_model_accumulate(hpct_model *model, bool *due);

/* What hpct_model_compile fixed: batches in one update, 1 without accumulation; the k of the top-k
 * metric, or 0; the optimizer with all defaults filled in. */
int hpct_model_gradient_accumulation(const hpct_model *model);
int hpct_model_top_k(const hpct_model *model);
const hpct_optimizer *hpct_model_optimizer(const hpct_model *model);

/* The optimizer's step over the whole arena, with the learning rate that the schedule has for it.
 * Counts one step; so does an accumulate after which no update is due. */
hpct_status hpct_model_update(hpct_model *model);

/* The same for [begin, end) of the arenas alone, which begins and ends where they may be cut: for
 * who owns that part. */
hpct_status hpct_model_update_part(hpct_model *model, size_t begin, size_t end);

/* All of a step of a model on a device, whose every batch is followed by an update: forward, loss
 * with `scale` (not 0), backward, the watcher's reduce, update. Other replicas take part if the
 * watcher has an `agree`, without which there is none; n may be 0 then. Outputs may not be made
 * (hpct_model_output). */
hpct_status hpct_model_step(hpct_model *model, int n, float scale);

/* Steps are recorded anew: before what was recorded with them goes. */
void hpct_model_drop_recordings(hpct_model *model);

/* The last place at or before `at` where the arenas may be cut so that each part is updated without
 * knowing of the other: anywhere (64-byte aligned), or, for an optimizer that takes norms of each
 * parameter, between two of them. What takes the norm of the whole gradient cannot be cut: 0, or
 * the arenas' end. */
size_t hpct_model_cut(const hpct_model *model, size_t at);

#endif
