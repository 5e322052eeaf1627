/* The commands of shortlist-mpi. */
#ifndef SL_CLUSTER_COMMANDS_COMMANDS_H
#define SL_CLUSTER_COMMANDS_COMMANDS_H

#include "cli/common/options.h"

extern const command command_ranks;
extern const command command_allreduce;
extern const command command_cluster_tune;
extern const command command_cluster_build;
extern const command command_cluster_train;
extern const command command_cluster_eval;
extern const command command_cluster_search;
extern const command command_cluster_split;
extern const command command_cluster_truth;

#endif
