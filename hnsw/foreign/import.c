/* sl_index_import: an index of another library's file. */
#include "base/params.h"
#include "hnsw/construct/add.h"
#include "hnsw/foreign/foreign.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void sl_import_params_init_sized(sl_import_params *params, size_t struct_size) {
    const sl_import_params mine = {.struct_size = sizeof mine, .metric = SL_METRIC_OF_FILE, .refine = SL_REFINE_AUTO};
    sl_params_defaults(params, struct_size, &mine, sizeof mine);
}

/* ---------------------------------------------------------------------------------------------------------------
 * The file
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status map_fd(sl_foreign *foreign, int fd, const char *path) {
    struct stat info;
    if (fstat(fd, &info) != 0) return sl_fail_errno("cannot read", path);
    if (!S_ISREG(info.st_mode) || info.st_size <= 0) return sl_fail(SL_EFORMAT, "%s: is empty, or no file", path);
    void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return sl_fail_errno("cannot map", path);
    foreign->file = at;
    foreign->size = (size_t)info.st_size;
    return SL_OK;
}

static sl_status map_file(sl_foreign *foreign, const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return sl_fail_errno("cannot open", path);
    const sl_status status = map_fd(foreign, fd, path);
    close(fd);
    return status;
}

static void foreign_free(sl_foreign *foreign) {
    const sl_allocator *allocator = &foreign->allocator;
    if (foreign->file) munmap((void *)(uintptr_t)foreign->file, foreign->size);
    SL_FREE_ARRAY(allocator, foreign->copy, foreign->n * foreign->dim);
    SL_FREE_ARRAY(allocator, foreign->ids, foreign->n);
    SL_FREE_ARRAY(allocator, foreign->deleted, foreign->n);
    SL_FREE_ARRAY(allocator, foreign->levels, foreign->n);
    SL_FREE_ARRAY(allocator, foreign->upper_at, foreign->n);
}

/* Checks all lists: no later step meets a link to a row that the file or the level lacks. */
static sl_status check_links(const sl_foreign *foreign) {
    uint32_t links[2 * SL_MAX_M];
    for (size_t row = 0; row < foreign->n; row++)
        for (uint32_t level = 0; level <= foreign->levels[row]; level++) {
            const size_t count = foreign->links(foreign, row, level, links);
            if (count == SL_LINKS_DAMAGED)
                return sl_fail(SL_ECORRUPT, "says that row %zu has more links on level %u than a list holds", row,
                               level);
            for (size_t i = 0; i < count; i++)
                if (links[i] >= foreign->n || foreign->levels[links[i]] < level)
                    return sl_fail(SL_ECORRUPT, "links row %zu on level %u to row %u, which is not there", row, level,
                                   links[i]);
        }
    return SL_OK;
}

