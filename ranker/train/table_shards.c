#include "ranker/train/table_shards.h"

#include <string.h>

/* Bytes that the ranks gather at a time of a table's rows. */
#define GATHER_BYTES ((size_t)16 << 20)

static size_t owner_of(const sl_trainer *trainer, uint32_t row) {
    return row % trainer->on.ranks->ranks;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rows of sharded tables, sorted by their owners
 * ------------------------------------------------------------------------------------------------------------- */

/* What ranks send each other: for each sharded table the number of its rows, then their numbers, then the floats of
 * each row, if there are any. */
typedef struct outgoing {
    sl_trainer *trainer;
    int has_floats;
    sl_parts parts;
    size_t *at;     /* of each rank: bytes written to its part */
    size_t *counts; /* of each rank: rows of a table */
} outgoing;

static size_t floats_of(const outgoing *o, size_t table) {
    return o->has_floats ? o->trainer->features->tables[table].dim : 0;
}

/* Counts the touched rows of a table by owner. */
static void count_rows(outgoing *o, size_t table) {
    const sl_row_sums *sums = &o->trainer->sparse->gradients.tables[table];
    memset(o->counts, 0, o->trainer->on.ranks->ranks * sizeof *o->counts);
    for (size_t i = 0; i < sums->count; i++)
        o->counts[owner_of(o->trainer, sums->rows[i])]++;
}

static sl_status outgoing_alloc(outgoing *o) {
    const sl_trainer *trainer = o->trainer;
    const size_t ranks = trainer->on.ranks->ranks;
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&trainer->allocator, ranks, sizeof *sizes, &status);
    o->at = sl_mem_array(&trainer->allocator, ranks, sizeof *o->at, &status);
    o->counts = sl_mem_array(&trainer->allocator, ranks, sizeof *o->counts, &status);
    for (size_t t = 0; t < trainer->features->table_count && status == SL_OK; t++) {
        if (!trainer->sharded[t]) continue;
        count_rows(o, t);
        for (size_t r = 0; r < ranks; r++)
            sizes[r] += sizeof(uint64_t) + o->counts[r] * (sizeof(uint32_t) + floats_of(o, t) * sizeof(float));
    }
    if (status == SL_OK) status = sl_parts_create(&trainer->allocator, ranks, sizes, &o->parts);
    SL_FREE_ARRAY(&trainer->allocator, sizes, ranks);
    return status;
}

static void append(outgoing *o, size_t rank, const void *data, size_t size) {
    memcpy(o->parts.data + o->parts.at[rank] + o->at[rank], data, size);
    o->at[rank] += size;
}

/* Writes the touched rows of a table, each to the part of its owner. */
static void append_table(outgoing *o, size_t table) {
    const sl_trainer *trainer = o->trainer;
    const sl_row_sums *sums = &trainer->sparse->gradients.tables[table];
    const size_t floats = floats_of(o, table);
    count_rows(o, table);
    for (size_t r = 0; r < trainer->on.ranks->ranks; r++) {
        const uint64_t count = o->counts[r];
        append(o, r, &count, sizeof count);
    }
    for (size_t i = 0; i < sums->count; i++)
        append(o, owner_of(trainer, sums->rows[i]), &sums->rows[i], sizeof sums->rows[i]);
    for (size_t i = 0; i < sums->count && floats; i++)
        append(o, owner_of(trainer, sums->rows[i]), sums->sums + i * sums->width, floats * sizeof(float));
}

/* Sends the touched rows of all sharded tables to their owners. The caller frees *from, also on failure. */
static sl_status send_rows(sl_trainer *trainer, int has_floats, sl_parts *from) {
    const sl_ranks *ranks = trainer->on.ranks;
    outgoing o = {.trainer = trainer, .has_floats = has_floats};
    *from = (sl_parts){.data = NULL};
    sl_status status = outgoing_alloc(&o);
    for (size_t t = 0; t < trainer->features->table_count && status == SL_OK; t++)
        if (trainer->sharded[t]) append_table(&o, t);
    if (status == SL_OK) status = ranks->exchange(ranks->ctx, &o.parts, &trainer->allocator, from);
    SL_FREE_ARRAY(&trainer->allocator, o.at, ranks->ranks);
    SL_FREE_ARRAY(&trainer->allocator, o.counts, ranks->ranks);
    sl_parts_free(&o.parts);
    return status;
}

