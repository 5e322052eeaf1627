#define _GNU_SOURCE
#include "ranker/features/csv_parts.h"

#include "base/crc32c.h"
#include "base/params.h"
#include "ranker/features/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are read at a time to find where rows begin. */
#define BLOCK ((size_t)1 << 20)
/* Bytes at each end of a file whose checksum tells whether the ranks have the same file. */
#define ENDS ((size_t)1 << 16)

/* A part that would begin within the first bytes of a file begins with the file: no scan then begins within a byte
 * order mark. */
#define FIRST_BYTES 8u

/* The state of a parser between two bytes. */
enum { OUTSIDE, INSIDE, AFTER_QUOTE, STATES };

/* The part of a file that this rank reads. */
typedef struct file_part {
    uint64_t first_byte, first_line, end_byte;
} file_part;

struct sl_csv_parts {
    sl_allocator allocator;
    const sl_ranks *ranks;
    char **paths;
    file_part *files;
    size_t count, at; /* files; the one that is open */
    uint64_t total;   /* bytes of all files */
    uint64_t position;
    sl_csv_params params;
    sl_csv *csv; /* of file `at` */
    char *block;
};

/* A range of bytes of a file, as it is scanned. */
typedef struct scan {
    int fd;
    const char *path;
    char delimiter;
    char *block; /* BLOCK bytes */
} scan;

/* ---------------------------------------------------------------------------------------------------------------
 * Scanning
 * ------------------------------------------------------------------------------------------------------------- */

static sl_status read_at(const scan *s, uint64_t at, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t more = pread(s->fd, s->block + *got, size - *got, (off_t)(at + *got));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return sl_fail_errno("cannot read", s->path);
        if (more == 0) return SL_OK;
        *got += (size_t)more;
    }
    return SL_OK;
}

/* Returns whether a quote behind this byte opens a field. */
static int begins_field(const scan *s, char before) {
    return before == s->delimiter || before == '\n';
}

/* Follows a block of bytes from a state. `before`: the byte before the block. Returns the state after it. With `row`,
 * stops at the first line break outside quotes, and sets *row to the place behind it; SIZE_MAX: there is none. */
static int follow_block(const scan *s, const char *bytes, size_t size, char before, int state, size_t *row) {
    size_t at = 0;
    if (row) *row = SIZE_MAX;
    while (at < size) {
        if (state == AFTER_QUOTE) {
            state = bytes[at] == '"' ? INSIDE : OUTSIDE;
            if (state == INSIDE) at++;
            continue;
        }
        const char *quote = memchr(bytes + at, '"', size - at);
        const size_t next = quote ? (size_t)(quote - bytes) : size;
        if (state == OUTSIDE && row) {
            const char *end = memchr(bytes + at, '\n', next - at);
            if (end) {
                *row = (size_t)(end - bytes) + 1;
                return OUTSIDE;
            }
        }
        if (!quote) break;
        if (state == INSIDE)
            state = AFTER_QUOTE;
        else if (begins_field(s, next ? bytes[next - 1] : before))
            state = INSIDE;
        at = next + 1;
    }
    return state;
}

/* What a range of bytes does to a parser: the state in which it ends, for each state in which it may begin; and its
 * line breaks. */
typedef struct passage {
    uint8_t ends[STATES];
    uint64_t breaks;
} passage;

static size_t count_breaks(const char *bytes, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}

