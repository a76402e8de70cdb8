/* agent/ps/run.h - a run with parameter servers, as known to all of its processes: roles, division
 * of the model, and schedule. */
#ifndef HPCT_AGENT_PS_RUN_H
#define HPCT_AGENT_PS_RUN_H

#include "agent/data/sampler.h"
#include "agent/ps/message.h"
#include "agent/ps/schedule.h"
#include "agent/rank/context.h"
#include "agent/train/evaluate.h"
#include "agent/train/identity.h"

#include <sys/uio.h>

struct hpct_ps_leader;

typedef struct hpct_ps_run {
    hpct_context *context;
    hpct_model *model;
    hpct_model *host; /* model with arenas in host memory and the servers' layout: `model` itself
                         or, if that is on a device or in another precision, an additional one */
    const hpct_dataset *train;
    hpct_fit_options options;
    int servers, workers;
    bool serves; /* this process is a parameter server */
    int index;   /* of this server or worker */
    char name[96];
    const char **addresses; /* [servers] host:port */
    const char **nodes;     /* [servers], for messages */
    int join_seconds;
    int64_t max_steps;
    int global_batch, evaluation_batch;
    hpct_ps_schedule_options schedule;
    hpct_data_sampler *sampler;    /* over global batches */
    size_t *bounds, *state_bounds; /* [servers + 1] in the arenas */
    bool saved;                    /* known at the end: a checkpoint was saved in this run */
    json_t *identity;              /* agent/train/identity.h */
    char brief[HPCT_TRAIN_IDENTITY_BRIEF];
    uint64_t plan; /* hash of everything that must be equal in all processes */
} hpct_ps_run;

/* Checks the options, counts the steps, builds the model (for a worker's batches; a server's is
 * minimal, and in host memory) and divides it. HPCT_ERR_USAGE, HPCT_ERR_CONFIG. */
hpct_status hpct_ps_run_prepare(hpct_ps_run *run);
void hpct_ps_run_free(hpct_ps_run *run);

/* A server's part in this process: pieces[HPCT_PS_PIECES] of the parameters and states, or of the
 * gradients and `states` (laid out like the states' arena). Returns the bytes of both. */
size_t hpct_ps_run_parameters(const hpct_ps_run *run, int server, struct iovec *pieces);
size_t hpct_ps_run_gradients(const hpct_ps_run *run, int server, float *states,
                             struct iovec *pieces);

/* A server's part of arena 0, its parameters and states, or 1, 2, ..., its optimizer slots: for
 * checkpoints, on servers. Returns the bytes, which may be 0; -1: there are not so many. */
int64_t hpct_ps_run_arena(const hpct_ps_run *run, int server, int arena, struct iovec *pieces);

/* On a worker with an additional host model: copies what was pulled from run->host to the model; or
 * its gradients and states to run->host. No effect otherwise. */
hpct_status hpct_ps_run_send(const hpct_ps_run *run);
hpct_status hpct_ps_run_fetch(const hpct_ps_run *run);

/* A worker: executes the items that server 0 assigns until the run is over. *signal: the one that
 * ended it, or 0. HPCT_ERR_PEER naming a lost server. */
hpct_status hpct_ps_work(hpct_ps_run *run, int *signal);

/* A parameter server, in one thread: serves until the run is over; server 0 leads the run
 * (`leader`, else NULL), and has all parameters in its model afterwards. *signal: the one that
 * ended it, or 0. HPCT_ERR_PEER if another server or all workers are lost. */
hpct_status hpct_ps_serve(hpct_ps_run *run, struct hpct_ps_leader *leader, int *signal);

/* Writes "parameter server 1 on node0 (10.0.0.1:22000)" into text, and returns it. */
const char *hpct_ps_run_server(const hpct_ps_run *run, int server, char text[160]);

/* HPCT_ERR_PEER: that server was lost. */
hpct_status hpct_ps_run_lost(const hpct_ps_run *run, int server, const char *how);

/* Makes *message a LOST with the last error of this process, without the process's own name. */
void hpct_ps_run_reason(const hpct_ps_run *run, hpct_ps_message *message);

#endif
