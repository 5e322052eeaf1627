/* The calls of the ranks that build an index together (base/ranks.h). */
#ifndef SL_CLUSTER_CONSTRUCT_SHARE_H
#define SL_CLUSTER_CONSTRUCT_SHARE_H

#include "cluster/comm/comm.h"

/* The ranks' calls. The struct must stay where it is, since ranks.ctx points to it. */
typedef struct sl_rank_share {
    sl_ranks ranks;
    const sl_comm *comm;
    /* Returns whether this rank's user wants the work to end; NULL: never. All ranks then end it together. */
    int (*stops)(void);
    /* The first failure that the ranks agreed on. Each later call returns it at once, and no data move. A rank may then
     * leave the work where it fails, without the calls that the others still make: its sl_rank_share_end meets the next
     * of these. So each call of the work must agree before data move (base/share.h). */
    sl_status failed;
    char message[SL_ERROR_SIZE];
} sl_rank_share;

void sl_rank_share_init(sl_rank_share *s, const sl_comm *comm, int (*stops)(void));
/* Agrees on the end of the work. Every rank calls it once, after the last call of the work. Returns the failure of the
 * first rank that failed, with a message that names it. */
sl_status sl_rank_share_end(sl_rank_share *s, sl_status mine);

#endif
