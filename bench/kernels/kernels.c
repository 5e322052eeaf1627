/* ns a score, by tier, dim, codes and place, and side by side with other libraries' i8 dot products. */
#include "side_by_side.h"

#include "base/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t dims[] = {32, 64, 100, 128, 256, 384, 768, 1024};
static const size_t quick_dims[] = {100, 384};
#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct options {
    int quick;
    const size_t *dims;
    size_t dim_count, rounds;
    FILE *json; /* NULL: only the tables */
} options;

static void json(const options *o, const char *text) {
    if (o->json) fputs(text, o->json);
}

/* Objects of a list, a comma between them. */
#define JSON_ITEM(o, first, ...)                                                                                       \
    do {                                                                                                               \
        if ((o)->json) {                                                                                               \
            fputs((first) ? "\n    " : ",\n    ", (o)->json);                                                          \
            fprintf((o)->json, __VA_ARGS__);                                                                           \
        }                                                                                                              \
    } while (0)

static int fail(const char *what) {
    fprintf(stderr, "kernels: %s\n", what);
    return 0;
}

static void print_dims(const options *o) {
    for (size_t d = 0; d < o->dim_count; d++)
        printf(" %8zu", o->dims[d]);
    printf("\n");
}

static int report_l1(const options *o) {
    const size_t bytes = 16384;
    block b;
    if (!block_map(&b, (size_t)1 << 20, 0)) return fail("out of memory");
    printf("\nns a score, rows in L1 (16 KiB, or 8 rows), %u rows a call\n%-11s %-5s", BATCH, "tier", "d");
    print_dims(o);
    json(o, "  \"l1\": [");
    int first = 1, ok = 1;
    for (int isa = 0; isa < SL_ISA_COUNT; isa++) {
        const sl_kernels *kernels = sl_kernels_of((sl_isa)isa);
        if (!kernels) continue;
        for (int codes = SL_CODES_I8; ok && codes <= SL_CODES_F32; codes++) {
            printf("%-11s %-5s", sl_isa_name((sl_isa)isa), sl_codes_name((sl_codes)codes));
            for (size_t d = 0; ok && d < o->dim_count; d++) {
                setup s;
                size_t eight = 8 * 4 * (o->dims[d] + 64);
                ok = setup_init(&s, &b, bytes > eight ? bytes : eight, o->dims[d], (sl_codes)codes, 4 * CHUNK);
                if (!ok) break;
                double ns = time_scores(kernels, &s, BATCH, 0, o->rounds);
                printf(" %8.2f", ns);
                JSON_ITEM(o, first, "{\"isa\": \"%s\", \"codes\": \"%s\", \"dim\": %zu, \"ns\": %.3f}",
                          sl_isa_name((sl_isa)isa), sl_codes_name((sl_codes)codes), o->dims[d], ns);
                first = 0;
                setup_free(&s);
            }
            printf("\n");
        }
    }
    json(o, "\n  ],\n");
    block_unmap(&b);
    return ok ? 1 : fail("out of memory");
}

/* One block of rows: every dim and prefetch distance. `first` tells whether JSON's list is still empty. */
static int report_block(const options *o, const block *b, size_t bytes, const char *place, const char *pages,
                        int *first) {
    static const size_t aheads[] = {0, 8, 16, 32};
    for (size_t a = 0; a < COUNT(aheads); a++) {
        printf("%-8s %-7s %5zu ", place, pages, aheads[a]);
        for (size_t d = 0; d < o->dim_count; d++) {
            setup s;
            if (!setup_init(&s, b, bytes, o->dims[d], SL_CODES_I8, o->quick ? 1u << 14 : 1u << 16))
                return fail("out of memory");
            double ns = time_scores(sl_kernels_best(), &s, CHUNK, aheads[a], o->quick ? 2 : 5);
            printf(" %8.2f", ns);
            JSON_ITEM(o, *first,
                      "{\"place\": \"%s\", \"pages\": \"%s\", \"huge_bytes\": %zu, \"ahead\": %zu, \"dim\": %zu, "
                      "\"ns\": %.3f}",
                      place, pages, b->huge, aheads[a], o->dims[d], ns);
            *first = 0;
            setup_free(&s);
        }
        printf("\n");
    }
    return 1;
}

