/* Files of Faiss's write_index: four letters that name the class, a header, and what the class holds. An index may hold
 * another one: IndexIDMap the index of its vectors, IndexHNSW the storage of its vectors. Arrays are a count of 64 bits
 * and their elements, at any address. */
#include "distance/codec/convert.h"
#include "hnsw/foreign/foreign.h"

#define LETTERS(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum { METRIC_IP = 0, METRIC_L2 = 1 };
/* Of ScalarQuantizer::QuantizerType. */
enum { BITS8, BITS4, BITS8_UNIFORM, BITS4_UNIFORM, FP16, DIRECT, BITS6, BF16, DIRECT_SIGNED };

/* The rest of a file that is being read. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

/* Takes `size` bytes. */
static sl_status take(cursor *c, size_t size, const uint8_t **out) {
    *out = c->at;
    if (size > c->left) return sl_fail(SL_ECORRUPT, "ends too early: %zu bytes of %zu are left", c->left, size);
    c->at += size;
    c->left -= size;
    return SL_OK;
}

static sl_status take_u32(cursor *c, uint32_t *out) {
    const uint8_t *at;
    *out = 0;
    SL_TRY(take(c, sizeof *out, &at));
    *out = sl_foreign_u32(at);
    return SL_OK;
}

static sl_status take_u64(cursor *c, uint64_t *out) {
    const uint8_t *at;
    *out = 0;
    SL_TRY(take(c, sizeof *out, &at));
    *out = sl_foreign_u64(at);
    return SL_OK;
}

/* Takes an array of elements of `width` bytes. */
static sl_status take_array(cursor *c, size_t width, const uint8_t **out, size_t *count) {
    uint64_t said;
    *out = c->at;
    *count = 0;
    SL_TRY(take_u64(c, &said));
    if (said > c->left / width)
        return sl_fail(SL_ECORRUPT, "says an array of %llu elements of %zu bytes, but %zu bytes are left",
                       (unsigned long long)said, width, c->left);
    *count = (size_t)said;
    return take(c, *count * width, out);
}

typedef struct header {
    uint32_t dim;
    uint64_t n;
    int metric;
} header;

static sl_status take_header(cursor *c, header *out) {
    const uint8_t *skipped;
    uint32_t metric;
    *out = (header){0};
    SL_TRY(take_u32(c, &out->dim));
    SL_TRY(take_u64(c, &out->n));
    SL_TRY(take(c, 2 * sizeof(uint64_t) + 1, &skipped));
    SL_TRY(take_u32(c, &metric));
    if (out->dim == 0 || out->dim > SL_MAX_DIM)
        return sl_fail(SL_ELIMIT, "has vectors of %u dimensions; an index takes 1 to %u", out->dim, SL_MAX_DIM);
    if (out->n > SL_MAX_VECTORS)
        return sl_fail(SL_ELIMIT, "says %llu vectors; an index holds up to %u", (unsigned long long)out->n,
                       SL_MAX_VECTORS);
    if (metric != METRIC_IP && metric != METRIC_L2)
        return sl_fail(SL_EUNSUPPORTED, "has Faiss's metric %u; this reads inner product (0) and L2 (1)", metric);
    out->metric = metric == METRIC_IP ? SL_METRIC_IP : SL_METRIC_L2;
    return SL_OK;
}

