/* Opens any bytes as an index file and uses the index. Few inputs get past the checksums as they are. With the
 * checksums put right, the fuzzer's changes reach everything behind them. */
#include "fuzz/fuzz.h"
#include "tests/support/hostile.h"

static void use_file(const char *path, size_t size) {
    (void)hostile_use(path, size, SL_PLACE_MAP, NULL);
    (void)hostile_use(path, size, SL_PLACE_DRAM, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    with_file(data, size, use_file);
    unsigned char *sealed = malloc(size + 1);
    if (!sealed) abort();
    memcpy(sealed, data, size);
    hostile_seal(sealed, size);
    with_file(sealed, size, use_file);
    free(sealed);
    return 0;
}
