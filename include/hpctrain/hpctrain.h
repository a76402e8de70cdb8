/* hpctrain/hpctrain.h - synchronous data-parallel training of CNNs, from C.
 *
 * A program opens a context (joining the other ranks of the Slurm step or MPI run, or alone),
 * builds and compiles a model, opens a data set, fits, evaluates, and finishes the context. It runs
 * unchanged on one rank or many; etc/examples/mnist.c is complete.
 *
 * Conventions of these headers:
 *   Returns     HPCT_OK or an error of status.h. Listed are errors specific to the function; any
 *               may return HPCT_ERR_INTERNAL, collective ones HPCT_ERR_PEER. On error *out is
 *               undefined.
 *   Collective  Called by all ranks, in the same order, with the same arguments; the status is the
 *               same on all ranks. All other functions are local.
 *   Ownership   The caller owns *out and frees it with the function named; that accepts NULL.
 *               Arguments are copied unless said otherwise. Returned pointers belong to the object
 *               they were asked of and are valid until it is freed.
 *   Options     A field that is zero selects the default named in its comment.
 *   Units       seconds, bytes, samples; learning rates per update. Shapes are row-major, sample
 *               first, channels last. */
#ifndef HPCTRAIN_H
#define HPCTRAIN_H

#include <hpctrain/batch.h>
#include <hpctrain/bench.h>
#include <hpctrain/check.h>
#include <hpctrain/checkpoint.h>
#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/export.h>
#include <hpctrain/info.h>
#include <hpctrain/launch.h>
#include <hpctrain/model.h>
#include <hpctrain/plan.h>
#include <hpctrain/predict.h>
#include <hpctrain/report.h>
#include <hpctrain/status.h>
#include <hpctrain/strategy.h>
#include <hpctrain/top.h>
#include <hpctrain/train.h>
#include <hpctrain/trainer.h>

#endif
