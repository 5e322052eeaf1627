/* A writing thread. */
#include "base/random.h"
#include "tests/hnsw/soak/soak.h"

#include <string.h>

/* One in so many changes is of two ids at once, is followed by a look at what it left, and by a sync. */
enum { PAIR = 8, LOOK = 4, SYNC = 12 };

typedef struct writer {
    soak *soak;
    sl_index *index;
    uint64_t seed, turn;
} writer;

static uint64_t random_of(const writer *w, uint64_t which) {
    return sl_random_at(w->seed, 8 * w->turn + which);
}

/* Each id has its own bit, which filters ask for, and others that change. */
static uint64_t tags_of(uint64_t id, uint32_t version) {
    return (uint64_t)1 << (id % TAG_BITS) | (uint64_t)version << TAG_BITS;
}

static sl_status add(const writer *w, const uint64_t *ids, size_t n, const uint32_t *versions, int replace) {
    float x[2][DIM];
    uint64_t tags[2];
    sl_add_params params;
    sl_add_params_init(&params);
    params.threads = 1;
    params.replace = replace;
    params.tags = tags;
    for (size_t i = 0; i < n; i++) {
        oracle_vector(ids[i], versions[i], x[i]);
        tags[i] = tags_of(ids[i], versions[i]);
    }
    return sl_index_add(w->index, x, SL_F32, n, 0, ids, &params);
}

/* A file is full until it is rebuilt. */
static int is_full(const writer *w, sl_status status) {
    if (status != SL_ELIMIT || w->soak->kind != SOAK_FILE) return 0;
    __atomic_store_n(&w->soak->over, 1, __ATOMIC_RELAXED);
    return 1;
}

static void set_vectors(const writer *w, const uint64_t *ids, size_t n, int replace) {
    uint32_t versions[2];
    for (size_t i = 0; i < n; i++)
        versions[i] = oracle_next_version(w->soak->oracle, ids[i]);
    oracle_begin(w->soak->oracle, ids, n, versions);
    const sl_status status = add(w, ids, n, versions, replace);
    oracle_end(w->soak->oracle, ids, n, status == SL_OK);
    if (is_full(w, status) || soak_fails(w->soak, status, replace ? "a replacement" : "an add")) return;
    soak_count(w->soak, replace ? SOAK_REPLACES : SOAK_ADDS, n);
}

static void delete_ids(const writer *w, const uint64_t *ids, size_t n) {
    oracle_begin(w->soak->oracle, ids, n, (uint32_t[2]){0, 0});
    const sl_status status = sl_index_delete(w->index, ids, n);
    oracle_end(w->soak->oracle, ids, n, status == SL_OK);
    if (!soak_fails(w->soak, status, "a delete")) soak_count(w->soak, SOAK_DELETES, n);
}

/* The vector of the last delete comes back, unless its place is used again, or another handle deleted it. */
static void undelete(const writer *w, uint64_t id) {
    const uint32_t version = oracle_latest(w->soak->oracle, id);
    if (!version) return;
    oracle_begin(w->soak->oracle, &id, 1, &version);
    const sl_status status = sl_index_undelete(w->index, &id, 1);
    oracle_end(w->soak->oracle, &id, 1, status == SL_OK);
    if (status == SL_ENOTFOUND)
        soak_count(w->soak, SOAK_REFUSED, 1);
    else if (!soak_fails(w->soak, status, "an undelete"))
        soak_count(w->soak, SOAK_UNDELETES, 1);
}

static void set_tags(const writer *w, uint64_t id) {
    const uint64_t tags = tags_of(id, (uint32_t)random_of(w, 3));
    uint64_t got = 0;
    if (soak_fails(w->soak, sl_index_set_tags(w->index, &id, 1, &tags), "sl_index_set_tags")) return;
    if (soak_fails(w->soak, sl_index_get_tags(w->index, &id, 1, &got), "sl_index_get_tags")) return;
    if (got != tags) soak_differ(w->soak, "id %llu has other tags than were set", (unsigned long long)id);
    soak_count(w->soak, SOAK_TAGS, 1);
}

/* Calls that must change nothing. */
static void be_refused(const writer *w, uint64_t id, int present) {
    const uint32_t version = 1;
    const sl_status status = present ? add(w, &id, 1, &version, 0) : sl_index_delete(w->index, &id, 1);
    if (is_full(w, status)) return;
    if (status != (present ? SL_EEXIST : SL_ENOTFOUND))
        soak_differ(w->soak, "%s gave %s", present ? "an add of a present id" : "a delete of an absent id",
                    sl_status_name(status));
    soak_count(w->soak, SOAK_REFUSED, 1);
}

/* Compares an id with the state that its only writer left. */
static void look(const writer *w, uint64_t id, const char *after) {
    const uint32_t version = oracle_version(w->soak->oracle, id);
    float x[DIM], got[DIM];
    int found = 0;
    const sl_status status = sl_index_get(w->index, &id, 1, SL_F32, got);
    oracle_vector(id, version, x);
    if (status != (version ? SL_OK : SL_ENOTFOUND) || (version && memcmp(x, got, sizeof x) != 0))
        soak_differ(w->soak, "id %llu has version %u after %s, but get gives %s, version %u", (unsigned long long)id,
                    version, after, sl_status_name(status),
                    status == SL_OK ? oracle_which(w->soak->oracle, id, got) : 0);
    if (sl_index_contains(w->index, id, &found) != SL_OK || found != (version != 0))
        soak_differ(w->soak, "contains lags behind the writer of id %llu", (unsigned long long)id);
    soak_count(w->soak, SOAK_LOOKUPS, 1);
}

/* Returns what it did, as change_two does. */
static const char *change_one(const writer *w, uint64_t id) {
    const uint64_t what = random_of(w, 1) % 20;
    const int present = oracle_version(w->soak->oracle, id) != 0;
    if (what == 19) return be_refused(w, id, present), "a refusal";
    if (present && what < 9) return set_vectors(w, &id, 1, 1), "a replacement";
    if (present && what < 15) return delete_ids(w, &id, 1), "a delete";
    if (present) return set_tags(w, id), "set_tags";
    if (what < 10) return set_vectors(w, &id, 1, (int)(what % 2)), "an add";
    return undelete(w, id), "an undelete";
}

/* Changes two ids in one call, which takes both or none. */
static const char *change_two(const writer *w, uint64_t id) {
    const uint64_t ids[2] = {id, (id + WRITERS) % IDS};
    const int present = oracle_version(w->soak->oracle, ids[0]) != 0;
    const int both = present == (oracle_version(w->soak->oracle, ids[1]) != 0);
    if (both && present && random_of(w, 1) % 2) return delete_ids(w, ids, 2), "a delete of two";
    return set_vectors(w, ids, 2, present || !both), "an add or replacement of two";
}

void soak_write(soak *s, sl_index *index, uint64_t life, size_t number) {
    writer w = {s, index, 1000 * life + number, 0};
    for (; soak_goes_on(s); w.turn++) {
        const uint64_t id = random_of(&w, 0) % (IDS / WRITERS) * WRITERS + number;
        const char *change = random_of(&w, 2) % PAIR ? change_one(&w, id) : change_two(&w, id);
        if (random_of(&w, 4) % LOOK == 0) look(&w, id, change);
        if (s->kind == SOAK_FILE && random_of(&w, 5) % SYNC == 0) soak_fails(s, soak_keep(s, index), "sl_index_sync");
    }
}
