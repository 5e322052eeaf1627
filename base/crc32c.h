/* CRC-32C (Castagnoli), as iSCSI, ext4 and Btrfs use it: detects every burst of up to 32 bits. */
#ifndef SL_BASE_CRC32C_H
#define SL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC of size bytes behind those that gave `crc`; the first call passes 0. The processor's instruction is
 * used if there is one. */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t size);

/* Returns the same by table alone, on any processor: the reference of sl_crc32c. */
uint32_t sl_crc32c_portable(uint32_t crc, const void *data, size_t size);

/*
 * sl_crc32c_combine returns the CRC of bytes and of others behind them, from the CRC of each part.
 *
 * Parameters: `shift`, sl_crc32c_shift of the second part's size. sl_crc32c_shift takes some thousand cycles, and
 * joining takes a hundred.
 */
uint32_t sl_crc32c_shift(uint64_t size);
uint32_t sl_crc32c_combine(uint32_t first, uint32_t second, uint32_t shift);

#endif
