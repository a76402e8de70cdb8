/* agent/rank/squeue.h - one property of a job, as squeue prints it. */
#ifndef HPCT_AGENT_RANK_SQUEUE_H
#define HPCT_AGENT_RANK_SQUEUE_H

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_rank_squeue {
    const char *job;    /* its number */
    const char *format; /* squeue's letter for the property, such as "%N"; times are numbers */
    double seconds;     /* as in base/ask.h */
    bool (*is_cancelled)(void *context);
    void *context;
} hpct_rank_squeue;

/* *out is the caller's. HPCT_ERR_IO if squeue cannot be asked, or does not know the job. */
hpct_status hpct_rank_squeue_ask(char **out, const hpct_rank_squeue *question);

#endif