/* The header of an index that holds another one, or of the one that is held. All say the same. */
static sl_status adopt_header(sl_foreign *foreign, const header *header) {
    const int is_first = !foreign->dim;
    if (!is_first && (foreign->dim != header->dim || foreign->n != header->n))
        return sl_fail(SL_ECORRUPT, "has %zu vectors of %zu dimensions, and within it %llu of %u", foreign->n,
                       foreign->dim, (unsigned long long)header->n, header->dim);
    if (!is_first) return SL_OK;
    foreign->dim = header->dim;
    foreign->n = (size_t)header->n;
    foreign->metric = header->metric;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Vectors
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status alloc_copy(sl_foreign *foreign) {
    void *block;
    SL_TRY(sl_mem_alloc_raw(&foreign->allocator, foreign->n * foreign->dim * sizeof(float), &block));
    foreign->copy = block;
    foreign->vectors = block;
    foreign->stride = foreign->dim * sizeof(float);
    return SL_OK;
}

/* IndexFlat: the floats. They rarely lie at a multiple of four. */
static sl_status read_flat(sl_foreign *foreign, cursor *c) {
    const uint8_t *floats;
    size_t count;
    SL_TRY(take_array(c, sizeof(float), &floats, &count));
    if (count != foreign->n * foreign->dim)
        return sl_fail(SL_ECORRUPT, "has %zu floats for %zu vectors of %zu", count, foreign->n, foreign->dim);
    SL_TRY(alloc_copy(foreign));
    memcpy(foreign->copy, floats, count * sizeof(float));
    return SL_OK;
}

/* A scalar quantiser: codes of `bits` stand for the middles of equal parts of a range. */
typedef struct quantiser {
    uint32_t type;
    unsigned bits;
    size_t bytes;          /* of a vector's codes */
    const uint8_t *ranges; /* floats: the least, then the width; uniform: one of each, else one per dimension */
} quantiser;

static int is_uniform(const quantiser *q) {
    return q->type == BITS8_UNIFORM || q->type == BITS4_UNIFORM;
}

static unsigned bits_of(uint32_t type) {
    static const unsigned bits[] = {[BITS8] = 8,  [BITS4] = 4, [BITS8_UNIFORM] = 8, [BITS4_UNIFORM] = 4, [FP16] = 16,
                                    [DIRECT] = 8, [BITS6] = 6, [BF16] = 16,         [DIRECT_SIGNED] = 8};
    return type < sizeof bits / sizeof *bits ? bits[type] : 0;
}

static size_t ranges_of(const quantiser *q, size_t dim) {
    if (q->type == FP16 || q->type == BF16 || q->type == DIRECT || q->type == DIRECT_SIGNED) return 0;
    return is_uniform(q) ? 2 : 2 * dim;
}

static sl_status take_quantiser(cursor *c, size_t dim, quantiser *q) {
    const uint8_t *skipped;
    uint32_t own_dim;
    uint64_t bytes;
    size_t count;
    *q = (quantiser){0};
    SL_TRY(take_u32(c, &q->type));
    q->bits = bits_of(q->type);
    if (!q->bits)
        return sl_fail(SL_EUNSUPPORTED, "has a scalar quantiser of type %u, which this does not read", q->type);
    SL_TRY(take(c, sizeof(uint32_t) + sizeof(float), &skipped));
    SL_TRY(take(c, sizeof(uint64_t), &skipped));
    own_dim = sl_foreign_u32(skipped);
    SL_TRY(take_u64(c, &bytes));
    SL_TRY(take_array(c, sizeof(float), &q->ranges, &count));
    q->bytes = (dim * q->bits + 7) / 8;
    if (own_dim == dim && bytes == q->bytes && count >= ranges_of(q, dim)) return SL_OK;
    return sl_fail(SL_ECORRUPT, "has a scalar quantiser of %u dimensions, %llu bytes and %zu bounds", own_dim,
                   (unsigned long long)bytes, count);
}

/* The code of a dimension, below 2 to the `bits`; low bits come first. */
static unsigned code_at(const uint8_t *codes, size_t d, unsigned bits) {
    const size_t at = d * bits, byte = at / 8;
    const unsigned shift = at % 8, low = codes[byte];
    const unsigned both = shift + bits > 8 ? low | (unsigned)codes[byte + 1] << 8 : low;
    return both >> shift & ((1u << bits) - 1);
}

static float range_at(const quantiser *q, size_t dim, size_t d, int is_width) {
    const size_t place = is_uniform(q) ? (size_t)is_width : d + (is_width ? dim : 0);
    float value;
    memcpy(&value, q->ranges + place * sizeof value, sizeof value);
    return value;
}

static float decode_element(const quantiser *q, const uint8_t *codes, size_t dim, size_t d) {
    if (q->bits == 16) {
        uint16_t half;
        float value;
        memcpy(&half, codes + d * sizeof half, sizeof half);
        sl_to_float(q->type == FP16 ? SL_F16 : SL_BF16, &half, &value, 1);
        return value;
    }
    if (q->type == DIRECT) return (float)codes[d];
    if (q->type == DIRECT_SIGNED) return (float)codes[d] - 128.0F;
    const float most = (float)((1u << q->bits) - 1), part = ((float)code_at(codes, d, q->bits) + 0.5F) / most;
    return range_at(q, dim, d, 0) + part * range_at(q, dim, d, 1);
}

/* IndexScalarQuantizer: the quantiser, and the codes. */
static sl_status read_coded(sl_foreign *foreign, cursor *c) {
    const size_t dim = foreign->dim;
    const uint8_t *codes;
    quantiser q;
    size_t count;
    SL_TRY(take_quantiser(c, dim, &q));
    SL_TRY(take_array(c, 1, &codes, &count));
    if (count != foreign->n * q.bytes)
        return sl_fail(SL_ECORRUPT, "has %zu bytes of codes for %zu vectors of %zu", count, foreign->n, q.bytes);
    SL_TRY(alloc_copy(foreign));
    for (size_t row = 0; row < foreign->n; row++)
        for (size_t d = 0; d < dim; d++)
            foreign->copy[row * dim + d] = decode_element(&q, codes + row * q.bytes, dim, d);
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * The graph
 * ------------------------------------------------------------------------------------------------------------- */

/* Lists of a row lie one behind another: 2 m words of layer 0, m words for each further level, -1 in what is free. */
static size_t read_links(const sl_foreign *foreign, size_t row, uint32_t level, uint32_t *out) {
    const size_t degree = level ? foreign->m : 2 * foreign->m, before = level ? (level + 1) * foreign->m : 0;
    const uint64_t first = sl_foreign_u64(foreign->neighbours_at + row * sizeof(uint64_t)) + before;
    size_t count = 0;
    memcpy(out, foreign->neighbours + first * sizeof *out, degree * sizeof *out);
    while (count < degree && out[count] != SL_NONE)
        count++;
    return count;
}

/* Takes the numbers of links per level. The first is 0, and then each level adds its own. */
static sl_status take_degrees(sl_foreign *foreign, cursor *c, size_t *levels) {
    const uint8_t *sums;
    size_t count;
    *levels = 0;
    SL_TRY(take_array(c, sizeof(uint32_t), &sums, &count));
    const uint32_t layer0 = count > 1 ? sl_foreign_u32(sums + sizeof(uint32_t)) : 0;
    foreign->m = layer0 / 2;
    if (layer0 % 2 || foreign->m < 2 || foreign->m > SL_MAX_M)
        return sl_fail(SL_EUNSUPPORTED, "has %u links on layer 0; an index takes an even number, 4 to %u", layer0,
                       2 * SL_MAX_M);
    for (size_t i = 0; i < count; i++)
        if (sl_foreign_u32(sums + i * sizeof(uint32_t)) != (i ? (i + 1) * foreign->m : 0))
            return sl_fail(SL_EUNSUPPORTED, "has other numbers of links than M on the upper layers, and 2 M below");
    *levels = count - 1;
    return SL_OK;
}

/* Takes the rows' levels, which count from 1, and where their lists begin. */
static sl_status take_levels(sl_foreign *foreign, cursor *c, size_t most) {
    const uint8_t *levels;
    size_t count, places, links;
    sl_status status = SL_OK;
    SL_TRY(take_array(c, sizeof(uint32_t), &levels, &count));
    SL_TRY(take_array(c, sizeof(uint64_t), &foreign->neighbours_at, &places));
    SL_TRY(take_array(c, sizeof(uint32_t), &foreign->neighbours, &links));
    if (count != foreign->n || places != foreign->n + 1)
        return sl_fail(SL_ECORRUPT, "has %zu levels and %zu offsets for %zu vectors", count, places, foreign->n);
    foreign->levels = sl_mem_array(&foreign->allocator, foreign->n, sizeof *foreign->levels, &status);
    SL_TRY(status);
    for (size_t row = 0; row < foreign->n; row++) {
        const uint32_t own = sl_foreign_u32(levels + row * sizeof own);
        const uint64_t at = sl_foreign_u64(foreign->neighbours_at + row * sizeof at);
        if (own == 0 || own > most || own > SL_MAX_LEVEL + 1 || at > links || (own + 1) * foreign->m > links - at)
            return sl_fail(SL_ECORRUPT, "says that row %zu is on %u levels, with lists from link %llu on", row, own,
                           (unsigned long long)at);
        foreign->levels[row] = (uint8_t)(own - 1);
    }
    return SL_OK;
}

static sl_status read_graph(sl_foreign *foreign, cursor *c) {
    const uint8_t *skipped;
    size_t count, levels;
    uint32_t top, ef;
    SL_TRY(take_array(c, sizeof(double), &skipped, &count));
    SL_TRY(take_degrees(foreign, c, &levels));
    SL_TRY(take_levels(foreign, c, levels));
    SL_TRY(take_u32(c, &foreign->entry));
    SL_TRY(take_u32(c, &top));
    SL_TRY(take_u32(c, &ef));
    SL_TRY(take(c, 2 * sizeof(uint32_t), &skipped));
    foreign->ef_construction = ef;
    foreign->links = read_links;
    if (!foreign->n || (foreign->entry < foreign->n && foreign->levels[foreign->entry] == top)) return SL_OK;
    return sl_fail(SL_ECORRUPT, "says that its entry point is row %u, on level %u", foreign->entry, top);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Classes
 * ------------------------------------------------------------------------------------------------------------- */

/* The letters of a damaged file may be any bytes. */
static sl_status fail_class(uint32_t class) {
    char letters[5] = {0};
    for (size_t i = 0; i < 4; i++) {
        const unsigned char letter = (unsigned char)(class >> 8 * i);
        letters[i] = letter > ' ' && letter < 0x7f ? (char)letter : '?';
    }
    return sl_fail(SL_EUNSUPPORTED,
                   "holds a Faiss index of class '%s'; this reads IndexHNSWFlat, IndexHNSWSQ, IndexFlat, "
                   "IndexScalarQuantizer, and IndexIDMap over them",
                   letters);
}

/* The classes that hold the vectors themselves. */
static sl_status read_storage(sl_foreign *foreign, cursor *c, uint32_t class) {
    header header;
    const int is_coded = class == LETTERS('I', 'x', 'S', 'Q');
    if (!is_coded && class != LETTERS('I', 'x', 'F', 'I') && class != LETTERS('I', 'x', 'F', '2') &&
        class != LETTERS('I', 'x', 'F', 'l'))
        return fail_class(class);
    SL_TRY(take_header(c, &header));
    SL_TRY(adopt_header(foreign, &header));
    return is_coded ? read_coded(foreign, c) : read_flat(foreign, c);
}

/* IndexHNSW and its forms, or a storage alone. */
static sl_status read_vectors(sl_foreign *foreign, cursor *c) {
    header header;
    uint32_t class;
    SL_TRY(take_u32(c, &class));
    if (class != LETTERS('I', 'H', 'N', 'f') && class != LETTERS('I', 'H', 'N', 's') &&
        class != LETTERS('I', 'H', '0', '0'))
        return read_storage(foreign, c, class);
    SL_TRY(take_header(c, &header));
    SL_TRY(adopt_header(foreign, &header));
    SL_TRY(read_graph(foreign, c));
    SL_TRY(take_u32(c, &class));
    if (class == LETTERS('n', 'u', 'l', 'l'))
        return sl_fail(SL_EUNSUPPORTED, "was written without its vectors; write it without IO_FLAG_SKIP_STORAGE");
    return read_storage(foreign, c, class);
}

static sl_status read_ids(sl_foreign *foreign, cursor *c) {
    const uint8_t *ids;
    size_t count;
    sl_status status = SL_OK;
    SL_TRY(take_array(c, sizeof(uint64_t), &ids, &count));
    if (count != foreign->n) return sl_fail(SL_ECORRUPT, "has %zu ids for %zu vectors", count, foreign->n);
    foreign->ids = sl_mem_array(&foreign->allocator, foreign->n, sizeof *foreign->ids, &status);
    if (status == SL_OK) memcpy(foreign->ids, ids, count * sizeof *foreign->ids);
    return status;
}

static int is_class(uint32_t class, char second) {
    return (class & 0xff) == 'I' && (class >> 8 & 0xff) == (unsigned char)second;
}

static sl_status read_first(sl_foreign *foreign, cursor *c) {
    header header;
    cursor ahead = *c;
    uint32_t class;
    SL_TRY(take_u32(&ahead, &class));
    if (!is_class(class, 'x') && !is_class(class, 'H') && !is_class(class, 'w') && !is_class(class, 'N'))
        return sl_fail(SL_EFORMAT, "is no index of Faiss: its first four letters name no class");
    if (class != LETTERS('I', 'x', 'M', 'p') && class != LETTERS('I', 'x', 'M', '2')) return read_vectors(foreign, c);
    *c = ahead;
    SL_TRY(take_header(c, &header));
    SL_TRY(adopt_header(foreign, &header));
    SL_TRY(read_vectors(foreign, c));
    return read_ids(foreign, c);
}

sl_status sl_foreign_read_faiss(sl_foreign *foreign, size_t dim) {
    cursor c = {foreign->file, foreign->size};
    (void)dim;
    foreign->dtype = SL_F32;
    SL_TRY(read_first(foreign, &c));
    if (c.left) return sl_fail(SL_ECORRUPT, "has %zu bytes behind its last array", c.left);
    return SL_OK;
}
