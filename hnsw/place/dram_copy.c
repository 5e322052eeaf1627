#define _POSIX_C_SOURCE 200809L
#include "hnsw/place/dram_copy.h"

#include "base/crew.h"
#include "base/system.h"
#include "hnsw/graph/upper.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes copied between two looks at `stop`. */
#define CHUNK ((size_t)1 << 20)

enum { PARTS = SL_UPPER_PARTS + 1 };

struct sl_dram_filler {
    const sl_dram_copy **ready; /* the handle's pointer; the thread sets it when the copy is whole */
    sl_dram_copy copy;
    sl_copying parts[PARTS];
    size_t part_count;
    void *upper, *rows; /* blocks; NULL: the copy has none */
    size_t upper_size, rows_size;
    const sl_medium *medium;
    uint64_t done; /* atomic: bytes */
    int stop;      /* atomic */
    int started;
    pid_t process; /* the process of the thread: after fork() a child has no such thread */
    pthread_t thread;
};

sl_status sl_dram_copy_check(const sl_index *index, sl_tier asked) {
    if ((unsigned)asked > SL_TIER_DRAM) return sl_fail(SL_EINVAL, "tier %d is unknown", (int)asked);
    if (asked != SL_TIER_DRAM || index->graph.place == SL_PLACE_DRAM || !sl_writable_head(index->store)) return SL_OK;
    return sl_fail(SL_EUNSUPPORTED,
                   "%s: can be written in place, so that copies of what it holds would not stay true; open it with "
                   "tier none, or save it without room",
                   index->store->path);
}

size_t sl_dram_copy_row_bytes(const sl_graph *graph) {
    return sl_codec_of_walks(graph)->codes == SL_CODES_I4 ? graph->n * sl_codec_of_walks(graph)->rows.pitch : 0;
}

static size_t upper_bytes(const sl_graph *graph) {
    return graph->upper.count ? sl_upper_copy_size(graph) : 0;
}

static void warn_no_copy(const sl_index *index, const char *why) {
    char message[512];
    if (!index->log) return;
    snprintf(message, sizeof message, "no tier in DRAM, searches read the mapped file: %s", why);
    index->log(index->log_ctx, SL_LOG_WARN, message);
}

/* Returns whether the copy takes at most half of the machine's memory. A copy that nobody asked for must not use it up.
 */
static int fits_memory(const sl_index *index, size_t bytes) {
    uint64_t memory = sl_system_memory();
    char why[160];
    if (!memory || bytes <= memory / 2) return 1;
    snprintf(why, sizeof why, "it would take %zu bytes, more than half of the %llu there are; ask for it by tier dram",
             bytes, (unsigned long long)memory);
    warn_no_copy(index, why);
    return 0;
}

static int is_copy_wanted(const sl_index *index, sl_tier asked) {
    size_t bytes = upper_bytes(&index->graph) + sl_dram_copy_row_bytes(&index->graph);
    if (asked == SL_TIER_NONE || index->graph.place == SL_PLACE_DRAM || index->writer || index->published || !bytes)
        return 0;
    return asked == SL_TIER_DRAM || (index->store->dax && fits_memory(index, bytes));
}

/* ---------------------------------------------------------------------------------------------------------------
 * The thread
 * ------------------------------------------------------------------------------------------------------------- */

/* Copies a part. Returns 0 if it was stopped. The mapping is advised for random reads, so each chunk requests the next
 * one ahead. */
static int copy_part(sl_dram_filler *filler, const sl_copying *part) {
    for (size_t at = 0, some; at < part->size; at += some) {
        if (__atomic_load_n(&filler->stop, __ATOMIC_RELAXED)) return 0;
        const uint8_t *from = (const uint8_t *)part->from + at;
        size_t rest = part->size - at;
        some = rest < CHUNK ? rest : CHUNK;
        filler->medium->advise_soon(from, rest < 2 * CHUNK ? rest : 2 * CHUNK);
        memcpy((uint8_t *)part->to + at, from, some);
        __atomic_fetch_add(&filler->done, some, __ATOMIC_RELAXED);
    }
    return 1;
}

