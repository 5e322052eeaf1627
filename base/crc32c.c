#include "base/crc32c.h"

#include "base/cpu.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Shortlist reads its words, here and in its files, as little-endian"
#endif

/* A register holds a polynomial over GF(2) bit-reversed: bit 31 is x^0, bit 0 is x^31. */
#define POLYNOMIAL 0x82f63b78u

/* Multiplies two polynomials modulo POLYNOMIAL. */
static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (int i = 0; i < 32; i++) {
        product ^= b & (0u - (a >> 31));
        a <<= 1;
        b = b >> 1 ^ (POLYNOMIAL & (0u - (b & 1)));
    }
    return product;
}

static inline uint64_t load64(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---------------------------------------------------------------------------------------------------------------
 * By table, eight bytes a step
 * ------------------------------------------------------------------------------------------------------------- */

/* slices[k][b] is the CRC register after byte b and k zero bytes. The register is linear in b, so the values at b = 1,
 * 2, 4, ..., 128 give all 256. These eight are x^(8k + 39) down to x^(8k + 32). */
#define BIT(b, j, value) (((b) >> (j)) & 1u ? (value) : 0u)
#define ENTRY(b, v0, v1, v2, v3, v4, v5, v6, v7)                                                                       \
    BIT(b, 0, v0) ^ BIT(b, 1, v1) ^ BIT(b, 2, v2) ^ BIT(b, 3, v3) ^ BIT(b, 4, v4) ^ BIT(b, 5, v5) ^ BIT(b, 6, v6) ^    \
        BIT(b, 7, v7)
#define SLICE0(b)                                                                                                      \
    ENTRY(b, 0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu, 0x417b1dbcu, 0x82f63b78u)
#define SLICE1(b)                                                                                                      \
    ENTRY(b, 0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u, 0xff17c604u, 0xfbc3faf9u)
#define SLICE2(b)                                                                                                      \
    ENTRY(b, 0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au, 0xe144fb14u, 0xc76580d9u, 0x8b277743u)
#define SLICE3(b)                                                                                                      \
    ENTRY(b, 0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du, 0xd725148bu, 0xaba65fe7u, 0x52a0c93fu)
#define SLICE4(b)                                                                                                      \
    ENTRY(b, 0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u, 0x37516aaeu, 0x6ea2d55cu)
#define SLICE5(b)                                                                                                      \
    ENTRY(b, 0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu, 0x85f4168du, 0x0e045bebu, 0x1c08b7d6u)
#define SLICE6(b)                                                                                                      \
    ENTRY(b, 0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu, 0x7ab7077au, 0xf56e0ef4u)
#define SLICE7(b)                                                                                                      \
    ENTRY(b, 0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u, 0x0d006599u, 0x1a00cb32u, 0x34019664u)

#define TIMES4(entry, b)  entry(b), entry((b) + 1u), entry((b) + 2u), entry((b) + 3u)
#define TIMES16(entry, b) TIMES4(entry, b), TIMES4(entry, (b) + 4u), TIMES4(entry, (b) + 8u), TIMES4(entry, (b) + 12u)
#define TIMES64(entry, b)                                                                                              \
    TIMES16(entry, b), TIMES16(entry, (b) + 16u), TIMES16(entry, (b) + 32u), TIMES16(entry, (b) + 48u)
#define TIMES256(entry) TIMES64(entry, 0u), TIMES64(entry, 64u), TIMES64(entry, 128u), TIMES64(entry, 192u)

static const uint32_t slices[8][256] = {{TIMES256(SLICE0)}, {TIMES256(SLICE1)}, {TIMES256(SLICE2)}, {TIMES256(SLICE3)},
                                        {TIMES256(SLICE4)}, {TIMES256(SLICE5)}, {TIMES256(SLICE6)}, {TIMES256(SLICE7)}};

uint32_t sl_crc32c_portable(uint32_t crc, const void *data, size_t size) {
    const unsigned char *at = data;
    uint32_t c = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word = load64(at) ^ c;
        c = slices[7][word & 255] ^ slices[6][word >> 8 & 255] ^ slices[5][word >> 16 & 255] ^
            slices[4][word >> 24 & 255] ^ slices[3][word >> 32 & 255] ^ slices[2][word >> 40 & 255] ^
            slices[1][word >> 48 & 255] ^ slices[0][word >> 56];
    }
    for (; size; size--, at++)
        c = c >> 8 ^ slices[0][(c ^ *at) & 255];
    return ~c;
}

/* ---------------------------------------------------------------------------------------------------------------
 * By the processor's instruction
 * ------------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define HARDWARE __attribute__((target("sse4.2")))

/* Registers have 64 bits, like the instruction's: a narrower type costs a move at each step. */
HARDWARE static inline uint64_t step8(uint64_t crc, uint64_t word) {
    return __builtin_ia32_crc32di(crc, word);
}

HARDWARE static inline uint64_t step1(uint64_t crc, unsigned char byte) {
    return __builtin_ia32_crc32qi((uint32_t)crc, byte);
}
#elif defined(__aarch64__)
#define HARDWARE

/* Assembly, because gcc and clang ask for different flags before they offer the intrinsic. */
static inline uint64_t step8(uint64_t crc, uint64_t word) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static inline uint64_t step1(uint64_t crc, unsigned char byte) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
}
#endif

#ifdef HARDWARE
/* The instruction takes a word each cycle and gives its result after three, so three streams run side by side, each
 * over its own STREAM bytes. Appending STREAM bytes multiplies a register by x^(8 STREAM). Two multiplications of some
 * 130 cycles, done side by side, combine the streams. They take 4 % of the time of 3 STREAM bytes. */
#define STREAM        8192u
#define AFTER_STREAM  0x28461564u /* x^(8 STREAM) modulo the polynomial */
#define AFTER_STREAMS 0xbf455269u /* x^(16 STREAM) */

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const unsigned char *at, size_t size) {
    uint64_t c = (uint32_t)~crc;
    for (; size >= 3 * STREAM; size -= 3 * STREAM, at += 3 * STREAM) {
        uint64_t c1 = 0, c2 = 0;
        for (size_t i = 0; i < STREAM; i += 8) {
            c = step8(c, load64(at + i));
            c1 = step8(c1, load64(at + STREAM + i));
            c2 = step8(c2, load64(at + 2 * STREAM + i));
        }
        c = multiply((uint32_t)c, AFTER_STREAMS) ^ multiply((uint32_t)c1, AFTER_STREAM) ^ (uint32_t)c2;
    }
    for (; size >= 8; size -= 8, at += 8)
        c = step8(c, load64(at));
    for (; size; size--, at++)
        c = step1(c, *at);
    return ~(uint32_t)c;
}
#endif

uint32_t sl_crc32c(uint32_t crc, const void *data, size_t size) {
#ifdef HARDWARE
    if (sl_cpu_has_crc32c()) return crc32c_hardware(crc, data, size);
#endif
    return sl_crc32c_portable(crc, data, size);
}

uint32_t sl_crc32c_shift(uint64_t size) {
    uint32_t power = 1u << 23, product = 1u << 31; /* a byte is worth x^8; x^0 */
    for (; size; size >>= 1, power = multiply(power, power))
        if (size & 1) product = multiply(product, power);
    return product;
}

uint32_t sl_crc32c_combine(uint32_t first, uint32_t second, uint32_t shift) {
    return multiply(first, shift) ^ second;
}
