/* spank/network.h - the variables by which programs are told the network of a step
 * (spank/agree/network.h). Independent of SPANK. */
#ifndef HPCT_SPANK_NETWORK_H
#define HPCT_SPANK_NETWORK_H

#include "base/cluster/variables.h"
#include "spank/agree/network.h"

/* The variables below as "NAME=VALUE NAME=VALUE", in a variable: steps within the step do not take
 * them for the user's. */
#define HPCT_SPANK_NETWORK_SET "HPC_TRAIN_NETWORK_SET"

/* Calls `set` for HPC_TRAIN_INTERFACE, HPC_TRAIN_ADDRESS and the variables of the libraries that
 * `network` changes and the frameworks use. A library's choice by the user or the administrator
 * stays: in the environment, in nccl.conf or openmpi-mca-params.conf. `first`: the task is on the
 * step's first node, where torchrun's rendezvous is. */
hpct_status hpct_spank_network_emit(const hpct_agree_network *network, unsigned frameworks,
                                    bool first, const hpct_cluster_environment *environment,
                                    hpct_cluster_variable_sink set, void *context);

/* Unsets what an outer step has set, unless its value is another now. */
hpct_status hpct_spank_network_forget(const hpct_cluster_environment *environment,
                                      hpct_cluster_variable_sink set, void *context);

#endif
