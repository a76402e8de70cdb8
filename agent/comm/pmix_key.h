/* agent/comm/pmix_key.h - key of a step started without the plugin but with PMIx (srun --mpi=pmix):
 * rank 0 generates it, and Slurm's PMIx servers distribute it. Only user of PMIx, loaded on
 * demand. */
#ifndef HPCT_AGENT_COMM_PMIX_KEY_H
#define HPCT_AGENT_COMM_PMIX_KEY_H

#include "base/auth/key.h"

/* *out is freed with hpct_auth_key_free; NULL without PMIx, or if PMIx counts ranks differently.
 * Waits for rank 0 with a timeout: HPCT_ERR_PEER. */
hpct_status hpct_comm_pmix_key_share(hpct_auth_key **out, int rank, int seconds);

/* Finalizes PMIx: before MPI starts or after it has ended (hpct_comm_mpi_shares_pmix). */
void hpct_comm_pmix_key_end(void);

#endif
