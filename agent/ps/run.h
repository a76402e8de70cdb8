/* agent/ps/run.h - a run with parameter servers, as all of its processes know it: who takes part,
 * who owns what, and what is to be done. */
#ifndef HPCT_PS_RUN_H
#define HPCT_PS_RUN_H

#include "agent/context.h"
#include "agent/data/sampler.h"
#include "agent/evaluate.h"
#include "agent/ps/message.h"
#include "agent/ps/schedule.h"

#include <sys/uio.h>

typedef struct hpct_ps_run {
    hpct_context *context;
    hpct_model *model;
    hpct_model *host; /* whose arenas are the host's, and laid out as those of the servers: the same
                         one, or, on a device or in another precision, one beside it */
    const hpct_dataset *train;
    hpct_fit_options options;
    int servers, workers;
    bool serves; /* this process is a parameter server */
    int index;   /* among them, or among the workers */
    char name[96];
    const char **addresses; /* [servers] host:port */
    const char **nodes;     /* [servers], for messages */
    int join_seconds;
    int64_t max_steps;
    int global_batch, evaluation_batch;
    hpct_ps_schedule_options schedule;
    hpct_sampler *sampler;         /* of global batches */
    size_t *bounds, *state_bounds; /* [servers + 1] in the arenas */
    uint64_t plan;                 /* a hash of all that must be alike */
} hpct_ps_run;

/* Checks the options, counts the steps, builds the model (for the batches that a worker steps with;
 * a server's is as small as can be, and in the host's memory) and divides it. HPCT_ERR_USAGE,
 * HPCT_ERR_CONFIG. */
hpct_status hpct_ps_run_prepare(hpct_ps_run *run);
void hpct_ps_run_free(hpct_ps_run *run);

/* Where a server's part lies in this process: pieces[HPCT_PS_PIECES] of the parameters and states,
 * or of the gradients and `states` (laid out as the states' arena). Returns the bytes of both. */
size_t hpct_ps_run_parameters(const hpct_ps_run *run, int server, struct iovec *pieces);
size_t hpct_ps_run_gradients(const hpct_ps_run *run, int server, float *states,
                             struct iovec *pieces);

/* Of a worker that has one beside its model, else nothing: what came from the servers goes there;
 * its gradients and states come to run->host. */
hpct_status hpct_ps_run_send(const hpct_ps_run *run);
hpct_status hpct_ps_run_fetch(const hpct_ps_run *run);

/* "parameter server 1 on node0 (10.0.0.1:22000)"; into text, which it returns. */
const char *hpct_ps_run_server(const hpct_ps_run *run, int server, char text[160]);

/* *message becomes the LOST that passes on the last error of this process, without its own name. */
void hpct_ps_run_reason(const hpct_ps_run *run, hpct_ps_message *message);

#endif
