/* 'shortlist check' of the files that ranking uses. */
#ifndef CLI_CHECK_RANKING_H
#define CLI_CHECK_RANKING_H

/* Checks a model's or an item table's file and tells what was verified; the flags are --progress and --json. Return an
 * exit status. */
int check_model(const char *path, int progress_wanted, int as_json);
int check_items(const char *path, int progress_wanted, int as_json);

#endif
