#include "hnsw/graph/record.h"
#include "hnsw/graph/arrays.h"

static sl_array_kind finest_codes(const sl_graph *graph) {
    return sl_has(graph, SL_ARRAY_REST) ? SL_ARRAY_REST : SL_ARRAY_CODES;
}

sl_record sl_record_of(const sl_graph *graph) {
    const sl_array_kind row = finest_codes(graph);
    sl_record record = {.size[SL_ARRAY_IDS] = sl_array_lines[SL_ARRAY_IDS].whole,
                        .size[SL_ARRAY_CHECKSUMS] = sl_array_lines[SL_ARRAY_CHECKSUMS].whole,
                        .size[SL_ARRAY_LINKS] = graph->m0 * sizeof(uint32_t)};
    record.size[row] = row == SL_ARRAY_REST ? graph->arrays[row].width : sl_codec_payload(&graph->codec);
    size_t links = record.size[SL_ARRAY_LINKS];
    record.at[SL_ARRAY_IDS] = sl_round_up(record.size[row], sizeof(uint64_t));
    record.at[SL_ARRAY_CHECKSUMS] = record.at[SL_ARRAY_IDS] + sizeof(uint64_t);
    size_t end = sl_round_up(record.at[SL_ARRAY_CHECKSUMS] + sizeof(uint32_t), sizeof(uint64_t));
    record.at[SL_ARRAY_LINKS] = sl_round_up(end, SL_CACHE_LINE);
    record.pitch = sl_round_up(record.at[SL_ARRAY_LINKS] + links, SL_RECORD_BLOCK);
    /* Links that begin on a cache line touch fewer lines, but that isn't worth another block. */
    if (sl_round_up(end + links, SL_RECORD_BLOCK) == record.pitch) return record;
    record.at[SL_ARRAY_LINKS] = end;
    record.pitch = sl_round_up(end + links, SL_RECORD_BLOCK);
    return record;
}

int sl_record_holds(const sl_graph *graph, sl_array_kind kind) {
    return sl_record_of(graph).size[kind] != 0;
}

void sl_record_adopt(sl_graph *graph, const sl_record *record, uint8_t *base) {
    graph->record = *record;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const size_t size = record->size[kind];
        if (!size) continue;
        /* Ids and checksums have had no width so far. */
        if (!graph->arrays[kind].width) graph->arrays[kind].width = size;
        sl_array_put_part(graph, kind, base + record->at[kind], size, record->pitch);
    }
}

size_t sl_record_parts(const sl_graph *graph, const sl_record *record, const sl_array *made,
                       sl_part parts[SL_MAX_PARTS]) {
    size_t count = 0;
    for (sl_array_kind kind = 0; kind < SL_ARRAY_KINDS; kind++) {
        const sl_array *array = made && made[kind].at ? &made[kind] : &graph->arrays[kind];
        if (!record->size[kind] || !array->at) continue;
        parts[count++] = (sl_part){array->at, array->step, record->size[kind], record->at[kind]};
    }
    return count;
}