static void *fill_copy(void *ctx) {
    sl_dram_filler *filler = ctx;
    for (size_t i = 0; i < filler->part_count; i++)
        if (!copy_part(filler, &filler->parts[i])) return NULL;
    if (filler->rows) memset((uint8_t *)filler->rows + filler->rows_size - SL_ROW_STEP, 0, SL_ROW_STEP);
    __atomic_store_n(filler->ready, &filler->copy, __ATOMIC_RELEASE);
    return NULL;
}

static sl_status start_thread(sl_dram_filler *filler) {
    filler->process = getpid();
    int error = sl_crew_start(&filler->thread, fill_copy, filler);
    if (error) return sl_fail(SL_EUNSUPPORTED, "the system gives no thread to fill it (error %d)", error);
    filler->started = 1;
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Starting and stopping
 * ------------------------------------------------------------------------------------------------------------- */

/* Allocates all memory on the thread that opens the index, because no other thread may call the user's allocator. Takes
 * no time, because it writes nothing there. */
static sl_status allocate_copy(sl_index *index, sl_dram_filler *filler) {
    size_t rows = sl_dram_copy_row_bytes(&index->graph), upper = upper_bytes(&index->graph);
    filler->copy = (sl_dram_copy){index->graph.upper, *sl_codec_of_walks(&index->graph)};
    if (upper) {
        SL_TRY(sl_mem_alloc_raw(&index->graph.allocator, upper, &filler->upper));
        filler->upper_size = upper;
        filler->copy.upper = sl_upper_lay_out(&index->graph, filler->upper, filler->parts);
        filler->part_count = SL_UPPER_PARTS;
    }
    if (!rows) return SL_OK;
    SL_TRY(sl_mem_alloc_raw(&index->layer0, rows + SL_ROW_STEP, &filler->rows));
    filler->rows_size = rows + SL_ROW_STEP;
    filler->copy.walked.rows.base = filler->rows;
    filler->parts[filler->part_count++] = (sl_copying){sl_codec_of_walks(&index->graph)->rows.base, filler->rows, rows};
    return SL_OK;
}

static sl_status begin_copy(sl_index *index) {
    void *block;
    SL_TRY(sl_mem_alloc(&index->graph.allocator, sizeof(sl_dram_filler), &block));
    index->filler = block;
    index->filler->ready = &index->dram_copy;
    index->filler->medium = index->store->medium;
    SL_TRY(allocate_copy(index, index->filler));
    return start_thread(index->filler);
}

void sl_dram_copy_start(sl_index *index, sl_tier asked) {
    if (!is_copy_wanted(index, asked) || begin_copy(index) == SL_OK) return;
    warn_no_copy(index, sl_last_error());
    sl_dram_copy_free(index);
}

void sl_dram_copy_free(sl_index *index) {
    sl_dram_filler *filler = index->filler;
    if (!filler) return;
    if (filler->started && filler->process == getpid()) {
        __atomic_store_n(&filler->stop, 1, __ATOMIC_RELAXED);
        pthread_join(filler->thread, NULL);
    }
    index->dram_copy = NULL;
    index->filler = NULL;
    sl_mem_free(&index->graph.allocator, filler->upper, filler->upper_size);
    sl_mem_free(&index->layer0, filler->rows, filler->rows_size);
    SL_FREE(&index->graph.allocator, filler);
}

sl_tier_state sl_dram_copy_state(const sl_index *index, uint64_t *bytes) {
    const sl_dram_filler *filler = index->filler;
    int filled = sl_dram_copy_now(&index->graph) != NULL;
    *bytes = 0;
    /* A child that fork() made before the copy was whole gets no copy. */
    if (!filler || (!filled && filler->process != getpid())) return SL_TIER_STATE_NONE;
    *bytes = __atomic_load_n(&filler->done, __ATOMIC_RELAXED);
    return filled ? SL_TIER_STATE_FILLED : SL_TIER_STATE_FILLING;
}
