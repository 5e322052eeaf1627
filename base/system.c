#define _GNU_SOURCE
#include "base/system.h"

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/params.h"
#include "base/thread.h"

#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"

/* Returns how many processors this process may run on. The mask grows until the system accepts it. */
static size_t count_cpus(void) {
    for (int room = 1024; room <= 1 << 20; room *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)room);
        int taken = sched_getaffinity(0, size, set) == 0;
        int count = taken ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (taken) return count > 0 ? (size_t)count : 1;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (size_t)online : 1;
}

static int is_node(const char *name) {
    if (strncmp(name, "node", 4) != 0 || !name[4]) return 0;
    for (name += 4; *name; name++)
        if (!isdigit((unsigned char)*name)) return 0;
    return 1;
}

static size_t count_numa_nodes(void) {
    DIR *folder = opendir(SL_NODE_FOLDER);
    if (!folder) return 1;
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        count += (size_t)is_node(entry->d_name);
    closedir(folder);
    return count ? count : 1;
}

static int read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    char *got = fgets(line, size, file);
    fclose(file);
    return got != NULL;
}

/* The system writes "always [madvise] never", the mode in use in brackets. */
static const char *huge_page_mode(void) {
    static const char *const modes[] = {"always", "madvise", "never"};
    char line[128], bracketed[16];
    if (!read_line(THP_FOLDER "/enabled", line, sizeof line)) return "none";
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        snprintf(bracketed, sizeof bracketed, "[%s]", modes[i]);
        if (strstr(line, bracketed)) return modes[i];
    }
    return "none";
}

static size_t huge_page_size(void) {
    char line[64];
    if (!read_line(THP_FOLDER "/hpage_pmd_size", line, sizeof line)) return 0;
    return (size_t)strtoull(line, NULL, 10);
}

uint64_t sl_system_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    const uint64_t limit = sl_cgroup_memory("");
    return limit < memory ? limit : memory;
}

static void fill_build(sl_system *system) {
#ifdef _OPENMP
    system->has_openmp = 1;
#endif
#ifdef SL_HAVE_NUMA
    system->has_numa = 1;
#endif
#ifdef SL_HAVE_PMEM
    system->has_pmem = 1;
#endif
#ifdef SL_HAVE_ONEDNN
    system->has_onednn = 1;
#endif
    (void)system;
}

sl_status sl_system_query(sl_system *out) {
    SL_TRY(sl_params_check_out(out, "sl_system"));
    long page = sysconf(_SC_PAGESIZE);
    sl_system system = {
        .isa = sl_cpu_tier(),
        .isa_available = sl_cpu_tiers(),
        .cpus = count_cpus(),
        .numa_nodes = count_numa_nodes(),
        .page_size = page > 0 ? (size_t)page : 4096,
        .huge_page_size = huge_page_size(),
        .huge_page_mode = huge_page_mode(),
        .max_threads = sl_thread_limit(),
        .memory = sl_system_memory(),
        .most_threads = sl_thread_most(),
    };
    fill_build(&system);
    sl_params_out(out, &system, sizeof system);
    return SL_OK;
}