static sl_status read_file(sl_foreign *foreign, const sl_import_params *params, size_t dim) {
    SL_TRY(params->format == SL_FOREIGN_FAISS ? sl_foreign_read_faiss(foreign, dim)
                                              : sl_foreign_read_hnswlib(foreign, dim));
    if (dim && foreign->dim != dim)
        return sl_fail(SL_EDIM, "has vectors of %zu dimensions, and %zu were asked for", foreign->dim, dim);
    return foreign->links && foreign->n ? check_links(foreign) : SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The index
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status choose_metric(const sl_foreign *foreign, int asked, sl_metric *metric) {
    const int of_file = foreign->metric;
    if (asked == SL_METRIC_OF_FILE && of_file == SL_METRIC_OF_FILE)
        return sl_fail(SL_EINVAL, "does not tell its metric; give ip, cosine or l2");
    *metric = (sl_metric)(asked == SL_METRIC_OF_FILE ? of_file : asked);
    if (of_file == SL_METRIC_OF_FILE || asked == of_file || asked == SL_METRIC_OF_FILE) return SL_OK;
    if (asked == SL_METRIC_COSINE && of_file == SL_METRIC_IP) return SL_OK;
    return sl_fail(SL_EINVAL, "has metric %s, and %s was asked for", sl_metric_name((sl_metric)of_file),
                   sl_metric_name(*metric));
}

/* With codes I8 alone, recall can be some thousandths lower than with the file's floats. */
static sl_refine choose_refine(const sl_foreign *foreign, int asked, sl_codes codes) {
    if (asked != SL_REFINE_AUTO) return (sl_refine)asked;
    return foreign->dtype == SL_F32 && codes == SL_CODES_I8 ? SL_REFINE_BF16 : SL_REFINE_NONE;
}

static sl_status create(const sl_foreign *foreign, const sl_import_params *params, const sl_index_params *asked,
                        sl_index **out) {
    sl_index_params mine = *asked;
    SL_TRY(choose_metric(foreign, params->metric, &mine.metric));
    mine.dim = foreign->dim;
    mine.dtype = foreign->dtype;
    mine.refine = choose_refine(foreign, params->refine, mine.codes);
    if (foreign->links) {
        mine.m = foreign->m;
        mine.ef_construction = foreign->ef_construction < mine.m      ? mine.m
                               : foreign->ef_construction > SL_MAX_EF ? SL_MAX_EF
                                                                      : foreign->ef_construction;
    }
    return sl_index_create(&mine, out);
}

static int is_among(const uint32_t *links, size_t count, uint32_t link) {
    for (size_t i = 0; i < count; i++)
        if (links[i] == link) return 1;
    return 0;
}

/* A list without repeated links, and without links to its own row. */
static size_t distinct_links(const void *ctx, size_t row, uint32_t level, uint32_t *out) {
    const sl_foreign *foreign = ctx;
    const size_t count = foreign->links(foreign, row, level, out);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (out[i] != row && !is_among(out, kept, out[i])) out[kept++] = out[i];
    return kept;
}

static sl_status add_all(const sl_foreign *foreign, const sl_import_params *params, sl_index *index) {
    const sl_imported_graph graph = {.vectors = {foreign->vectors, foreign->dtype},
                                     .n = foreign->n,
                                     .stride = foreign->stride,
                                     .levels = foreign->levels,
                                     .entry = foreign->entry,
                                     .links = distinct_links,
                                     .ctx = foreign};
    sl_add_params add;
    sl_add_params_init(&add);
    add.threads = params->threads;
    add.progress = params->progress;
    add.progress_ctx = params->progress_ctx;
    if (!foreign->n) return SL_OK;
    if (!foreign->links)
        return sl_index_add(index, foreign->vectors, foreign->dtype, foreign->n, foreign->stride, foreign->ids, &add);
    add.builder = SL_BUILDER_INSERT;
    SL_TRY(sl_add_imported(index, &graph, foreign->ids, &add));
    return foreign->deleted_count ? sl_index_delete(index, foreign->deleted, foreign->deleted_count) : SL_OK;
}

static sl_status import_file(sl_foreign *foreign, const char *path, const sl_import_params *params,
                             const sl_index_params *asked, sl_index **out) {
    SL_TRY(map_file(foreign, path));
    sl_status status = read_file(foreign, params, asked->dim);
    if (status == SL_OK) status = create(foreign, params, asked, out);
    if (status == SL_OK) status = add_all(foreign, params, *out);
    return status == SL_OK ? SL_OK : sl_fail_in(status, "%s", path);
}

sl_status sl_index_import(const char *path, const sl_import_params *params, sl_index **out) {
    if (!out) return sl_fail(SL_EINVAL, "out is NULL; give the address of a handle");
    *out = NULL;
    if (!path) return sl_fail(SL_EINVAL, "path is NULL");
    sl_import_params mine;
    sl_index_params asked;
    sl_import_params_init(&mine);
    SL_TRY(sl_params_in(&mine, sizeof mine, params, "sl_import_params_init"));
    sl_index_params_init(&asked);
    SL_TRY(sl_params_in(&asked, sizeof asked, mine.index, "sl_index_params_init"));
    if ((unsigned)mine.format > SL_FOREIGN_FAISS) return sl_fail(SL_EINVAL, "format is %d", (int)mine.format);
    if (mine.metric < SL_METRIC_OF_FILE || mine.metric > SL_METRIC_L2)
        return sl_fail(SL_EINVAL, "metric is %d", mine.metric);
    if (mine.refine < SL_REFINE_AUTO || mine.refine > SL_REFINE_I16)
        return sl_fail(SL_EINVAL, "refine is %d", mine.refine);
    sl_foreign foreign = {.allocator = sl_allocator_of(asked.allocator)};
    sl_status status = import_file(&foreign, path, &mine, &asked, out);
    foreign_free(&foreign);
    if (status != SL_OK) {
        sl_index_free(*out);
        *out = NULL;
    }
    return status;
}
