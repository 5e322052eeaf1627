#include "cluster/allreduce/params.h"

#include "base/status.h"

#include <string.h>

const char *sl_allreduce_name(sl_allreduce_algorithm algorithm) {
    static const char *const names[] = {
#define SL_X(name, word) word,
        SL_ALLREDUCE_MAP(SL_X)
#undef SL_X
    };
    return algorithm < SL_ALLREDUCE_COUNT ? names[algorithm] : "?";
}

sl_allreduce_algorithm sl_allreduce_of_name(const char *name) {
    sl_allreduce_algorithm algorithm = SL_ALLREDUCE_AUTO;
    while (algorithm < SL_ALLREDUCE_COUNT && strcmp(name, sl_allreduce_name(algorithm)) != 0)
        algorithm++;
    return algorithm;
}

sl_status sl_allreduce_params_check(const sl_allreduce_params *params) {
    if (params->algorithm >= SL_ALLREDUCE_COUNT)
        return sl_fail(SL_EINVAL, "no algorithm of all-reduce has the number %d", (int)params->algorithm);
    if (params->wire > SL_WIRE_BF16 || params->lane > SL_LANE_RING || params->sync > SL_SYNC_PSCW)
        return sl_fail(SL_EINVAL, "an all-reduce has an unknown wire, lane or synchronisation");
    return SL_OK;
}
