/* Files of hnswlib's save_index: 96 bytes of counts, all elements of layer 0, then each element's lists of the upper
 * layers. There is no magic, no version, no metric and no dimension. An element is a list of links, the vector and the
 * label. The third byte of a list tells whether the element is deleted. */
#include "hnsw/foreign/foreign.h"

enum { HEADER = 96, LABEL = sizeof(uint64_t), WORD = sizeof(uint32_t) };
enum { DELETED_BYTE = 2, DELETED_MARK = 1 };

typedef struct header {
    uint64_t offset_level0, max_elements, count, element, label_offset, data_offset;
    uint32_t max_level, entry;
    uint64_t max_m, max_m0, m;
    uint64_t ef_construction;
} header;

static header read_header(const uint8_t *at, int swaps) {
    uint64_t words[9], ef = sl_foreign_u64(at + 88);
    uint32_t halves[2] = {sl_foreign_u32(at + 48), sl_foreign_u32(at + 52)};
    for (size_t i = 0; i < 9; i++)
        words[i] = sl_foreign_u64(at + (i < 6 ? 8 * i : 8 * i + 8));
    for (size_t i = 0; i < 9 && swaps; i++)
        words[i] = __builtin_bswap64(words[i]);
    return (header){.offset_level0 = words[0],
                    .max_elements = words[1],
                    .count = words[2],
                    .element = words[3],
                    .label_offset = words[4],
                    .data_offset = words[5],
                    .max_level = halves[0],
                    .entry = halves[1],
                    .max_m = words[6],
                    .max_m0 = words[7],
                    .m = words[8],
                    .ef_construction = ef};
}

/* Returns whether the counts fit one another as hnswlib's do. */
static int is_hnswlib(const header *h) {
    return h->offset_level0 == 0 && h->max_m0 < UINT16_MAX + 1 && h->data_offset == WORD * (h->max_m0 + 1) &&
           h->label_offset > h->data_offset && h->element == h->label_offset + LABEL && h->max_m == h->m;
}

static sl_status check_header(const sl_foreign *foreign, const header *h) {
    const header swapped = read_header(foreign->file, 1);
    if (!is_hnswlib(h))
        return sl_fail(SL_EFORMAT, is_hnswlib(&swapped) ? "was written by a big-endian machine; save it on one that is "
                                                          "little-endian"
                                                        : "is no index of hnswlib: its counts do not fit one another");
    if (h->m < 2 || h->m > SL_MAX_M || h->max_m0 != 2 * h->m)
        return sl_fail(SL_EUNSUPPORTED, "has M %llu and %llu links on layer 0; M must be 2 to %u, and layer 0 have 2 M",
                       (unsigned long long)h->m, (unsigned long long)h->max_m0, SL_MAX_M);
    if (h->count > h->max_elements || h->count > (foreign->size - HEADER) / h->element)
        return sl_fail(SL_ECORRUPT, "says %llu vectors and room for %llu, but has %llu bytes",
                       (unsigned long long)h->count, (unsigned long long)h->max_elements,
                       (unsigned long long)foreign->size);
    if (h->count > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "has %llu vectors; an index holds up to %u", (unsigned long long)h->count,
                       SL_MAX_VECTORS);
    return SL_OK;
}

/* The size of a vector tells its dimension, and the given dimension its type. */
static sl_status choose_type(sl_foreign *foreign, size_t bytes, size_t dim) {
    foreign->dtype = dim && bytes == dim ? SL_U8 : SL_F32;
    foreign->dim = foreign->dtype == SL_U8 ? bytes : bytes / sizeof(float);
    if (dim ? foreign->dim == dim && bytes % sl_dtype_size(foreign->dtype) == 0 : bytes % sizeof(float) == 0)
        return SL_OK;
    return sl_fail(SL_EDIM, "has vectors of %zu bytes: %zu dimensions of float32, or %zu of uint8", bytes,
                   bytes / sizeof(float), bytes);
}

static const uint8_t *element_of(const sl_foreign *foreign, size_t row) {
    return foreign->layer0 + row * foreign->element;
}