/* Rows of one table in a part that came from a rank. */
typedef struct incoming {
    size_t count;
    const uint8_t *rows, *floats;
} incoming;

/* Reads the next table of a part, of rows with `floats` floats, and moves *at behind it. */
static incoming next_table(const uint8_t **at, size_t floats) {
    uint64_t count;
    memcpy(&count, *at, sizeof count);
    const incoming in = {(size_t)count, *at + sizeof count, *at + sizeof count + count * sizeof(uint32_t)};
    *at = in.floats + count * floats * sizeof(float);
    return in;
}

static uint32_t row_of(const incoming *in, size_t i) {
    uint32_t row;
    memcpy(&row, in->rows + i * sizeof row, sizeof row);
    return row;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Fetching
 * ------------------------------------------------------------------------------------------------------------- */

/* Touches the rows that a feature of the mini-batch uses. */
static void touch_feature(const sl_features *features, const sl_feature *feature, const sl_encoded *rows,
                          sl_row_sums *sums) {
    int fresh;
    for (size_t r = 0; r < rows->rows; r++) {
        if (feature->form == SL_FORM_ID) {
            (void)sl_row_sums_of(sums, rows->ids[r * features->id_count + feature->at], &fresh);
            continue;
        }
        const uint32_t *start = rows->bag_start + r * features->bag_count + feature->at;
        for (uint32_t i = start[0]; i < start[1]; i++)
            (void)sl_row_sums_of(sums, rows->bag_ids[i], &fresh);
    }
}

/* Touches the rows of a table that the mini-batch uses. */
static void touch_used_rows(sl_trainer *trainer, size_t table) {
    const sl_features *features = trainer->features;
    sl_row_sums *sums = &trainer->sparse->gradients.tables[table];
    sl_row_sums_clear(sums);
    for (size_t f = 0; f < features->count; f++) {
        const sl_feature *feature = &features->features[f];
        if (feature->tensor == table && feature->deep_at != SIZE_MAX && feature->form != SL_FORM_DENSE)
            touch_feature(features, feature, &trainer->minibatch.rows, sums);
    }
}

/* Writes the answer to one rank: the floats of the rows that it asked for, table by table. */
static void write_answer(const sl_trainer *trainer, const uint8_t *asked, uint8_t *to) {
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        const size_t dim = trainer->features->tables[t].dim;
        if (!trainer->sharded[t]) continue;
        const incoming in = next_table(&asked, 0);
        for (size_t i = 0; i < in.count; i++, to += dim * sizeof(float))
            memcpy(to, trainer->weights.embeddings[t] + row_of(&in, i) * dim, dim * sizeof(float));
    }
}

/* Answers the requests of all ranks. */
static sl_status answer_all(const sl_trainer *trainer, const sl_parts *asked, sl_parts *out) {
    sl_status status = SL_OK;
    size_t *sizes = sl_mem_array(&trainer->allocator, asked->ranks, sizeof *sizes, &status);
    SL_TRY(status);
    for (size_t r = 0; r < asked->ranks; r++) {
        const uint8_t *at = asked->data + asked->at[r];
        for (size_t t = 0; t < trainer->features->table_count; t++)
            if (trainer->sharded[t])
                sizes[r] += next_table(&at, 0).count * trainer->features->tables[t].dim * sizeof(float);
    }
    status = sl_parts_create(&trainer->allocator, asked->ranks, sizes, out);
    for (size_t r = 0; r < asked->ranks && status == SL_OK; r++)
        write_answer(trainer, asked->data + asked->at[r], out->data + out->at[r]);
    SL_FREE_ARRAY(&trainer->allocator, sizes, asked->ranks);
    return status;
}

/* Writes the answers into the weights. Each rank answers in the order in which its rows were asked for.
 * Parameters: at has a number for each rank. */
