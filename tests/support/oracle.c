#define _GNU_SOURCE
#include "tests/support/oracle.h"

#include "base/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* States of an id that are kept. A reader during whose call an id changes more often learns nothing. Between two syncs
 * an id changes less often. */
enum { KEPT = 64 };
#define TOLERANCE 1e-4 /* of a distance */

typedef struct state {
    uint64_t word;                    /* atomic: the change's number in the upper half, the version in the lower */
    uint32_t partner, partner_change; /* another id of the same call, and its change's number; 0: there is none */
} state;

typedef struct history {
    uint32_t note;   /* atomic: twice the acknowledged changes, and 1 during one */
    uint32_t synced; /* atomic: the changes that are durable */
    uint32_t latest, last_version;
    uint32_t found_first, found_last; /* the changes that may have left what a file holds */
    uint32_t found;                   /* and the version */
    state states[KEPT];
} history;

struct oracle {
    size_t count, bytes;
    history ids[];
};

oracle *oracle_make(size_t count) {
    const size_t bytes = sizeof(oracle) + count * sizeof(history);
    oracle *o = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(o, MAP_FAILED);
    o->count = count;
    o->bytes = bytes;
    return o;
}

void oracle_free(oracle *o) {
    if (o) munmap(o, o->bytes);
}

void oracle_vector(uint64_t id, uint32_t version, float *out) {
    for (size_t d = 0; d < ORACLE_DIM; d++)
        out[d] = (float)sl_random_unit(id * 100003 + version, d);
}

double oracle_distance(const float *a, const float *b) {
    double sum = 0;
    for (size_t d = 0; d < ORACLE_DIM; d++)
        sum += ((double)a[d] - (double)b[d]) * ((double)a[d] - (double)b[d]);
    return sum;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Changes
 * ------------------------------------------------------------------------------------------------------------- */

static uint32_t note_of(const oracle *o, uint64_t id) {
    return __atomic_load_n(&o->ids[id].note, __ATOMIC_SEQ_CST);
}

uint32_t oracle_count(const oracle *o, uint64_t id) {
    return note_of(o, id) / 2;
}

/* The version that a change of an id left. Returns 0 if it is no longer kept. */
static int state_of(const oracle *o, uint64_t id, uint32_t change, uint32_t *version) {
    const uint64_t word = __atomic_load_n(&o->ids[id].states[change % KEPT].word, __ATOMIC_SEQ_CST);
    *version = (uint32_t)word;
    return word >> 32 == change;
}

static void put_state(oracle *o, uint64_t id, uint32_t change, uint32_t version) {
    __atomic_store_n(&o->ids[id].states[change % KEPT].word, (uint64_t)change << 32 | version, __ATOMIC_SEQ_CST);
}

void oracle_begin(oracle *o, const uint64_t *ids, size_t n, const uint32_t *versions) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t other = ids[(i + 1) % n];
        const uint32_t change = oracle_count(o, ids[i]) + 1;
        state *next = &o->ids[ids[i]].states[change % KEPT];
        put_state(o, ids[i], change, versions[i]);
        next->partner = (uint32_t)other;
        next->partner_change = n > 1 ? oracle_count(o, other) + 1 : 0;
    }
    for (size_t i = 0; i < n; i++)
        __atomic_fetch_add(&o->ids[ids[i]].note, 1, __ATOMIC_SEQ_CST);
}

void oracle_end(oracle *o, const uint64_t *ids, size_t n, int done) {
    for (size_t i = 0; i < n; i++) {
        history *of = &o->ids[ids[i]];
        uint32_t before = 0, now = 0;
        const uint32_t change = oracle_count(o, ids[i]) + 1;
        (void)state_of(o, ids[i], change - 1, &before);
        (void)state_of(o, ids[i], change, &now);
        if (!done) {
            put_state(o, ids[i], change, before);
            of->states[change % KEPT].partner_change = 0;
        } else if (now) {
            of->last_version = now;
        }
    }
    for (size_t i = 0; i < n; i++)
        __atomic_fetch_add(&o->ids[ids[i]].note, 1, __ATOMIC_SEQ_CST);
}

uint32_t oracle_version(const oracle *o, uint64_t id) {
    uint32_t version;
    (void)state_of(o, id, oracle_count(o, id), &version);
    return version;
}

uint32_t oracle_latest(const oracle *o, uint64_t id) {
    return o->ids[id].last_version;
}

