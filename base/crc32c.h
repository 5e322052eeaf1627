/* CRC-32C (Castagnoli), as iSCSI, ext4 and Btrfs use it: detects every burst of up to 32 bits. */
#ifndef SL_BASE_CRC32C_H
#define SL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of size bytes; pass 0 first, then the last result to go on. Uses the processor's instruction where it has one. */
uint32_t sl_crc32c(uint32_t crc, const void *data, size_t size);

/* The same by table alone, on any processor: the reference of the above. */
uint32_t sl_crc32c_portable(uint32_t crc, const void *data, size_t size);

/* The CRC of bytes and of others behind them, from that of each part; `behind` is sl_crc32c_behind of the second part's
 * size, which costs some thousand cycles, where the joining costs a hundred. */
uint32_t sl_crc32c_behind(uint64_t size);
uint32_t sl_crc32c_join(uint32_t first, uint32_t second, uint32_t behind);

#endif
