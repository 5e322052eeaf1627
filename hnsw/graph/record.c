#include "hnsw/graph/record.h"

/* Of I4 codes that have no others beside them, what 4 bits leave over. */
static sl_code_rows *finest_rows(const sl_index *index) {
    sl_codec *codec = &((sl_index *)(uintptr_t)index)->codec;
    return codec->rest.pitch ? &codec->rest : &codec->rows;
}

sl_record sl_record_of(const sl_index *index) {
    sl_record record = {.row = index->rest_pitch ? index->rest_pitch : sl_codec_payload(&index->codec)};
    size_t links = index->m0 * sizeof(uint32_t);
    record.id = sl_round_up(record.row, sizeof(uint64_t));
    record.sum = record.id + sizeof(uint64_t);
    size_t end = sl_round_up(record.sum + sizeof(uint32_t), sizeof(uint64_t));
    record.links = sl_round_up(end, SL_CACHE_LINE);
    record.pitch = sl_round_up(record.links + links, SL_RECORD_BLOCK);
    /* Links that begin on a cache line are read from fewer of them, which is worth no block more. */
    if (sl_round_up(end + links, SL_RECORD_BLOCK) == record.pitch) return record;
    record.links = end;
    record.pitch = sl_round_up(end + links, SL_RECORD_BLOCK);
    return record;
}

int sl_record_holds(const sl_index *index, sl_section_kind kind) {
    if (kind == SL_SECTION_CODES) return index->codec.rest.pitch == 0;
    return kind == SL_SECTION_REST || kind == SL_SECTION_IDS || kind == SL_SECTION_LINKS || kind == SL_SECTION_SUMS;
}

void sl_record_set_rows(sl_index *index, uint8_t *base) {
    finest_rows(index)->base = base;
    *(index->rest_pitch ? &index->rest_rows : &index->rows) = base;
}

void sl_record_adopt(sl_index *index, const sl_record *record, uint8_t *base) {
    sl_code_rows *rows = finest_rows(index);
    index->record = *record;
    rows->pitch = record->pitch;
    rows->size = record->row;
    sl_record_set_rows(index, base);
    index->ids = base + record->id;
    index->id_width = sizeof(uint64_t);
    index->sums = (uint32_t *)(void *)(base + record->sum);
    index->sum_step = record->pitch;
    index->links = (uint32_t *)(void *)(base + record->links);
    index->link_step = record->pitch / sizeof *index->links;
}

void sl_record_parts(const sl_index *index, const sl_record *record, const uint64_t *ids, const uint32_t *sums,
                     sl_part parts[SL_RECORD_PARTS]) {
    const sl_code_rows *rows = finest_rows(index);
    const size_t word = sizeof(uint32_t);
    parts[SL_RECORD_ROW] = (sl_part){(uint8_t *)(uintptr_t)rows->base, rows->pitch, record->row, 0};
    parts[SL_RECORD_ID] = ids ? (sl_part){(uint8_t *)(uintptr_t)ids, sizeof *ids, sizeof *ids, record->id}
                              : (sl_part){index->ids, sl_id_step(index), sizeof *ids, record->id};
    parts[SL_RECORD_SUM] = sums ? (sl_part){(uint8_t *)(uintptr_t)sums, word, word, record->sum}
                                : (sl_part){(uint8_t *)index->sums, index->sum_step, word, record->sum};
    parts[SL_RECORD_LINKS] =
        (sl_part){(uint8_t *)index->links, index->link_step * word, index->m0 * word, record->links};
}
