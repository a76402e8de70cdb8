/* agent/comm/pmix_key.h - a key for a step that Slurm started without the plugin, but with PMIx
 * (srun --mpi=pmix): rank 0 draws it, and the PMIx servers, which are Slurm's own daemons, hand it
 * on. Only here is PMIx called; its library is loaded when it is asked for. */
#ifndef HPCT_COMM_PMIX_KEY_H
#define HPCT_COMM_PMIX_KEY_H

#include "base/auth/key.h"

/* *out is to be freed with hpct_key_free; NULL where this process has no PMIx, or PMIx counts ranks
 * otherwise. Waits for rank 0, for so many seconds: HPCT_ERR_PEER then. */
hpct_status hpct_pmix_key_share(hpct_key **out, int rank, int seconds);

/* Leaves PMIx: before MPI begins, or after it has ended (hpct_comm_mpi_shares_pmix). */
void hpct_pmix_key_end(void);

#endif