static int report_places(const options *o) {
    static const struct {
        const char *name;
        size_t bytes;
    } places[] = {{"36 MiB", (size_t)36 << 20}, {"1 GiB", (size_t)1 << 30}};
    printf("\nns a score, i8, %s, random rows of a block, %u a call\n%-8s %-7s %5s ", sl_isa_name(sl_cpu_tier()), CHUNK,
           "place", "pages", "ahead");
    print_dims(o);
    json(o, "  \"places\": [");
    int first = 1;
    for (size_t p = 0; p < COUNT(places); p++)
        for (int huge = 0; huge < 2; huge++) {
            block b;
            if (!block_map(&b, places[p].bytes, huge)) return fail("out of memory");
            int ok = report_block(o, &b, places[p].bytes, places[p].name, huge ? "2 MB" : "4 KB", &first);
            if (huge && b.huge < places[p].bytes / 10 * 9)
                printf("(the system put %zu of %zu MiB on 2 MB pages)\n", b.huge >> 20, places[p].bytes >> 20);
            block_unmap(&b);
            if (!ok) return 0;
        }
    json(o, "\n  ],\n");
    return 1;
}

static int report_peer(const options *o, const peer *other, int *first) {
    for (size_t d = 0; d < o->dim_count; d++) {
        comparison c;
        if (!compare(sl_kernels_best(), other, o->dims[d], o->quick ? 51 : 301, &c))
            return fail("out of memory, or a peer's product differs from ours");
        double target = o->dims[d] == 100 ? 0.75 : o->dims[d] == 384 ? 0.45 : 0;
        printf("%-16s %6zu %9.2f %9.2f %8.3f   %.3f .. %.3f   %.3f .. %.3f", other->name, o->dims[d], c.ours_ns,
               c.peer_ns, c.ratio, c.quarter, c.three_quarters, c.low, c.high);
        if (target > 0) printf("   %s %.2f", c.ratio <= target ? "reaches" : "misses", target);
        printf("\n");
        JSON_ITEM(o, *first,
                  "{\"peer\": \"%s\", \"dim\": %zu, \"ours_ns\": %.3f, \"peer_ns\": %.3f, \"ratio\": %.4f, "
                  "\"percentiles_25_75\": [%.4f, %.4f], \"percentiles_5_95\": [%.4f, %.4f]}",
                  other->name, o->dims[d], c.ours_ns, c.peer_ns, c.ratio, c.quarter, c.three_quarters, c.low, c.high);
        *first = 0;
    }
    return 1;
}

static int report_peers(const options *o) {
    static const peer *const peers[] = {
#ifdef HAVE_PEERS
        &peer_simsimd, &peer_numkong,
#endif
        NULL};
    json(o, "  \"side_by_side\": [");
    if (peers[0])
        printf("\nside by side in L1: ours is the score kernel over biased i8 rows (product, scale and factor), %s, %u "
               "rows a call;\ntheirs their i8 dot product over signed rows, one row a call, inlined, compiled for this "
               "machine; interleaved rounds\n%-16s %6s %9s %9s %8s   %-16s %s\n",
               sl_isa_name(sl_cpu_tier()), BATCH, "peer", "d", "ours ns", "peer ns", "ratio", "25 .. 75 %",
               "5 .. 95 %");
    else
        printf("\nside by side: not in this build; bench/kernels.sh makes one with the peers\n");
    int first = 1;
    for (size_t p = 0; peers[p]; p++)
        if (!report_peer(o, peers[p], &first)) return 0;
    json(o, "\n  ]\n");
    return 1;
}

static int parse(options *o, int argc, char **argv) {
    *o = (options){.dims = dims, .dim_count = COUNT(dims), .rounds = 300};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            *o = (options){1, quick_dims, COUNT(quick_dims), 30, o->json};
        } else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            o->json = fopen(argv[++i], "w");
            if (!o->json) return fail("cannot write the file that --json names");
        } else {
            return fail("usage: kernels [--quick] [--json FILE]");
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    options o;
    if (!parse(&o, argc, argv)) return 2;
    printf("Shortlist %s, tier %s\n", sl_version(), sl_isa_name(sl_cpu_tier()));
    if (o.json) fprintf(o.json, "{\n  \"isa\": \"%s\",\n", sl_isa_name(sl_cpu_tier()));
    int ok = report_l1(&o) && report_places(&o) && report_peers(&o);
    json(&o, "}\n");
    if (o.json && fclose(o.json) != 0) ok = fail("writing the file that --json names failed");
    return !ok;
}