uint32_t oracle_next_version(oracle *o, uint64_t id) {
    return ++o->ids[id].latest;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Questions
 * ------------------------------------------------------------------------------------------------------------- */

void oracle_look(const oracle *o, uint32_t *counts) {
    for (size_t id = 0; id < o->count; id++)
        counts[id] = oracle_count(o, id);
}

/* Returns whether `fits` holds for a state that an id may have had since `from`, or for one that is no longer kept. */
static int may(const oracle *o, uint64_t id, uint32_t from, int (*fits)(void *ctx, uint32_t version), void *ctx) {
    const uint32_t note = note_of(o, id), last = note / 2 + note % 2;
    uint32_t version;
    for (uint32_t change = from; change <= last; change++)
        if (!state_of(o, id, change, &version) || fits(ctx, version)) return 1;
    return 0;
}

typedef struct wanted {
    uint64_t id;
    const float *vector;
    double distance;
} wanted;

static int fits_distance(void *ctx, uint32_t version) {
    const wanted *w = ctx;
    float x[ORACLE_DIM];
    if (!version) return 0;
    oracle_vector(w->id, version, x);
    return fabs(oracle_distance(x, w->vector) - w->distance) <= TOLERANCE;
}

static int fits_presence(void *ctx, uint32_t version) {
    return *(const int *)ctx == (version != 0);
}

int oracle_may_be_at(const oracle *o, uint64_t id, uint32_t from, double distance, const float *query) {
    return may(o, id, from, fits_distance, &(wanted){id, query, distance});
}

int oracle_may_be(const oracle *o, uint64_t id, uint32_t from, const float *vector) {
    return oracle_may_be_at(o, id, from, 0, vector);
}

int oracle_may_be_there(const oracle *o, uint64_t id, uint32_t from) {
    return may(o, id, from, fits_presence, &(int){1});
}

int oracle_may_be_absent(const oracle *o, uint64_t id, uint32_t from) {
    return may(o, id, from, fits_presence, &(int){0});
}

int oracle_is_unchanged(const oracle *o, uint64_t id, uint32_t from) {
    return note_of(o, id) == 2 * from;
}

uint32_t oracle_which(const oracle *o, uint64_t id, const float *vector) {
    for (uint32_t version = o->ids[id].latest; version; version--)
        if (fits_distance(&(wanted){id, vector, 0}, version)) return version;
    return 0;
}

const char *oracle_text(const oracle *o, uint64_t id, uint32_t from, char *out, size_t size) {
    const uint32_t note = note_of(o, id), last = note / 2 + note % 2;
    size_t length = 0;
    out[0] = 0;
    for (uint32_t change = from; change <= last && length < size; change++) {
        uint32_t version;
        const int kept = state_of(o, id, change, &version);
        length += (size_t)snprintf(out + length, size - length, kept ? " %u" : " ?", version);
    }
    return out;
}

/* ---------------------------------------------------------------------------------------------------------------
 * What is durable
 * ------------------------------------------------------------------------------------------------------------- */

void oracle_synced(oracle *o, const uint32_t *counts) {
    for (size_t id = 0; id < o->count; id++) {
        uint32_t now = __atomic_load_n(&o->ids[id].synced, __ATOMIC_SEQ_CST);
        while (now < counts[id] && !__atomic_compare_exchange_n(&o->ids[id].synced, &now, counts[id], 0,
                                                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
    }
}

void oracle_look_synced(const oracle *o, uint32_t *counts) {
    for (size_t id = 0; id < o->count; id++)
        counts[id] = __atomic_load_n(&o->ids[id].synced, __ATOMIC_SEQ_CST);
}

/* The changes that may have left what the file holds go from found_first to found_last. */
static int find_changes(oracle *o, uint64_t id, const float *vector) {
    history *of = &o->ids[id];
    const uint32_t last = of->note / 2 + of->note % 2;
    int found = 0;
    for (uint32_t change = of->synced; change <= last; change++) {
        uint32_t version;
        if (!state_of(o, id, change, &version)) continue;
        if (vector ? !fits_distance(&(wanted){id, vector, 0}, version) : version) continue;
        if (!found) of->found_first = change;
        of->found_last = change;
        of->found = version;
        found = 1;
    }
    return found;
}

const char *oracle_recovered(oracle *o, uint64_t id, const float *vector) {
    if (find_changes(o, id, vector)) return NULL;
    return vector ? "an id has a vector from before its last durable change, or a strange one"
                  : "an id is absent that has to be there";
}

/* Returns whether an id's change is there in the file: 1 or 0; -1: that is not known. */
static int is_there(const oracle *o, uint64_t id, uint32_t change) {
    const history *of = &o->ids[id];
    return change <= of->found_first ? 1 : change > of->found_last ? 0 : -1;
}

const char *oracle_recovered_all(oracle *o) {
    const char *wrong = NULL;
    for (size_t id = 0; id < o->count; id++)
        for (size_t i = 0; i < KEPT; i++) {
            const state *state = &o->ids[id].states[i];
            if (!state->partner_change || state->word >> 32 <= o->ids[id].synced) continue;
            const int here = is_there(o, id, (uint32_t)(state->word >> 32));
            const int other = is_there(o, state->partner, state->partner_change);
            if (here + other == 1) wrong = "a call's change of two ids is there for one of them";
        }
    for (size_t id = 0; id < o->count; id++) {
        history *of = &o->ids[id];
        const uint32_t change = of->note / 2 + of->note % 2 + 1;
        put_state(o, id, change, of->found);
        of->states[change % KEPT].partner_change = 0;
        if (of->found) of->last_version = of->found;
        __atomic_store_n(&of->note, 2 * change, __ATOMIC_SEQ_CST);
        __atomic_store_n(&of->synced, change, __ATOMIC_SEQ_CST);
    }
    return wrong;
}