static void take_answers(sl_trainer *trainer, const sl_parts *answers, size_t *at) {
    memcpy(at, answers->at, answers->ranks * sizeof *at);
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        const sl_row_sums *sums = &trainer->sparse->gradients.tables[t];
        const size_t dim = trainer->features->tables[t].dim;
        if (!trainer->sharded[t]) continue;
        for (size_t i = 0; i < sums->count; i++) {
            size_t *from = &at[owner_of(trainer, sums->rows[i])];
            memcpy(trainer->weights.embeddings[t] + sums->rows[i] * dim, answers->data + *from, dim * sizeof(float));
            *from += dim * sizeof(float);
        }
    }
}

sl_status sl_shards_fetch(sl_trainer *trainer) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_parts asked = {.data = NULL}, mine = {.data = NULL}, answers = {.data = NULL};
    sl_status status = SL_OK;
    if (!trainer->sharded) return SL_OK;
    size_t *at = sl_mem_array(&trainer->allocator, ranks->ranks, sizeof *at, &status);
    for (size_t t = 0; t < trainer->features->table_count && status == SL_OK; t++)
        if (trainer->sharded[t]) touch_used_rows(trainer, t);
    if (status == SL_OK) status = send_rows(trainer, 0, &asked);
    if (status == SL_OK) status = answer_all(trainer, &asked, &mine);
    if (status == SL_OK) status = ranks->exchange(ranks->ctx, &mine, &trainer->allocator, &answers);
    if (status == SL_OK) take_answers(trainer, &answers, at);
    sl_parts_free(&asked);
    sl_parts_free(&mine);
    sl_parts_free(&answers);
    SL_FREE_ARRAY(&trainer->allocator, at, ranks->ranks);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Gradients
 * ------------------------------------------------------------------------------------------------------------- */

static void add_row(sl_row_sums *sums, uint32_t row, const uint8_t *from) {
    int fresh;
    float *to = sl_row_sums_of(sums, row, &fresh);
    for (size_t j = 0; j < sums->width; j++) {
        float more;
        memcpy(&more, from + j * sizeof more, sizeof more);
        to[j] = fresh ? more : to[j] + more;
    }
}

/* Adds the gradients that a rank sent. */
static void add_part(sl_trainer *trainer, const uint8_t *at) {
    for (size_t t = 0; t < trainer->features->table_count; t++) {
        sl_row_sums *sums = &trainer->sparse->gradients.tables[t];
        if (!trainer->sharded[t]) continue;
        const incoming in = next_table(&at, sums->width);
        for (size_t i = 0; i < in.count; i++)
            add_row(sums, row_of(&in, i), in.floats + i * sums->width * sizeof(float));
    }
}

sl_status sl_shards_reduce(sl_trainer *trainer) {
    sl_parts from;
    if (!trainer->sharded) return SL_OK;
    sl_status status = send_rows(trainer, 1, &from);
    for (size_t t = 0; t < trainer->features->table_count && status == SL_OK; t++)
        if (trainer->sharded[t]) sl_row_sums_clear(&trainer->sparse->gradients.tables[t]);
    for (size_t r = 0; r < from.ranks && status == SL_OK; r++)
        add_part(trainer, from.data + from.at[r]);
    sl_parts_free(&from);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * All rows
 * ------------------------------------------------------------------------------------------------------------- */

/* Gives every rank `count` rows of each rank, from the rank's own row `first` on. A row behind the table's end is sent
 * as zeroes. room: (1 + ranks) * count * dim floats. */
static sl_status sync_rows(sl_trainer *trainer, size_t table, size_t first, size_t count, float *room) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t dim = trainer->features->tables[table].dim, size = trainer->features->tables[table].size;
    float *weights = trainer->weights.embeddings[table], *all = room + count * dim;
    memset(room, 0, count * dim * sizeof *room);
    for (size_t i = 0; i < count; i++) {
        const size_t row = (first + i) * ranks->ranks + ranks->rank;
        if (row < size) memcpy(room + i * dim, weights + row * dim, dim * sizeof *room);
    }
    SL_TRY(ranks->gather_same(ranks->ctx, room, count * dim * sizeof *room, all));
    for (size_t i = 0; i < ranks->ranks * count; i++) {
        const size_t row = (first + i % count) * ranks->ranks + i / count;
        if (row < size) memcpy(weights + row * dim, all + i * dim, dim * sizeof *room);
    }
    return SL_OK;
}

