#include "cluster/commands/searched.h"

#include "cli/common/report.h"
#include "cli/index/open_save.h"
#include "cluster/commands/ranks.h"
#include "cluster/commands/same_inputs.h"

#include <math.h>
#include <sys/stat.h>

/* Share of the neighbours that may be missed, which the parts that are not asked may hold. */
#define COVER_LOST 0.4

static int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int open_split(const char *path, sl_place place, size_t threads, searched *out) {
    sl_status status = sl_split_searcher_create(ranks(), path, place, threads, &out->split);
    if (status != SL_OK) return ranks_report(status);
    const sl_split_facts *facts = &sl_split_searcher_split(out->split)->facts;
    out->stats.n = (size_t)facts->n;
    out->stats.dim = facts->dim;
    out->stats.metric = (sl_metric)facts->metric;
    out->stats.dtype = (sl_dtype)facts->dtype;
    return EXIT_DONE;
}

int searched_open(const char *path, int place, size_t threads, searched *out) {
    const opening how = {.place = (sl_place)place, .tier = SL_TIER_NONE};
    uint64_t folders = (uint64_t)is_folder(path);
    *out = (searched){.path = path};
    /* All ranks take the same way, also where one does not see the folder. */
    sl_status status = sl_comm_max(ranks(), &folders);
    if (status != SL_OK) return ranks_report(status);
    if (folders) return ranks_agree(open_split(path, (sl_place)place, threads, out));
    return ranks_agree(open_index(path, how, &out->index, &out->stats));
}

void searched_close(searched *searched) {
    sl_index_free(searched->index);
    sl_split_searcher_free(searched->split);
}

static int open_queries(const searched *searched, const char *path, vectors **out, element *type) {
    int status = vectors_open(path, VECTORS_QUERIES, out);
    if (status == EXIT_DONE) status = vectors_check_metric(*out, searched->stats.metric);
    if (status == EXIT_DONE) status = vectors_match_dim(*out, searched->stats.dim, searched->path);
    if (status == EXIT_DONE) status = vectors_match_type(*out, searched->stats.dtype, searched->path, type);
    return status;
}

/* Notes what tells the index's file, or the routing file, from another. Returns an exit status. */
static int note_searched(input_facts *facts, const searched *searched) {
    if (searched->split) {
        inputs_note(facts, "checksum of the routing file", "%08x",
                    sl_split_searcher_split(searched->split)->header_crc);
        return EXIT_DONE;
    }
    sl_split_part file = {.n = 0};
    sl_status status = sl_split_identify(searched->path, &file);
    if (status != SL_OK) return report_status(searched->path, status);
    inputs_note(facts, "checksum of the index", "%08x", file.header_crc);
    inputs_note(facts, "bytes of the index", "%llu", (unsigned long long)file.file_size);
    inputs_note(facts, "vectors of the index", "%zu", searched->stats.n);
    return EXIT_DONE;
}

int searched_open_queries(const searched *searched, const char *path, vectors **out, element *type) {
    input_facts facts = {0};
    int status = ranks_agree(open_queries(searched, path, out, type));
    if (status != EXIT_DONE) return status;
    status = note_searched(&facts, searched);
    if (status == EXIT_DONE) status = inputs_note_vectors(&facts, "queries", *out, *type);
    return inputs_check_same(status, &facts);
}

int searched_read_queries(const searched *searched, vectors *queries, size_t first, size_t count, element type,
                          void *rows) {
    int result = vectors_read(queries, first, count, type, 0, rows);
    if (result != EXIT_DONE || !searched->split) return result;
    const sl_split_queries read = {.rows = rows, .dtype = element_dtype(type), .count = count};
    sl_status status = sl_split_check_queries(sl_split_searcher_split(searched->split), &read);
    return status == SL_OK ? EXIT_DONE : report_rows(queries->path, first, status);
}

int split_choice_check(const split_choice *choice) {
    if (choice->cover > 1) return report_failure("--cover is %g; ask for a share up to 1", choice->cover);
    return choice->batch ? EXIT_DONE : report_failure("--batch is 0; ask for at least 1");
}

sl_split_params split_choice_params(const split_choice *choice, const searched *searched, size_t k, size_t ef,
                                    double recall) {
    const double cover = choice->cover >= 0 ? choice->cover : 1 - COVER_LOST * (1 - (recall > 0 ? recall : 0.95));
    return (sl_split_params){.k = k,
                             .ef = ef,
                             .stop = choice->stop,
                             .batch = choice->batch,
                             .reach = sl_split_reach_of(sl_split_searcher_split(searched->split), cover)};
}
