/* hpctrain/hpctrain.h - synchronous data-parallel training of CNNs, from C.
 *
 * The order of a program: open a context (which joins the other ranks of the Slurm step, MPI run,
 * or stands alone), build and compile a model, open a data set, fit, evaluate, close. The same
 * program runs on one rank or on many; see etc/examples/mnist.c for a whole one. */
#ifndef HPCTRAIN_H
#define HPCTRAIN_H

#include <hpctrain/batch.h>
#include <hpctrain/bench.h>
#include <hpctrain/context.h>
#include <hpctrain/dataset.h>
#include <hpctrain/info.h>
#include <hpctrain/model.h>
#include <hpctrain/plan.h>
#include <hpctrain/status.h>
#include <hpctrain/strategy.h>
#include <hpctrain/train.h>
#include <hpctrain/trainer.h>

#endif
