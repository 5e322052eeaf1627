#define _GNU_SOURCE
#include "base/pages.h"

#include "base/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Entries of /proc/self/pagemap that one read takes: a word for each page. */
enum { ENTRIES = 512 };
#define PRESENT ((uint64_t)1 << 63)

typedef struct page_counter {
    const sl_span *spans;
    size_t count, page;
    int pagemap;
    sl_pages *out;
} page_counter;

/* One mapping of the process. */
typedef struct mapping {
    uintptr_t from, to;
    uint64_t page_size, rss, huge;
} mapping;

/* Adds the bytes of pages in [from, to) that are in memory. Returns 0 if pagemap can't be read. */
static int count_present(const page_counter *c, uintptr_t from, uintptr_t to, uint64_t *bytes) {
    uint64_t entries[ENTRIES];
    uint64_t page = from / c->page, end = (to + c->page - 1) / c->page;
    while (page < end) {
        size_t some = end - page < ENTRIES ? (size_t)(end - page) : ENTRIES;
        ssize_t got = pread(c->pagemap, entries, some * sizeof *entries, (off_t)(page * sizeof *entries));
        if (got < (ssize_t)sizeof *entries) return 0;
        some = (size_t)got / sizeof *entries;
        for (size_t i = 0; i < some; i++)
            if (entries[i] & PRESENT) *bytes += c->page;
        page += some;
    }
    return 1;
}

/* Counts the parts of the spans inside the mapping. All lines of the mapping have been read. */
static int count_mapping(const page_counter *c, const mapping *m) {
    uint64_t present = 0;
    for (size_t i = 0; i < c->count; i++) {
        uintptr_t from = (uintptr_t)c->spans[i].at, to = from + c->spans[i].size;
        if (from < m->from) from = m->from;
        if (to > m->to) to = m->to;
        if (from >= to) continue;
        if (!c->out->page_size) c->out->page_size = (size_t)m->page_size;
        if (!count_present(c, from, to, &present)) return 0;
    }
    c->out->resident += present;
    if (m->page_size >= SL_HUGE_PAGE || m->huge >= m->rss)
        c->out->huge += m->page_size >= SL_HUGE_PAGE || m->huge ? present : 0;
    else
        c->out->huge += (uint64_t)((double)present * ((double)m->huge / (double)m->rss));
    return 1;
}

/* Adds a line "Name:   1234 kB" to the mapping. */
static void parse_field(mapping *m, const char *line) {
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {{"KernelPageSize:", offsetof(mapping, page_size)},
                  {"Rss:", offsetof(mapping, rss)},
                  {"AnonHugePages:", offsetof(mapping, huge)},
                  {"ShmemPmdMapped:", offsetof(mapping, huge)},
                  {"FilePmdMapped:", offsetof(mapping, huge)}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t length = strlen(fields[i].name);
        if (strncmp(line, fields[i].name, length) == 0)
            *(uint64_t *)(void *)((char *)m + fields[i].offset) += 1024 * strtoull(line + length, NULL, 10);
    }
}

static int read_mappings(const page_counter *c, FILE *smaps) {
    char line[4608]; /* a path, and the fields before it */
    mapping m = {0};
    int known = 0;
    while (fgets(line, sizeof line, smaps)) {
        uintptr_t from, to;
        char permissions[5];
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, permissions) == 3) {
            if (!count_mapping(c, &m)) return 0;
            m = (mapping){.from = from, .to = to};
            known = 1;
        } else {
            parse_field(&m, line);
        }
    }
    return count_mapping(c, &m) && known;
}

int sl_pages_count(const sl_span *spans, size_t count, sl_pages *out) {
    long page = sysconf(_SC_PAGESIZE);
    *out = (sl_pages){0};
    FILE *smaps = fopen("/proc/self/smaps", "re");
    page_counter c = {.spans = spans,
                      .count = count,
                      .page = page > 0 ? (size_t)page : 4096,
                      .pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                      .out = out};
    int known = smaps && c.pagemap >= 0 && read_mappings(&c, smaps);
    if (smaps) fclose(smaps);
    if (c.pagemap >= 0) close(c.pagemap);
    if (!known) *out = (sl_pages){0};
    return known;
}
