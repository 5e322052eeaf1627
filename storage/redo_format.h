/* The bytes of a log: redo.c writes them, redo_read.c reads them. redo.h describes the log. */
#ifndef SL_STORAGE_REDO_FORMAT_H
#define SL_STORAGE_REDO_FORMAT_H

#include <shortlist.h>

#define SL_REDO_IDENTITY_SIZE 16u
#define SL_REDO_GROUP_MAGIC   0x50475253u /* "SRGP" */
#define SL_REDO_TRAILER_MAGIC 0x45475253u /* "SRGE" */

typedef struct sl_redo_head {
    char magic[8];
    uint32_t version;
    uint32_t endian;
    uint8_t identity[SL_REDO_IDENTITY_SIZE]; /* the file's */
    uint64_t epoch;
    uint8_t reserved[20];
    uint32_t crc32c; /* of all fields before */
} sl_redo_head;

typedef struct sl_redo_group {
    uint32_t magic;
    uint32_t crc32c; /* of the rest of this head */
    uint64_t epoch;
    uint64_t number;  /* from 0 in each epoch */
    uint64_t payload; /* bytes of the records */
} sl_redo_group;

typedef struct sl_redo_record {
    uint64_t offset; /* in the file */
    uint64_t size;   /* of the bytes that follow: a multiple of 8 */
} sl_redo_record;

typedef struct sl_redo_trailer {
    uint32_t magic;
    uint32_t crc32c; /* of the records */
} sl_redo_trailer;

/* Returns whether this is a log's head, of a version that this library reads. */
int sl_redo_head_is_whole(const sl_redo_head *head);
/* Returns whether the head belongs to the file of this identity. */
int sl_redo_head_is_own(const sl_redo_head *head, const uint8_t *identity);
/* The checksum that a group's head must have. */
uint32_t sl_redo_group_crc(const sl_redo_group *group);

/* Returns SL_ECORRUPT: a log is in force but missing. */
sl_status sl_redo_fail_missing(const char *path);
/* Returns SL_EIO: the log's name is a link, a folder or a device. */
sl_status sl_redo_fail_not_a_file(const char *path);

#endif
