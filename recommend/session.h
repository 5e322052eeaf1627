/* The checks that sessions and batches make of a request. */
#ifndef SL_RECOMMEND_SESSION_H
#define SL_RECOMMEND_SESSION_H

#include <shortlist_rank.h>

/* Reads parameters and fills in defaults; ef is set then. Errors: SL_EINVAL. */
sl_status sl_recommend_params_read(const sl_recommend_params *given, sl_recommend_params *out);
/* Checks the struct of a request. Errors: SL_EINVAL. */
sl_status sl_request_check(const sl_request *request);

#endif