static sl_status sync_table(sl_trainer *trainer, size_t table) {
    const sl_ranks *ranks = trainer->on.ranks;
    const size_t dim = trainer->features->tables[table].dim;
    const size_t rows = (trainer->features->tables[table].size + ranks->ranks - 1) / ranks->ranks;
    const size_t most = GATHER_BYTES / (ranks->ranks * dim * sizeof(float)) + 1, step = rows < most ? rows : most;
    sl_status status = SL_OK;
    float *room = sl_mem_array(&trainer->allocator, (1 + ranks->ranks) * step * dim, sizeof *room, &status);
    status = ranks->agree(ranks->ctx, status);
    for (size_t first = 0; first < rows && status == SL_OK; first += step)
        status = sync_rows(trainer, table, first, rows - first < step ? rows - first : step, room);
    SL_FREE_ARRAY(&trainer->allocator, room, (1 + ranks->ranks) * step * dim);
    return status;
}

sl_status sl_shards_sync(sl_trainer *trainer) {
    if (!trainer->sharded) return SL_OK;
    for (size_t t = 0; t < trainer->features->table_count; t++)
        if (trainer->sharded[t]) SL_TRY(sync_table(trainer, t));
    return SL_OK;
}

/* Sends the states of this rank's rows of a table to rank 0, which gets the parts of all. */
static sl_status send_states(const sl_trainer *trainer, size_t table, size_t floats, sl_parts *from) {
    const sl_ranks *ranks = trainer->on.ranks;
    sl_status status = SL_OK;
    sl_parts to = {.data = NULL};
    size_t *sizes = sl_mem_array(&trainer->allocator, ranks->ranks, sizeof *sizes, &status);
    if (status == SL_OK && ranks->rank != 0) sizes[0] = floats * sizeof(float);
    if (status == SL_OK) status = sl_parts_create(&trainer->allocator, ranks->ranks, sizes, &to);
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK && ranks->rank != 0)
        memcpy(to.data, trainer->sparse->table_states[table], floats * sizeof(float));
    if (status == SL_OK) status = ranks->exchange(ranks->ctx, &to, &trainer->allocator, from);
    SL_FREE_ARRAY(&trainer->allocator, sizes, ranks->ranks);
    sl_parts_free(&to);
    return status;
}

/* Writes the states of rank r's rows of a table to their places among those of all rows. */
static void place_states(const sl_trainer *trainer, size_t table, const sl_parts *from, size_t r, float *to) {
    const size_t dim = trainer->features->tables[table].dim, size = trainer->features->tables[table].size;
    const size_t rows = (size + from->ranks - 1 - r) / from->ranks;
    const uint8_t *at = from->data + from->at[r];
    for (size_t s = 0; s < trainer->dense_states; s++, to += size * dim)
        for (size_t i = 0; i < rows; i++, at += dim * sizeof(float))
            memcpy(to + (r + i * from->ranks) * dim, at, dim * sizeof(float));
}

sl_status sl_shards_gather_states(const sl_trainer *trainer, float *states) {
    for (size_t t = 0; t < trainer->features->table_count && trainer->sharded; t++) {
        const size_t dim = trainer->features->tables[t].dim;
        sl_parts from = {.data = NULL};
        if (!trainer->sharded[t]) continue;
        const size_t floats = trainer->dense_states * sl_own_rows(trainer->sparse, t) * dim;
        sl_status status = send_states(trainer, t, floats, &from);
        for (size_t r = 1; r < from.ranks && states && status == SL_OK; r++)
            place_states(trainer, t, &from, r, states + sl_sparse_state_at(trainer->sparse, t));
        sl_parts_free(&from);
        SL_TRY(status);
    }
    return SL_OK;
}
