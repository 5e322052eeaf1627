/* Parts of a log that its writer and its reader know alike. */
#ifndef SL_STORAGE_REDO_FORMAT_H
#define SL_STORAGE_REDO_FORMAT_H

#include "storage/redo.h"

#define SL_REDO_GROUP_MAGIC   0x50475253u /* "SRGP" */
#define SL_REDO_TRAILER_MAGIC 0x45475253u /* "SRGE" */

/* Tells whether a log's head is one, of a version that this library reads. */
int sl_redo_head_is_whole(const sl_redo_head *head);
/* Tells whether the head belongs to the file of this identity. */
int sl_redo_head_is_own(const sl_redo_head *head, const uint8_t *identity);
/* The checksum that a group's head must have. */
uint32_t sl_redo_group_crc(const sl_redo_group *group);

/* SL_ECORRUPT: a log that is in force is missing. */
sl_status sl_redo_fail_missing(const char *path);
/* SL_EIO: a link, a folder or a device has the log's name. */
sl_status sl_redo_fail_not_a_file(const char *path);

#endif
