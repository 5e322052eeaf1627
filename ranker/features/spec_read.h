/* Reading a spec's JSON tree by tables of keys. */
#ifndef SL_RANKER_FEATURES_SPEC_READ_H
#define SL_RANKER_FEATURES_SPEC_READ_H

#include "ranker/features/spec.h"

#include <cjson/cJSON.h>

/* The reader's position. Texts and arrays of the spec go into its arena, whose size was counted before. */
typedef struct spec_reader {
    sl_spec *spec;
    size_t used;    /* of the arena */
    char path[192]; /* of the value being read: "features[3].dim" */
    size_t path_length;
} spec_reader;

/* Goes to a member or an element. Returns the path length to come back to. */
size_t spec_enter(spec_reader *r, const char *key);
size_t spec_enter_at(spec_reader *r, size_t index);
void spec_leave(spec_reader *r, size_t length);
/* Fails with SL_EINVAL and "PATH: message". */
sl_status spec_fail(const spec_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef enum spec_kind {
    SPEC_OTHER,  /* by `read`; NULL: read elsewhere */
    SPEC_REAL,   /* double, low to high */
    SPEC_COUNT,  /* size_t, low to high */
    SPEC_FLAG,   /* int */
    SPEC_TEXT,   /* const char *, not empty */
    SPEC_LETTER, /* char */
    SPEC_CHOICE  /* an enumeration: the number of the word in choices */
} spec_kind;

typedef struct spec_key {
    const char *name;
    spec_kind kind;
    size_t offset;       /* of the field in the target */
    double low, high;    /* low SPEC_ABOVE_0: more than 0 */
    const char *choices; /* words with a space between them */
    sl_status (*read)(spec_reader *r, const cJSON *value, void *target);
    unsigned forms; /* mask of the objects that may have the key; 0: all */
} spec_key;
#define SPEC_ABOVE_0 0x1p-1022

/* Reads an object's members into `target`.
 * Parameters: `form` is the object's bit. `what` names the object in messages about keys that it may not have. */
sl_status spec_read_object(spec_reader *r, const cJSON *object, const spec_key *keys, size_t count, unsigned form,
                           const char *what, void *target);

const cJSON *spec_member(const cJSON *object, const char *key);
/* Returns the text of a category from an element: a text, number or flag. */
sl_status spec_read_value(spec_reader *r, const cJSON *value, const char **out);
sl_status spec_read_values(spec_reader *r, const cJSON *array, const char *const **out, size_t *count);
sl_status spec_read_names(spec_reader *r, const cJSON *array, const char *const **out, size_t *count);
sl_status spec_read_count(spec_reader *r, const cJSON *value, size_t low, size_t high, size_t *out);
sl_status spec_read_real(spec_reader *r, const cJSON *value, double low, double high, double *out);
/* Returns the number of the word among `choices`. */
sl_status spec_read_choice(spec_reader *r, const cJSON *value, const char *choices, int *out);
/* Returns zeroed room for count elements of `size` bytes in the arena. */
void *spec_take(spec_reader *r, size_t count, size_t size);
/* Gets the number of the feature with that name. Errors: SL_EINVAL. */
sl_status spec_find_feature(spec_reader *r, const char *name, size_t *out);
/* Gets the numbers of the features that an array names, none twice. `out` has room for as many as the array has
 * elements. */
sl_status spec_read_feature_list(spec_reader *r, const cJSON *array, size_t *out, size_t *count);

/* spec_features.c: reads "features". References from one feature to another are read once all features are known. */
sl_status spec_read_features(spec_reader *r, const cJSON *array);

#endif
