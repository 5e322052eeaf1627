/* The ranks of the program, and how its commands end on all of them. */
#ifndef SL_CLUSTER_COMMANDS_RANKS_H
#define SL_CLUSTER_COMMANDS_RANKS_H

#include "cluster/comm/comm.h"

/* Starts the ranks. From now on failures are kept, not printed. Errors: see sl_comm_start. */
sl_status ranks_start(int *argc, char ***argv);
/* Reports that ranks_start failed: rank 0 prints, as long as there is MPI to tell its number. Ends MPI. Returns an exit
 * status. */
int ranks_report_start(sl_status status);
/* All ranks of the job. */
const sl_comm *ranks(void);
/* Rank 0 prints the kept failure. A broken job ends here on all ranks. */
void ranks_print_failure(int status);
void ranks_end(void);

/* Agrees on an exit status, as sl_comm_agree does on a status. After a failure every rank has the message of the first
 * rank that failed. Call it after each step that may fail on one rank alone. Returns the agreed status. */
int ranks_agree(int status);

/* Checks that all ranks have the same bytes. `what` names them in the message. Returns an exit status. */
int ranks_check_same(const char *what, const void *data, size_t size);

/* Reports a failed call of cluster/ in which the ranks have agreed: its message names the rank. Returns an exit
 * status. */
int ranks_report(sl_status status);

/* The kept message of this rank's failure. */
const char *ranks_message(void);

#endif