static size_t read_links(const sl_foreign *foreign, size_t row, uint32_t level, uint32_t *out) {
    const size_t degree = level ? foreign->m : 2 * foreign->m;
    const uint8_t *list = level ? foreign->file + foreign->upper_at[row] + (level - 1) * WORD * (foreign->m + 1)
                                : element_of(foreign, row);
    const size_t count = sl_foreign_u32(list) & UINT16_MAX;
    if (count > degree) return SL_LINKS_DAMAGED;
    memcpy(out, list + WORD, count * WORD);
    return count;
}

static void read_labels(sl_foreign *foreign, size_t label_offset) {
    for (size_t row = 0; row < foreign->n; row++) {
        const uint8_t *element = element_of(foreign, row);
        foreign->ids[row] = sl_foreign_u64(element + label_offset);
        if (element[DELETED_BYTE] & DELETED_MARK) foreign->deleted[foreign->deleted_count++] = foreign->ids[row];
    }
}

/* Finds each element's lists of the upper layers. They end with the file. */
static sl_status find_upper(sl_foreign *foreign, uint32_t max_level) {
    const size_t list = WORD * (foreign->m + 1);
    size_t at = HEADER + foreign->n * foreign->element;
    for (size_t row = 0; row < foreign->n; row++) {
        if (foreign->size - at < WORD) return sl_fail(SL_ECORRUPT, "ends before the upper lists of element %zu", row);
        const size_t bytes = sl_foreign_u32(foreign->file + at);
        at += WORD;
        if (bytes % list || bytes / list > max_level || bytes > foreign->size - at)
            return sl_fail(SL_ECORRUPT, "has %zu bytes of upper lists for element %zu, of %zu each", bytes, row, list);
        foreign->upper_at[row] = at;
        foreign->levels[row] = (uint8_t)(bytes / list);
        at += bytes;
    }
    if (at == foreign->size) return SL_OK;
    return sl_fail(SL_ECORRUPT, "has %zu bytes behind its last list", foreign->size - at);
}

static sl_status alloc_rows(sl_foreign *foreign) {
    const sl_allocator *allocator = &foreign->allocator;
    sl_status status = SL_OK;
    foreign->ids = sl_mem_array(allocator, foreign->n, sizeof *foreign->ids, &status);
    foreign->deleted = sl_mem_array(allocator, foreign->n, sizeof *foreign->deleted, &status);
    foreign->levels = sl_mem_array(allocator, foreign->n, sizeof *foreign->levels, &status);
    foreign->upper_at = sl_mem_array(allocator, foreign->n, sizeof *foreign->upper_at, &status);
    return status;
}

sl_status sl_foreign_read_hnswlib(sl_foreign *foreign, size_t dim) {
    if (foreign->size < HEADER) return sl_fail(SL_EFORMAT, "has %zu bytes; it is no index of hnswlib", foreign->size);
    const header h = read_header(foreign->file, 0);
    SL_TRY(check_header(foreign, &h));
    SL_TRY(choose_type(foreign, h.label_offset - h.data_offset, dim));
    foreign->n = h.count;
    foreign->metric = SL_METRIC_OF_FILE;
    foreign->m = h.m;
    foreign->ef_construction = h.ef_construction;
    foreign->links = read_links;
    foreign->layer0 = foreign->file + HEADER;
    foreign->element = foreign->stride = h.element;
    foreign->vectors = foreign->layer0 + h.data_offset;
    foreign->entry = h.entry;
    if (!foreign->n) return SL_OK;
    if (h.max_level > SL_MAX_LEVEL || h.entry >= foreign->n)
        return sl_fail(SL_ECORRUPT, "says that its entry point is element %u, on level %u", h.entry, h.max_level);
    SL_TRY(alloc_rows(foreign));
    read_labels(foreign, h.label_offset);
    SL_TRY(find_upper(foreign, h.max_level));
    if (foreign->levels[h.entry] == h.max_level) return SL_OK;
    return sl_fail(SL_ECORRUPT, "says that its entry point is on level %u, but that has lists of %u", h.max_level,
                   foreign->levels[h.entry]);
}
