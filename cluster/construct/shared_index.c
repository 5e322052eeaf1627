#define _GNU_SOURCE
#include "cluster/construct/shared_index.h"

#include "hnsw/construct/link_rows.h"
#include "hnsw/graph/index.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sl_shared_index_can_add(const sl_index *index, sl_builder builder, size_t n) {
    return sl_build_is_from_leaves(index, builder, 0, n);
}

void sl_shared_index_begin(sl_index *index, const sl_rank_share *s, int is_parted) {
    index->graph.ranks = &s->ranks;
    index->graph.parted = is_parted && sl_has(&index->graph, SL_ARRAY_REFINE) ? 1u << SL_ARRAY_REFINE : 0;
}

sl_work_counts sl_shared_index_counts(const sl_index *index) {
    return index->work ? sl_work_counted(index->work) : (sl_work_counts){0, 0};
}

/* ---------------------------------------------------------------------------------------------------------------
 * Work files
 * ------------------------------------------------------------------------------------------------------------- */

static const char ending[] = ".work.";

char *sl_rank_work_path(const char *output, size_t rank) {
    char *path;
    return asprintf(&path, "%s%s%zu", output, ending, rank) < 0 ? NULL : path;
}

/* Returns whether the name is that of a work file of `stem`, and sets *number to its rank. */
static int is_work_file(const char *name, const char *stem, size_t *number) {
    const size_t length = strlen(stem), skipped = length + sizeof ending - 1;
    char written[24];
    if (strncmp(name, stem, length) != 0 || strncmp(name + length, ending, sizeof ending - 1) != 0) return 0;
    *number = strtoull(name + skipped, NULL, 10);
    snprintf(written, sizeof written, "%zu", *number);
    return strcmp(name + skipped, written) == 0;
}

static sl_status add_work_file(sl_index *index, const char *output, size_t number) {
    char *path = sl_rank_work_path(output, number);
    if (!path) return sl_fail(SL_ENOMEM, "no memory for the path of a work file");
    sl_status status = sl_work_add(index->work, path);
    free(path);
    return status;
}

sl_status sl_shared_index_resume(sl_index *index, const char *output, const sl_comm *comm) {
    const char *slash = strrchr(output, '/');
    char *folder = slash ? strndup(output, (size_t)(slash - output) + 1) : strdup(".");
    DIR *listing = folder ? opendir(folder) : NULL;
    sl_status status = listing ? SL_OK : sl_fail_errno("cannot look for work files in", folder ? folder : output);
    for (struct dirent *entry; status == SL_OK && (entry = readdir(listing));) {
        size_t number;
        if (is_work_file(entry->d_name, slash ? slash + 1 : output, &number) && number != comm->rank &&
            number % comm->ranks == comm->rank)
            status = add_work_file(index, output, number);
    }
    if (listing) closedir(listing);
    free(folder);
    return status;
}
