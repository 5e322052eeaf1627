/* 'shortlist check' of the files that ranking uses. */
#ifndef CLI_INSPECT_CHECK_RANKING_H
#define CLI_INSPECT_CHECK_RANKING_H

#include <shortlist.h>

/* Checks a model's or an item table's file and tells what was verified. The flags are --progress and --json.
 * Returns an exit status. */
int check_ranking(const char *path, sl_file_kind kind, int progress_wanted, int as_json);

#endif
