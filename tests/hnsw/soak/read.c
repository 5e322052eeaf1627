/* The reader: a process that reads the worker's file. */
#define _GNU_SOURCE
#include "tests/hnsw/soak/soak.h"

#include <unistd.h>

enum { LOOKS = 20 };

static uint32_t files_of(const soak *s) {
    return __atomic_load_n(&s->files, __ATOMIC_SEQ_CST);
}

/* A file that is written in place stays the same between two rebuilds. Other files are replaced by each save. */
static void read_file(soak_looker *looker) {
    static uint32_t durable[IDS];
    soak *s = looker->soak;
    const uint32_t file = files_of(s);
    oracle_look_synced(s->oracle, durable);
    looker->durable = s->kind == SOAK_FILE ? NULL : durable;
    const sl_status status = soak_open(s->place.path, SL_PLACE_MAP, 0, &looker->index);
    if (status == SL_EIO && s->kind == SOAK_MEMORY) { /* there was no save yet */
        soak_sleep(0.01);
        return;
    }
    if (soak_fails(s, status, "opening the file to read it")) _exit(1);
    for (size_t i = 0; (i < LOOKS || !looker->durable) && file == files_of(s); i++)
        soak_look(looker);
    soak_looker_free(looker);
    sl_index_free(looker->index);
}

_Noreturn void soak_read(soak *s, uint64_t life) {
    static soak_looker looker;
    looker.soak = s;
    looker.seed = 1000 * life + 999;
    looker.elsewhere = 1;
    looker.who = "the reader";
    for (;;)
        read_file(&looker);
}
