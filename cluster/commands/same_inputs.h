/* Inputs that must be the same on all ranks. Each rank notes facts of its own inputs, and all compare them. */
#ifndef SL_CLUSTER_COMMANDS_SAME_INPUTS_H
#define SL_CLUSTER_COMMANDS_SAME_INPUTS_H

#include "cli/files/vectors.h"

/* Facts of this rank's inputs: a name and a value per line. */
typedef struct input_facts {
    size_t used;
    char text[2048];
} input_facts;

/* Notes a value. `name` stands in messages: "version". */
void inputs_note(input_facts *facts, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Notes rows, dimensions and type of a file, and a checksum of 64 rows, evenly drawn. file: "base". Returns an exit
 * status. */
int inputs_note_vectors(input_facts *facts, const char *file, vectors *rows, element type);
/* Notes a checksum of n words; NULL: there are none. */
void inputs_note_words(input_facts *facts, const char *name, const uint64_t *words, size_t n);

/* Compares the facts with those of rank 0. Every rank calls it, with the same names. status: of this rank's noting.
 * Returns the agreed exit status, with a message that names the first fact that differs. */
int inputs_check_same(int status, const input_facts *facts);

#endif
