#define _GNU_SOURCE
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1ul << 7)
#endif
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1ul << 20)
#endif
#endif

static const char *const isa_names[SL_ISA_COUNT] = {
    [SL_ISA_SCALAR] = "scalar",         [SL_ISA_AVX2] = "avx2",
    [SL_ISA_AVXVNNI] = "avxvnni",       [SL_ISA_AVX512BW] = "avx512bw",
    [SL_ISA_AVX512VNNI] = "avx512vnni", [SL_ISA_NEON] = "neon",
    [SL_ISA_AMXINT8] = "amxint8",
};

const char *sl_isa_name(sl_isa isa) {
    return (unsigned)isa < SL_ISA_COUNT ? isa_names[isa] : "?";
}

static unsigned tier_bit(sl_isa isa) {
    return 1u << isa;
}

/* The value of SHORTLIST_MAX_ISA: a tier, or one of these. */
enum { CAP_UNSET = SL_ISA_COUNT, CAP_UNKNOWN_WORD, CAP_NOT_READ };

static int read_cap(void) {
    const char *word = getenv("SHORTLIST_MAX_ISA");
    if (!word || !*word) return CAP_UNSET;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++)
        if (strcmp(word, isa_names[isa]) == 0) return isa;
    return CAP_UNKNOWN_WORD;
}

/* The first reader's answer holds, so that a later change of the environment can't give two threads different
 * answers. */
static int isa_cap(void) {
    static int known = CAP_NOT_READ;
    int value = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (value == CAP_NOT_READ) {
        int read = read_cap();
        int unread = CAP_NOT_READ;
        value =
            __atomic_compare_exchange_n(&known, &unread, read, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? read : unread;
    }
    return value;
}

sl_isa sl_cpu_cap(void) {
    int value = isa_cap();
    return value < SL_ISA_COUNT ? (sl_isa)value : SL_ISA_COUNT;
}

/* Each x86 tier counts as above the one before, and AMX as above all of them. NEON is above scalar only. */
static unsigned tiers_up_to(int cap_value) {
    if (cap_value == CAP_UNSET) return ~0u;
    if (cap_value == CAP_UNKNOWN_WORD) return tier_bit(SL_ISA_SCALAR);
    if (cap_value == SL_ISA_NEON) return tier_bit(SL_ISA_SCALAR) | tier_bit(SL_ISA_NEON);
    return ((2u << cap_value) - 1) & ~tier_bit(SL_ISA_NEON);
}

/* Results of cpuid. Bits of single instructions follow the bits of the tiers. */
#define HAS_CRC32C     (1u << SL_ISA_COUNT)
#define HAS_AVX512BF16 (2u << SL_ISA_COUNT)
#define IS_KNOWN       (1u << 31)

#if defined(__x86_64__)

#define ALL_OF(value, bits) (((value) & (bits)) == (bits))

/* Returns the registers that the system saves and restores. Instructions on other registers fault, even if the
 * processor has them. */
static unsigned long long saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}
#define STATE_YMM 0x06u /* SSE and AVX */
#define STATE_ZMM 0xe6u /* and mask registers, upper halves, upper registers */
#define STATE_AMX 0x60000u

/* Bits of leaf 7 that the compiler's header does not name. */
#define LEAF7_EBX_AVX2      (1u << 3 | 1u << 5 | 1u << 8)               /* and BMI1, BMI2 */
#define LEAF7_EBX_AVX512    (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
#define LEAF7_ECX_VNNI      (1u << 11)
#define LEAF7_EDX_AMX       (1u << 24 | 1u << 25) /* TILE, INT8 */
#define LEAF7_1_EAX_AVXVNNI (1u << 4)
#define LEAF7_1_EAX_BF16    (1u << 5)
#define LEAF1_ECX_OSXSAVE   (1u << 27)
#define LEAF1_ECX_AVX2_KIN  (1u << 12 | 1u << 28 | 1u << 29) /* FMA, AVX, F16C */
#define LEAF1_ECX_SSE42     (1u << 20)

