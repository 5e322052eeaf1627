#include "cli/search/search_settings.h"

void search_settings_take(const sl_tuned *tuned, size_t queries_per_thread, sl_search_params *params) {
    params->ef = tuned->ef;
    params->rerank = tuned->rerank;
    params->stop = tuned->stop;
    params->probes = queries_per_thread >= SL_SCAN_LEAST ? tuned->probes : tuned->probes_one;
    params->groups = tuned->groups;
}
