#include "cluster/commands/searched.h"

#include "cli/common/report.h"
#include "cli/index/open_save.h"
#include "cluster/commands/ranks.h"

int searched_open(const char *path, int place, searched *out) {
    *out = (searched){.path = path};
    return ranks_agree(
        open_index(path, (opening){.place = (sl_place)place, .tier = SL_TIER_NONE}, &out->index, &out->stats));
}

void searched_close(searched *searched) {
    sl_index_free(searched->index);
}

int searched_open_queries(const searched *searched, const char *path, vectors **out, element *type) {
    int status = vectors_open(path, VECTORS_QUERIES, out);
    if (status == EXIT_DONE) status = vectors_check_metric(*out, searched->stats.metric);
    if (status == EXIT_DONE) status = vectors_match_dim(*out, searched->stats.dim, searched->path);
    if (status == EXIT_DONE) status = vectors_match_type(*out, searched->stats.dtype, searched->path, type);
    return status;
}