/* Asks Linux to save the matrix registers of this process. Linux refuses if a thread's signal stack is too small for
 * them. Once it has agreed, it refuses such stacks. Under a cap below AMX, the library doesn't ask. */
static int matrices_allowed(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ASK_FOR_STATE = 0x1023, AMX_DATA = 18 };
    return (tiers_up_to(isa_cap()) & tier_bit(SL_ISA_AMXINT8)) && syscall(SYS_arch_prctl, ASK_FOR_STATE, AMX_DATA) == 0;
#else
    return 0;
#endif
}

static unsigned read_processor(void) {
    unsigned found = tier_bit(SL_ISA_SCALAR);
    unsigned a, b, c, d;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return found;
    if (c & LEAF1_ECX_SSE42) found |= HAS_CRC32C;
    if (!ALL_OF(c, LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX2_KIN)) return found;
    unsigned long long state = saved_state();
    if (!ALL_OF(state, STATE_YMM)) return found;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !ALL_OF(b, LEAF7_EBX_AVX2)) return found;
    found |= tier_bit(SL_ISA_AVX2);
    if (ALL_OF(state, STATE_ZMM) && ALL_OF(b, LEAF7_EBX_AVX512)) {
        found |= tier_bit(SL_ISA_AVX512BW);
        if (c & LEAF7_ECX_VNNI) found |= tier_bit(SL_ISA_AVX512VNNI);
    }
    if ((found & tier_bit(SL_ISA_AVX512VNNI)) && ALL_OF(state, STATE_AMX) && ALL_OF(d, LEAF7_EDX_AMX) &&
        matrices_allowed())
        found |= tier_bit(SL_ISA_AMXINT8);
    unsigned subleaves = a;
    if (subleaves < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return found;
    if (a & LEAF7_1_EAX_AVXVNNI) found |= tier_bit(SL_ISA_AVXVNNI);
    if ((found & tier_bit(SL_ISA_AVX512BW)) && (a & LEAF7_1_EAX_BF16)) found |= HAS_AVX512BF16;
    return found;
}

#elif defined(__aarch64__) && defined(__linux__)

static unsigned read_processor(void) {
    unsigned found = tier_bit(SL_ISA_SCALAR);
    unsigned long caps = getauxval(AT_HWCAP);
    if (caps & HWCAP_CRC32) found |= HAS_CRC32C;
    if (caps & HWCAP_ASIMDDP) found |= tier_bit(SL_ISA_NEON);
    return found;
}

#else

static unsigned read_processor(void) {
    return tier_bit(SL_ISA_SCALAR);
}

#endif

/* The first thread's answer holds: Linux may refuse AMX to one thread and allow it to the next. */
static unsigned processor(void) {
    static unsigned known;
    unsigned value = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!value) {
        const unsigned found = read_processor() | IS_KNOWN;
        const int first = __atomic_compare_exchange_n(&known, &value, found, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        if (first) value = found;
    }
    return value;
}

unsigned sl_cpu_tiers(void) {
    return processor() & (HAS_CRC32C - 1);
}

int sl_cpu_has_crc32c(void) {
    return (processor() & HAS_CRC32C) != 0;
}

int sl_cpu_has_avx512bf16(void) {
    return (processor() & HAS_AVX512BF16) != 0;
}

static sl_isa best_tier(void) {
    unsigned tiers = sl_cpu_tiers() & tiers_up_to(isa_cap());
    sl_isa best = SL_ISA_SCALAR;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++)
        if (tiers & tier_bit((sl_isa)isa)) best = (sl_isa)isa;
    return best;
}

/* Keeps the tier, because encoding asks for it at each row. */
sl_isa sl_cpu_tier(void) {
    static unsigned known = SL_ISA_COUNT;
    unsigned value = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (value == SL_ISA_COUNT) {
        value = best_tier();
        __atomic_store_n(&known, value, __ATOMIC_RELAXED);
    }
    return (sl_isa)value;
}
