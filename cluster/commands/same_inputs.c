#include "cluster/commands/same_inputs.h"

#include "base/crc32c.h"
#include "cli/common/report.h"
#include "cli/common/system.h"
#include "cluster/commands/ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a file that all ranks compare. */
enum { SAMPLED = 64 };

void inputs_note(input_facts *facts, const char *name, const char *format, ...) {
    const size_t room = sizeof facts->text - facts->used;
    char value[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    const int length = snprintf(facts->text + facts->used, room, "%s: %s\n", name, value);
    if (length > 0) facts->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* Sums some rows, evenly drawn. Returns an exit status. */
static int sum_sample(vectors *rows, element type, uint32_t *crc) {
    const size_t row = rows->dim * element_size(type), count = rows->n < SAMPLED ? rows->n : SAMPLED;
    void *buffer = allocate(1, row);
    int status = buffer ? EXIT_DONE : EXIT_FAILED;
    *crc = 0;
    for (size_t i = 0; i < count && status == EXIT_DONE; i++) {
        status = vectors_read(rows, sl_comm_share(rows->n, i, count), 1, type, 0, buffer);
        if (status == EXIT_DONE) *crc = sl_crc32c(*crc, buffer, row);
    }
    free(buffer);
    return status;
}

int inputs_note_vectors(input_facts *facts, const char *file, vectors *rows, element type) {
    char name[64];
    uint32_t crc = 0;
    int status = sum_sample(rows, type, &crc);
    snprintf(name, sizeof name, "rows of the %s", file);
    inputs_note(facts, name, "%zu", rows->n);
    snprintf(name, sizeof name, "dimensions of the %s", file);
    inputs_note(facts, name, "%zu", rows->dim);
    snprintf(name, sizeof name, "type of the %s", file);
    inputs_note(facts, name, "%s", element_name(type));
    snprintf(name, sizeof name, "checksum of the %s", file);
    inputs_note(facts, name, "%08x", crc);
    return status;
}

void inputs_note_words(input_facts *facts, const char *name, const uint64_t *words, size_t n) {
    inputs_note(facts, name, "%08x", words ? sl_crc32c(0, words, n * sizeof *words) : 0);
}

/* Reports the first line that differs from rank 0's. */
static int report_difference(const char *mine, const char *first) {
    size_t line = 0;
    for (size_t i = 0; mine[i] && mine[i] == first[i]; i++)
        if (mine[i] == '\n') line = i + 1;
    const char *value = first + line + strcspn(first + line, ":");
    value += strspn(value, ": ");
    return report_failure("%.*s here, %.*s on rank 0; give all ranks the same files, version and processors",
                          (int)strcspn(mine + line, "\n"), mine + line, (int)strcspn(value, "\n"), value);
}

int inputs_check_same(int status, const input_facts *facts) {
    input_facts first = *facts;
    status = ranks_agree(status);
    if (status != EXIT_DONE) return status;
    sl_status sent = sl_comm_broadcast(ranks(), &first, sizeof first, 0);
    if (sent != SL_OK) return ranks_report(sent);
    return ranks_agree(strcmp(facts->text, first.text) == 0 ? EXIT_DONE : report_difference(facts->text, first.text));
}
