/* 'shortlist check' for models and item tables. */
#ifndef CLI_INSPECT_CHECK_RANKING_H
#define CLI_INSPECT_CHECK_RANKING_H

#include <shortlist.h>

/* Checks the file of a model or an item table, and prints what it verified. The flags are --progress and --json.
 * Returns an exit status. */
int check_ranking(const char *path, sl_file_kind kind, int progress_wanted, int as_json);

#endif
