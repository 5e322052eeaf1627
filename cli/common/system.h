/* Memory and CPUs, as the command uses them. */
#ifndef CLI_COMMON_SYSTEM_H
#define CLI_COMMON_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Gets `count` zeroed elements of `size` bytes, to be freed by free(). NULL, reported: there is no memory. An array
 * of no elements is a valid block. */
void *allocate(size_t count, size_t size);

/* A list of CPU numbers. */
typedef struct cpu_list {
    size_t *cpus;
    size_t count;
} cpu_list;

/* Lists the CPUs that this process may run on. Returns an exit status. The list is freed by free(list->cpus). */
int cpu_list_allowed(cpu_list *list);

/* Binds the calling thread to these CPUs, at least one. -1, with errno: refused. */
int cpu_pin(const size_t *cpus, size_t count);

/* Bytes that this user may still write to a folder's file system; 0: not known. */
uint64_t free_space(const char *folder);

/* Bytes of memory that a process holds. */
typedef struct memory_use {
    int known;     /* whether the system tells */
    uint64_t pss;  /* proportional share: a page that n processes hold counts for an nth */
    uint64_t huge; /* mapped by huge pages, shared ones in full */
} memory_use;

memory_use memory_of(pid_t process);

/* The number of threads that a call uses when asked for so many: at most what the library makes. 0 asks for all. */
size_t thread_count(size_t asked);

#endif
