/* A small file of the storage room. Its content says which version of it this is. */
#ifndef SL_TESTS_SAMPLE_FILE_H
#define SL_TESTS_SAMPLE_FILE_H

#include "storage/store.h"

#define SAMPLE_SECTIONS 4
/* A kind that this version doesn't know and a reader may skip. */
#define SAMPLE_UNKNOWN 200u

typedef struct sample_file {
    const sl_file_type *type;
    sl_file_header header; /* of an index */
    sl_section_source sections[SAMPLE_SECTIONS];
    unsigned char *data;
} sample_file;

/* About `size` bytes in four sections, one of them empty, all depending on version. */
void sample_init(sample_file *sample, const sl_file_type *type, uint64_t version, size_t size);
void sample_free(sample_file *sample);
sl_status sample_save(sample_file *sample, const char *path, const sl_file_ops *ops);

/* Returns whether the file opens as one of the sample's type, verifies, and equals the sample. */
int sample_holds(const sample_file *sample, const char *path);

/* Returns the version of an index that opens, verifies and equals what sample_init gives for it; 0 otherwise. */
uint64_t sample_version(const char *path);

#endif
