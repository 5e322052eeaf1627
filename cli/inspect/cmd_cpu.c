#include "cli/common/json_out.h"
#include "cli/common/numa.h"
#include "cli/common/options.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"
#include "cli/files/vectors.h"
#include "cli/inspect/commands.h"

typedef struct cpu_options {
    int json;
} cpu_options;

/* A feature of this build. */
typedef struct part {
    const char *key, *name;
    int present;
} part;

#define PARTS 5

static void list_parts(const sl_system *system, part *out) {
    const part parts[PARTS] = {
        {"openmp", "OpenMP", system->has_openmp}, {"numa", "libnuma", system->has_numa},
        {"pmem", "PMem", system->has_pmem},       {"onednn", "oneDNN", system->has_onednn},
        {"hdf5", "HDF5", vectors_reads_hdf5()},
    };
    for (size_t i = 0; i < PARTS; i++)
        out[i] = parts[i];
}

static void print_json(const sl_system *system, const part *parts) {
    json json;
    json_begin(&json, stdout);
    json_text(&json, "version", sl_version());
    json_text(&json, "isa", sl_isa_name(system->isa));
    json_open_array(&json, "isa_available");
    for (unsigned isa = 0; isa < SL_ISA_COUNT; isa++)
        if (system->isa_available >> isa & 1) json_text(&json, NULL, sl_isa_name((sl_isa)isa));
    json_close_array(&json);
    json_count(&json, "cpus", system->cpus);
    json_count(&json, "threads", system->max_threads);
    json_count(&json, "memory_bytes", system->memory);
    json_count(&json, "numa_nodes", system->numa_nodes);
    json_nodes(&json);
    json_count(&json, "page_size", system->page_size);
    json_count(&json, "huge_page_size", system->huge_page_size);
    json_text(&json, "huge_page_mode", system->huge_page_mode);
    for (size_t i = 0; i < PARTS; i++)
        json_flag(&json, parts[i].key, parts[i].present);
    json_end(&json);
}

static void print_text(const sl_system *system, const part *parts) {
    printf("shortlist   %s\n", sl_version());
    printf("ISA tier    %s in use; available:", sl_isa_name(system->isa));
    for (unsigned isa = 0; isa < SL_ISA_COUNT; isa++)
        if (system->isa_available >> isa & 1) printf(" %s", sl_isa_name((sl_isa)isa));
    printf("\nCPUs        %zu, %zu threads by default\n", system->cpus, system->max_threads);
    printf("memory      %s\n", text_of_size(system->memory).text);
    printf("NUMA nodes  %zu\n", system->numa_nodes);
    print_nodes();
    printf("pages       %s", text_of_size(system->page_size).text);
    if (system->huge_page_size)
        printf(", transparent huge pages of %s: %s", text_of_size(system->huge_page_size).text, system->huge_page_mode);
    putchar('\n');
    for (size_t i = 0; i < PARTS; i++)
        printf("%-11s %s\n", parts[i].name, parts[i].present ? "yes" : "not in this build");
}

static int run_cpu(const command *self, int argc, char **argv) {
    cpu_options options = {0};
    OPTIONS_PARSE(self, argc, argv, &options, NULL);
    sl_system system = {.struct_size = sizeof system};
    sl_status status = sl_system_query(&system);
    if (status != SL_OK) return report_status(NULL, status);
    part parts[PARTS];
    list_parts(&system, parts);
    if (options.json)
        print_json(&system, parts);
    else
        print_text(&system, parts);
    return report_stdout();
}

static const char *const operands[] = {NULL};

static const option cpu_table[] = {OPTION_JSON(cpu_options), OPTION_LAST};

const command command_cpu = {
    .name = "cpu",
    .summary = "show what this machine and build can use",
    .synopsis = "shortlist cpu [--json]",
    .description = "Prints the instruction-set tier the kernels run on and the available tiers. It also prints the "
                   "CPUs, the NUMA nodes with the CPUs and the memory of each, and the page sizes. Last come the "
                   "optional parts this build was made with. SHORTLIST_MAX_ISA caps the tier: "
                   "scalar, avx2, avxvnni, avx512bw, avx512vnni, amxint8 or neon; any other word caps it at scalar.\n",
    .examples = "shortlist cpu\nSHORTLIST_MAX_ISA=avx2 shortlist cpu --json\n",
    .operands = operands,
    .options = cpu_table,
    .run = run_cpu,
};