static size_t mark_size(const char *bytes, size_t size) {
    return size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static sl_status scan_range(const scan *s, uint64_t from, uint64_t to, passage *out) {
    char before = '\n';
    *out = (passage){.ends = {OUTSIDE, INSIDE, AFTER_QUOTE}};
    for (uint64_t at = from > 0 && from < to ? from - 1 : from; at < to;) {
        size_t got, skip = 0;
        const size_t size = to - at < BLOCK ? (size_t)(to - at) : BLOCK;
        SL_TRY(read_at(s, at, size, &got));
        if (got < size)
            return sl_fail(SL_EIO, "%s became shorter while it was read; put whole files in place", s->path);
        if (at < from) {
            before = s->block[0];
            skip = 1;
        }
        if (at == 0) skip = mark_size(s->block, got);
        for (int state = 0; state < STATES; state++)
            out->ends[state] = (uint8_t)follow_block(s, s->block + skip, got - skip, before, out->ends[state], NULL);
        out->breaks += count_breaks(s->block + skip, got - skip);
        before = s->block[got - 1];
        at += got;
    }
    return SL_OK;
}

/* Finds the first row that begins at byte `from` or later, if a parser comes there in `state`. *breaks: line breaks
 * from `from` to the row. *start is the file's size if no row follows. */
static sl_status find_row(const scan *s, uint64_t from, uint64_t size, int state, uint64_t *start, uint64_t *breaks) {
    char before = '\n';
    *breaks = 0;
    *start = size;
    for (uint64_t at = from - 1; at < size;) {
        size_t got, row = SIZE_MAX, skip = at < from;
        SL_TRY(read_at(s, at, BLOCK, &got));
        if (got == 0) return SL_OK;
        if (skip) before = s->block[0];
        if (skip && before == '\n' && state == OUTSIDE) {
            *start = from;
            return SL_OK;
        }
        state = follow_block(s, s->block + skip, got - skip, before, state, &row);
        *breaks += count_breaks(s->block + skip, row == SIZE_MAX ? got - skip : row);
        if (row != SIZE_MAX) {
            *start = at + skip + row;
            return SL_OK;
        }
        before = s->block[got - 1];
        at += got;
    }
    return SL_OK;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Dividing a file
 * ------------------------------------------------------------------------------------------------------------- */

/* A file, as one rank sees it. */
typedef struct file_seen {
    uint64_t size;
    uint32_t crc, reserved;
} file_seen;

static sl_status see_file(const scan *s, file_seen *seen) {
    struct stat info;
    size_t got;
    if (fstat(s->fd, &info) != 0) return sl_fail_errno("cannot read", s->path);
    seen->size = (uint64_t)info.st_size;
    SL_TRY(read_at(s, 0, ENDS, &got));
    seen->crc = sl_crc32c(0, s->block, got);
    SL_TRY(read_at(s, seen->size < ENDS ? 0 : seen->size - ENDS, ENDS, &got));
    seen->crc = sl_crc32c(seen->crc, s->block, got);
    return SL_OK;
}

/* Checks that all ranks see the same file. */
static sl_status check_same_file(const sl_csv_parts *parts, const scan *s, file_seen *seen) {
    const sl_ranks *ranks = parts->ranks;
    file_seen first;
    SL_TRY(ranks->agree(ranks->ctx, see_file(s, seen)));
    first = *seen;
    SL_TRY(ranks->broadcast(ranks->ctx, &first, sizeof first));
    sl_status status = SL_OK;
    if (first.size != seen->size || first.crc != seen->crc)
        status = sl_fail(SL_EVALUE,
                         "%s has %llu bytes here and %llu on rank 0, or other ones; give all ranks the same file, and "
                         "wait until a shared file system shows it",
                         s->path, (unsigned long long)seen->size, (unsigned long long)first.size);
    return ranks->agree(ranks->ctx, status);
}

/* Where a rank's rows begin, and the line there. */
typedef struct beginning {
    uint64_t byte, line;
} beginning;

/* Returns where the bytes of rank `rank` begin in a file that has `before` bytes of others before it, of `total` bytes.
 */
static uint64_t boundary(const sl_ranks *ranks, uint64_t rank, uint64_t before, uint64_t size, uint64_t total) {
    const uint64_t at = rank == ranks->ranks ? total : total / ranks->ranks * rank;
    if (at < before + FIRST_BYTES) return 0;
    return at - before < size ? at - before : size;
}

/* Finds where the rows of this rank begin in a file. `before`: bytes of the files before it. */
static sl_status find_beginning(const sl_csv_parts *parts, const scan *s, uint64_t before, uint64_t size,
                                beginning *mine) {
    const sl_ranks *ranks = parts->ranks;
    const uint64_t from = boundary(ranks, ranks->rank, before, size, parts->total);
    const uint64_t to = boundary(ranks, ranks->rank + 1, before, size, parts->total);
    sl_status status = SL_OK;
    passage own;
    int state = OUTSIDE;
    uint64_t breaks = 0, more = 0;
    passage *all = sl_mem_array(&parts->allocator, ranks->ranks, sizeof *all, &status);
    if (status == SL_OK) status = scan_range(s, from, to, &own);
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK) status = ranks->gather_same(ranks->ctx, &own, sizeof own, all);
    for (size_t r = 0; r < ranks->rank && status == SL_OK; r++) {
        state = all[r].ends[state];
        breaks += all[r].breaks;
    }
    SL_FREE_ARRAY(&parts->allocator, all, ranks->ranks);
    *mine = (beginning){0, 1};
    if (status != SL_OK) return status;
    if (from) status = find_row(s, from, size, state, &mine->byte, &more);
    if (from) mine->line = 1 + breaks + more;
    return ranks->agree(ranks->ctx, status);
}

/* Finds this rank's part of a file. `before`: bytes of the files before it. */
static sl_status divide_file(sl_csv_parts *parts, const scan *s, uint64_t before, uint64_t size, file_part *part) {
    const sl_ranks *ranks = parts->ranks;
    sl_status status = SL_OK;
    beginning mine;
    SL_TRY(find_beginning(parts, s, before, size, &mine));
    beginning *all = sl_mem_array(&parts->allocator, ranks->ranks, sizeof *all, &status);
    status = ranks->agree(ranks->ctx, status);
    if (status == SL_OK) status = ranks->gather_same(ranks->ctx, &mine, sizeof mine, all);
    if (status == SL_OK) {
        *part = (file_part){mine.byte, mine.line, UINT64_MAX};
        if (ranks->rank + 1 < ranks->ranks) part->end_byte = all[ranks->rank + 1].byte;
    }
    SL_FREE_ARRAY(&parts->allocator, all, ranks->ranks);
    return status;
}

static int open_to_scan(const char *path) {
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* Checks a file on all ranks, and adds its size to the total. */
static sl_status measure_path(sl_csv_parts *parts, size_t number, uint64_t *size) {
    scan s = {.path = parts->paths[number], .block = parts->block};
    file_seen seen = {.size = 0};
    s.fd = open_to_scan(s.path);
    sl_status status = sl_ranks_agree(parts->ranks, s.fd < 0 ? sl_fail_errno("cannot open", s.path) : SL_OK);
    if (status == SL_OK) status = check_same_file(parts, &s, &seen);
    if (s.fd >= 0) close(s.fd);
    *size = seen.size;
    parts->total += seen.size;
    return status;
}

static sl_status divide_path(sl_csv_parts *parts, size_t number, uint64_t before, uint64_t size) {
    scan s = {.path = parts->paths[number], .delimiter = parts->params.delimiter, .block = parts->block};
    s.fd = open_to_scan(s.path);
    sl_status status = sl_ranks_agree(parts->ranks, s.fd < 0 ? sl_fail_errno("cannot open", s.path) : SL_OK);
    if (status == SL_OK) status = divide_file(parts, &s, before, size, &parts->files[number]);
    if (s.fd >= 0) close(s.fd);
    return status;
}

/* Divides the bytes of all files, one after the other, into one run for each rank. So the rows of a rank follow those
 * of lower ranks, as in one process. */
static sl_status divide_paths(sl_csv_parts *parts) {
    sl_status status = SL_OK;
    uint64_t before = 0;
    uint64_t *sizes = sl_mem_array(&parts->allocator, parts->count, sizeof *sizes, &status);
    status = sl_ranks_agree(parts->ranks, status);
    for (size_t i = 0; i < parts->count && status == SL_OK; i++)
        status = measure_path(parts, i, &sizes[i]);
    for (size_t i = 0; i < parts->count && status == SL_OK; before += sizes[i++])
        status = divide_path(parts, i, before, sizes[i]);
    SL_FREE_ARRAY(&parts->allocator, sizes, parts->count);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Rows
 * ------------------------------------------------------------------------------------------------------------- */

/* Opens a file. A part that begins before the end of the header, among empty lines, begins behind the header. */
static sl_status open_file(sl_csv_parts *parts, size_t number) {
    sl_csv_free(parts->csv);
    parts->csv = NULL;
    parts->at = number;
    parts->position = (uint64_t)number << 40;
    file_part *part = &parts->files[number];
    SL_TRY(sl_csv_open(parts->paths[number], &parts->params, &parts->csv));
    if (part->first_byte && part->first_byte < csv_place(parts->csv)) {
        part->first_byte = csv_place(parts->csv);
        part->first_line = parts->csv->line;
    }
    return csv_set_part(parts->csv, part->first_byte, part->first_line, part->end_byte);
}

static sl_status next_block(void *ctx, size_t max_rows, sl_table *block) {
    sl_csv_parts *parts = ctx;
    for (;;) {
        sl_rows rows;
        SL_TRY(sl_csv_rows(parts->csv, &rows));
        SL_TRY(rows.next(rows.ctx, max_rows, block));
        if (block->rows || parts->at + 1 == parts->count) return SL_OK;
        SL_TRY(open_file(parts, parts->at + 1));
    }
}

static sl_status rewind_parts(void *ctx) {
    sl_csv_parts *parts = ctx;
    if (parts->at != 0) return open_file(parts, 0);
    return csv_set_part(parts->csv, parts->files[0].first_byte, parts->files[0].first_line, parts->files[0].end_byte);
}

sl_status sl_csv_parts_rows(sl_csv_parts *parts, sl_rows *out) {
    *out = (sl_rows){.struct_size = sizeof *out, .ctx = parts, .next = next_block, .rewind = rewind_parts};
    return SL_OK;
}

const uint64_t *sl_csv_parts_position(const sl_csv_parts *parts) {
    return &parts->position;
}

static sl_status copy_paths(sl_csv_parts *parts, const char *const *paths) {
    sl_status status = SL_OK;
    parts->paths = sl_mem_array(&parts->allocator, parts->count, sizeof *parts->paths, &status);
    parts->files = sl_mem_array(&parts->allocator, parts->count, sizeof *parts->files, &status);
    parts->block = sl_mem_array(&parts->allocator, BLOCK, 1, &status);
    for (size_t i = 0; i < parts->count && status == SL_OK; i++) {
        const size_t size = strlen(paths[i]) + 1;
        parts->paths[i] = sl_mem_array(&parts->allocator, size, 1, &status);
        if (status == SL_OK) memcpy(parts->paths[i], paths[i], size);
    }
    return status;
}

/* Reads the delimiter of the files, which the spec may name. */
static sl_status read_delimiter(sl_csv_parts *parts, const sl_csv_params *params) {
    sl_csv *csv;
    sl_csv_params_init(&parts->params);
    SL_TRY(sl_params_in(&parts->params, sizeof parts->params, params, "sl_csv_params_init"));
    SL_TRY(sl_csv_open(parts->paths[0], params, &csv));
    parts->params.delimiter = csv->delimiter;
    sl_csv_free(csv);
    return SL_OK;
}

/* Ranks read parts of files, which pipes do not have. To open a pipe would wait for its other end. */
static sl_status check_files(const sl_csv_parts *parts) {
    for (size_t i = 0; i < parts->count && parts->ranks; i++) {
        struct stat info;
        if (stat(parts->paths[i], &info) == 0 && !S_ISREG(info.st_mode))
            return sl_fail(SL_EVALUE, "%s: not a regular file, of which ranks read parts; copy it to one",
                           parts->paths[i]);
    }
    return SL_OK;
}

static sl_status open_parts(sl_csv_parts *parts, const char *const *paths, const sl_csv_params *params) {
    sl_status status = copy_paths(parts, paths);
    if (status == SL_OK) status = check_files(parts);
    if (status == SL_OK) status = read_delimiter(parts, params);
    SL_TRY(sl_ranks_agree(parts->ranks, status));
    for (size_t i = 0; i < parts->count; i++)
        parts->files[i] = (file_part){0, 1, UINT64_MAX};
    if (parts->ranks) SL_TRY(divide_paths(parts));
    return sl_ranks_agree(parts->ranks, open_file(parts, 0));
}

sl_status sl_csv_parts_open(const char *const *paths, size_t count, const sl_csv_params *params, const sl_ranks *ranks,
                            sl_csv_parts **out) {
    const sl_allocator allocator = sl_allocator_of(params ? params->allocator : NULL);
    void *block;
    *out = NULL;
    SL_TRY(sl_mem_alloc(&allocator, sizeof(sl_csv_parts), &block));
    sl_csv_parts *parts = block;
    parts->allocator = allocator;
    parts->ranks = ranks;
    parts->count = count;
    sl_status status = open_parts(parts, paths, params);
    if (status == SL_OK)
        *out = parts;
    else
        sl_csv_parts_free(parts);
    return status;
}

void sl_csv_parts_free(sl_csv_parts *parts) {
    if (!parts) return;
    sl_allocator allocator = parts->allocator;
    sl_csv_free(parts->csv);
    for (size_t i = 0; i < parts->count && parts->paths; i++)
        if (parts->paths[i]) sl_mem_free(&allocator, parts->paths[i], strlen(parts->paths[i]) + 1);
    SL_FREE_ARRAY(&allocator, parts->paths, parts->count);
    SL_FREE_ARRAY(&allocator, parts->files, parts->count);
    SL_FREE_ARRAY(&allocator, parts->block, BLOCK);
    SL_FREE(&allocator, parts);
}
