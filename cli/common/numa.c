#include "cli/common/numa.h"

#include "cli/common/json_out.h"
#include "cli/common/report.h"
#include "cli/common/size_text.h"

static int has_cpu(const sl_cpu_set *cpus, size_t cpu) {
    return cpu < SL_MAX_CPUS && (cpus->words[cpu / 64] >> (cpu % 64) & 1);
}

/* Writes the CPUs as "0-15,64-79", cut to the size. */
static void list_cpus(const sl_cpu_set *cpus, char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t cpu = 0; cpu < SL_MAX_CPUS && length + 1 < size; cpu++) {
        size_t last = cpu;
        if (!has_cpu(cpus, cpu)) continue;
        while (has_cpu(cpus, last + 1))
            last++;
        int wrote = last > cpu ? snprintf(text + length, size - length, "%s%zu-%zu", length ? "," : "", cpu, last)
                               : snprintf(text + length, size - length, "%s%zu", length ? "," : "", cpu);
        length += wrote > 0 ? (size_t)wrote : 0;
        cpu = last;
    }
}

void json_nodes(json *json) {
    sl_numa_node node = {.struct_size = sizeof node};
    char cpus[256];
    json_open_array(json, "nodes");
    for (size_t i = 0; i < SL_MAX_NODES; i++) {
        if (sl_numa_get_node(i, &node) != SL_OK) continue;
        list_cpus(&node.cpus, cpus, sizeof cpus);
        json_open_object(json, NULL);
        json_count(json, "node", i);
        json_count(json, "cpus", node.cpu_count);
        json_text(json, "cpu_list", cpus);
        json_count(json, "memory_bytes", node.memory);
        json_close_object(json);
    }
    json_close_array(json);
}

void print_nodes(void) {
    sl_numa_node node = {.struct_size = sizeof node};
    char cpus[256];
    for (size_t i = 0; i < SL_MAX_NODES; i++) {
        if (sl_numa_get_node(i, &node) != SL_OK) continue;
        list_cpus(&node.cpus, cpus, sizeof cpus);
        printf("  node %-4zu %s, %zu CPU%s%s%s\n", i, text_of_size(node.memory).text, node.cpu_count,
               node.cpu_count == 1 ? "" : "s", cpus[0] ? ": " : "", cpus);
    }
}

int numa_of_index(const sl_index *index, const char *path, sl_index_numa *out) {
    *out = (sl_index_numa){.struct_size = sizeof *out};
    sl_status status = sl_index_get_numa(index, out);
    return status == SL_OK ? EXIT_DONE : report_status(path, status);
}

void json_numa(json *json, const sl_index_numa *numa) {
    char policy[32];
    json_open_object(json, "numa");
    json_text(json, "policy", sl_numa_format(numa->policy, numa->node, policy, sizeof policy));
    json_open_array(json, "bytes_by_node");
    for (size_t node = 0; node < numa->nodes; node++)
        json_count(json, NULL, numa->bytes[node]);
    json_close_array(json);
    json_count(json, "bytes_absent", numa->bytes_absent);
    json_count(json, "upper_copies", numa->copies);
    json_close_object(json);
}

void print_numa(const sl_index_numa *numa) {
    char policy[32];
    printf("layer 0, NUMA policy %s: on memory node", sl_numa_format(numa->policy, numa->node, policy, sizeof policy));
    for (size_t node = 0; node < numa->nodes; node++)
        printf("%s %zu %s", node ? "," : "", node, text_of_size(numa->bytes[node]).text);
    if (numa->bytes_absent) printf("; not in memory %s", text_of_size(numa->bytes_absent).text);
    if (numa->copies) printf("; copies of the upper layers on %zu of the nodes", numa->copies);
    putchar('\n');
}
