#include "hnsw/graph/links.h"

#include <string.h>

/* Returns `count` if there is none. */
static size_t place_of(const uint32_t *ids, size_t count, uint32_t id) {
    size_t i = 0;
    while (i < count && ids[i] != id)
        i++;
    return i;
}

static void store_link(const sl_index *index, uint32_t *link, uint32_t id) {
    sl_link_store(link, id);
    sl_index_touch(index, link, sizeof *link);
}

/* Closes the gap at `at` in a list of `*end` links. The last link is copied there before its own place is cleared, so
 * the list never lacks it. */
static void close_gap(const sl_index *index, uint32_t *links, size_t at, size_t *end) {
    --*end;
    if (at != *end) {
        store_link(index, links + at, sl_link_load(links + *end));
        sl_index_fence(index);
    }
    store_link(index, links + *end, SL_NONE);
    sl_index_fence(index);
}

static size_t length_of(const uint32_t *links, size_t degree) {
    size_t length = 0;
    while (length < degree && sl_link_load(links + length) != SL_NONE)
        length++;
    return length;
}

/* Returns the first place from `at` on without a mark. */
static size_t next_new(const uint8_t *known, size_t count, size_t at) {
    while (at < count && known[at])
        at++;
    return at;
}

void sl_links_replace(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count) {
    uint8_t stays[2 * SL_MAX_M], known[2 * SL_MAX_M] = {0};
    size_t end = length_of(links, degree), fresh;
    for (size_t at = 0; at < end; at++) {
        const size_t place = place_of(ids, count, sl_link_load(links + at));
        stays[at] = place < count;
        if (stays[at]) known[place] = 1;
    }
    fresh = next_new(known, count, 0);
    for (size_t at = 0; at < end;) {
        if (stays[at]) {
            at++;
        } else if (fresh < count) {
            store_link(index, links + at++, ids[fresh]);
            sl_index_fence(index);
            fresh = next_new(known, count, fresh + 1);
        } else {
            close_gap(index, links, at, &end);
            stays[at] = stays[end];
        }
    }
    for (; fresh < count && end < degree; fresh = next_new(known, count, fresh + 1)) {
        store_link(index, links + end++, ids[fresh]);
        sl_index_fence(index);
    }
}

void sl_links_append(uint32_t *links, size_t degree, uint32_t id) {
    size_t count = 0;
    for (; count < degree && links[count] != SL_NONE; count++)
        if (links[count] == id) return;
    if (count < degree) links[count] = id;
}

void sl_links_dedupe(const sl_index *index, uint32_t *links, size_t degree) {
    size_t end = length_of(links, degree);
    for (size_t at = 0; at < end;)
        if (place_of(links, at, sl_link_load(links + at)) < at)
            close_gap(index, links, at, &end);
        else
            at++;
}

void sl_links_clear(sl_graph *graph, size_t first, size_t n) {
    for (size_t node = first; node < first + n; node++)
        memset(sl_links(graph, node), 0xff, graph->m0 * sizeof(uint32_t));
}

void sl_links_copy(uint32_t *to, const uint32_t *from, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] = sl_link_load(from + i);
}

void sl_links_store(const sl_index *index, uint32_t *links, size_t degree, const uint32_t *ids, size_t count) {
    if (!links) return;
    for (size_t i = 0; i < degree; i++)
        sl_link_store(links + i, i < count ? ids[i] : SL_NONE);
    sl_index_touch(index, links, degree * sizeof *links);
}
