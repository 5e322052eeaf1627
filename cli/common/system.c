#include "cli/common/system.h"

#include "cli/common/report.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

void *allocate(size_t count, size_t size) {
    void *block = calloc(count ? count : 1, size);
    if (!block) (void)report_failure("out of memory: cannot hold %zu times %zu bytes; free some memory", count, size);
    return block;
}

/* Gets the allowed CPUs. The set grows until the kernel's set fits, because machines may have more CPUs than
 * CPU_SETSIZE. */
static cpu_set_t *allowed_set(size_t *size, size_t *cpus) {
    for (*cpus = 1024; *cpus <= 1 << 20; *cpus *= 2) {
        *size = CPU_ALLOC_SIZE(*cpus);
        cpu_set_t *set = CPU_ALLOC(*cpus);
        if (!set) return NULL;
        if (sched_getaffinity(0, *size, set) == 0) return set;
        CPU_FREE(set);
        if (errno != EINVAL) return NULL;
    }
    return NULL;
}

int cpu_list_allowed(cpu_list *list) {
    size_t size, cpus;
    cpu_set_t *set = allowed_set(&size, &cpus);
    if (!set) return report_failure("cannot learn which CPUs this process may use: %s", strerror(errno));
    *list = (cpu_list){allocate((size_t)CPU_COUNT_S(size, set), sizeof *list->cpus), 0};
    if (list->cpus)
        for (size_t cpu = 0; cpu < cpus; cpu++)
            if (CPU_ISSET_S(cpu, size, set)) list->cpus[list->count++] = cpu;
    CPU_FREE(set);
    return list->cpus ? EXIT_DONE : EXIT_FAILED;
}

int cpu_pin(const size_t *cpus, size_t count) {
    size_t last = 0;
    for (size_t i = 0; i < count; i++)
        if (cpus[i] > last) last = cpus[i];
    cpu_set_t *set = CPU_ALLOC(last + 1);
    if (!set) return -1;
    size_t size = CPU_ALLOC_SIZE(last + 1);
    CPU_ZERO_S(size, set);
    for (size_t i = 0; i < count; i++)
        CPU_SET_S(cpus[i], size, set);
    int result = sched_setaffinity(0, size, set);
    int error = errno;
    CPU_FREE(set);
    errno = error;
    return result;
}

uint64_t free_space(const char *folder) {
    struct statvfs system;
    return statvfs(folder, &system) == 0 ? (uint64_t)system.f_bavail * system.f_frsize : 0;
}

/* Reads a line such as "Name:   1234 kB". */
static void read_memory_line(const char *line, memory_use *use) {
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {{"Pss:", offsetof(memory_use, pss)},
                  {"AnonHugePages:", offsetof(memory_use, huge)},
                  {"ShmemPmdMapped:", offsetof(memory_use, huge)},
                  {"FilePmdMapped:", offsetof(memory_use, huge)}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t length = strlen(fields[i].name);
        if (strncmp(line, fields[i].name, length) != 0) continue;
        uint64_t *field = (uint64_t *)(void *)((char *)use + fields[i].offset);
        *field += 1024 * strtoull(line + length, NULL, 10);
        use->known |= fields[i].offset == offsetof(memory_use, pss);
    }
}

memory_use memory_of(pid_t process) {
    memory_use use = {0};
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)process);
    FILE *file = fopen(path, "re");
    if (!file) return use;
    while (fgets(line, sizeof line, file))
        read_memory_line(line, &use);
    fclose(file);
    return use;
}

size_t thread_count(size_t asked) {
    sl_system system = {.struct_size = sizeof system};
    if (sl_system_query(&system) != SL_OK) return asked;
    size_t count = asked ? asked : system.max_threads;
    return count < system.most_threads ? count : system.most_threads;
}
