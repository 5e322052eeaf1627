/* Tuned settings as the parameters of a search. */
#ifndef CLI_SEARCH_SEARCH_SETTINGS_H
#define CLI_SEARCH_SEARCH_SETTINGS_H

#include <shortlist.h>

/* Takes over the settings. Batches of SL_SCAN_LEAST queries per thread have their own. */
void search_settings_take(const sl_tuned *tuned, size_t queries_per_thread, sl_search_params *params);

#endif
