/* CRC-32C (Castagnoli), as in iSCSI, ext4 and Btrfs. It detects every burst of up to 32 bits. */
#ifndef SL_BASE_CRC32C_H
#define SL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns `crc` continued over `size` more bytes; the first call passes 0. Uses the processor's instruction if there is
 * one. */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t size);

/* Returns the same by tables alone, on any processor: the reference for sl_crc32c. */
uint32_t sl_crc32c_portable(uint32_t crc, const void *data, size_t size);

/*
 * sl_crc32c_combine returns the CRC of two parts one after the other, from the CRC of each.
 *
 * Parameters: `shift` is sl_crc32c_shift of the second part's size. That takes some thousand cycles, and combining a
 * hundred.
 */
uint32_t sl_crc32c_shift(uint64_t size);
uint32_t sl_crc32c_combine(uint32_t first, uint32_t second, uint32_t shift);

#endif
