/* An oracle of an index that changes: for each id the states that calls were acknowledged to leave, in their order.
 * Readers ask it which states an id may have had during a call of theirs. It lies in memory that child processes share.
 * Threads: one at a time changes an id; any may ask. */
#ifndef SL_TESTS_ORACLE_H
#define SL_TESTS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

enum { ORACLE_DIM = 12 };

typedef struct oracle oracle;

/* Makes an oracle of ids 0 to count - 1, which have no vector yet. oracle_free takes it, or NULL. */
oracle *oracle_make(size_t count);
void oracle_free(oracle *o);

/* Gives the vector of an id's version. All vectors lie close together, so every search meets those that change. */
void oracle_vector(uint64_t id, uint32_t version, float *out);
/* The squared distance of two vectors. */
double oracle_distance(const float *a, const float *b);

/* ---- Changes */

/* Announces that a call begins that may leave each of n ids with its version, or with 0: deleted. */
void oracle_begin(oracle *o, const uint64_t *ids, size_t n, const uint32_t *versions);
/* The call has returned. done 0: it changed nothing. */
void oracle_end(oracle *o, const uint64_t *ids, size_t n, int done);

/* The version of an id now, or 0; for the thread that changes the id. */
uint32_t oracle_version(const oracle *o, uint64_t id);
/* The latest version that the id had, also if it is deleted. */
uint32_t oracle_latest(const oracle *o, uint64_t id);
/* A version that the id has never had. */
uint32_t oracle_next_version(oracle *o, uint64_t id);

/* ---- Questions */

/* Gives how many changes of each id are acknowledged; oracle_count gives that of one. */
void oracle_look(const oracle *o, uint32_t *counts);
uint32_t oracle_count(const oracle *o, uint64_t id);

/* Returns whether an id may have been found at this distance from a query, since `from` of its changes were
 * acknowledged. */
int oracle_may_be_at(const oracle *o, uint64_t id, uint32_t from, double distance, const float *query);
/* The same: whether it may have had this vector, any vector, and none. */
int oracle_may_be(const oracle *o, uint64_t id, uint32_t from, const float *vector);
int oracle_may_be_there(const oracle *o, uint64_t id, uint32_t from);
int oracle_may_be_absent(const oracle *o, uint64_t id, uint32_t from);
/* Returns whether no change of the id has begun since. */
int oracle_is_unchanged(const oracle *o, uint64_t id, uint32_t from);
/* Returns the version of an id that a vector is; 0: none that there was. */
uint32_t oracle_which(const oracle *o, uint64_t id, const float *vector);
/* Writes the versions that an id may have had since `from` to out, and returns it. */
const char *oracle_text(const oracle *o, uint64_t id, uint32_t from, char *out, size_t size);

/* ---- What is durable */

/* A sync or save has returned that began after oracle_look gave these counts. */
void oracle_synced(oracle *o, const uint32_t *counts);
/* Gives how many changes of each id are durable. */
void oracle_look_synced(const oracle *o, uint32_t *counts);

/* Tells what a file holds after a crash: an id's vector, or NULL. Returns what is wrong with that, or NULL: a durable
 * change is missing, or the id never had this vector. */
const char *oracle_recovered(oracle *o, uint64_t id, const float *vector);
/* Once all ids are told: returns whether a call's change of several ids is there in part, or NULL. From here on the ids
 * are as the file holds them. */
const char *oracle_recovered_all(oracle *o);

#endif
