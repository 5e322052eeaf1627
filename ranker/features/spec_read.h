/* Reads a spec's JSON tree by tables of keys. */
#ifndef SL_RANKER_FEATURES_SPEC_READ_H
#define SL_RANKER_FEATURES_SPEC_READ_H

#include "ranker/features/spec.h"

#include <cjson/cJSON.h>

/* The reader's position. The spec's texts and arrays go into its arena, whose size is computed in advance. */
typedef struct spec_reader {
    sl_spec *spec;
    size_t used;    /* bytes of the arena in use */
    char path[192]; /* path of the value being read: "features[3].dim" */
    size_t path_length;
} spec_reader;

/* Goes to a member or an element. Returns the path's length before, which spec_leave takes. */
size_t spec_enter(spec_reader *r, const char *key);
size_t spec_enter_at(spec_reader *r, size_t index);
void spec_leave(spec_reader *r, size_t length);
/* Fails with SL_EINVAL and "PATH: message". */
sl_status spec_fail(const spec_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef enum spec_kind {
    SPEC_OTHER,  /* `read` reads it; NULL: another function reads it */
    SPEC_REAL,   /* a double from low to high */
    SPEC_COUNT,  /* a size_t from low to high */
    SPEC_FLAG,   /* int */
    SPEC_TEXT,   /* const char *, not empty */
    SPEC_LETTER, /* char */
    SPEC_CHOICE  /* an enumeration: the index of the word in `choices` */
} spec_kind;

typedef struct spec_key {
    const char *name;
    spec_kind kind;
    size_t offset;       /* of the field in the target struct */
    double low, high;    /* low SPEC_ABOVE_0: the value must exceed 0 */
    const char *choices; /* words separated by spaces */
    sl_status (*read)(spec_reader *r, const cJSON *value, void *target);
    unsigned forms; /* mask of the object types that may have the key; 0: all */
} spec_key;
#define SPEC_ABOVE_0 0x1p-1022

/* Reads an object's members into `target`.
 * Parameters: `form` is the bit of the object's type. `what` names the object in messages about keys that it may not
 * have. */
sl_status spec_read_object(spec_reader *r, const cJSON *object, const spec_key *keys, size_t count, unsigned form,
                           const char *what, void *target);

const cJSON *spec_member(const cJSON *object, const char *key);
/* Gets the text of a category. The element is a text, a number or a flag. */
sl_status spec_read_value(spec_reader *r, const cJSON *value, const char **out);
sl_status spec_read_values(spec_reader *r, const cJSON *array, const char *const **out, size_t *count);
sl_status spec_read_names(spec_reader *r, const cJSON *array, const char *const **out, size_t *count);
sl_status spec_read_count(spec_reader *r, const cJSON *value, size_t low, size_t high, size_t *out);
sl_status spec_read_real(spec_reader *r, const cJSON *value, double low, double high, double *out);
/* Gets the index of the word among `choices`. */
sl_status spec_read_choice(spec_reader *r, const cJSON *value, const char *choices, int *out);
/* Allocates `count` zeroed elements of `size` bytes in the arena. */
void *spec_alloc(spec_reader *r, size_t count, size_t size);
/* Gets the number of the feature with that name. Errors: SL_EINVAL. */
sl_status spec_find_feature(spec_reader *r, const char *name, size_t *out);
/* Gets the numbers of the features that an array lists. Refuses a feature listed twice. `out` has room for one number
 * an element. */
sl_status spec_read_feature_list(spec_reader *r, const cJSON *array, size_t *out, size_t *count);

/* spec_features.c: reads "features". References between features are resolved after all features are read. */
sl_status spec_read_features(spec_reader *r, const cJSON *array);

#endif
