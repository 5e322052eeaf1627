/* Memory and CPUs that the command uses. */
#ifndef CLI_COMMON_SYSTEM_H
#define CLI_COMMON_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Allocates `count` zeroed elements of `size` bytes, to be freed by free(). Returns NULL and reports if memory is
 * short. An array of no elements is a valid block. */
void *allocate(size_t count, size_t size);

/* A list of CPU numbers. */
typedef struct cpu_list {
    size_t *cpus;
    size_t count;
} cpu_list;

/* Lists the CPUs that this process may use. The caller frees list->cpus by free(). Returns an exit status. */
int cpu_list_allowed(cpu_list *list);

/* Binds the calling thread to these CPUs, at least one. Returns -1 with errno if the system refuses. */
int cpu_pin(const size_t *cpus, size_t count);

/* Bytes that this user can still write to a folder's file system; 0: unknown. */
uint64_t free_space(const char *folder);

/* Bytes of memory that a process holds. */
typedef struct memory_use {
    int known;     /* whether the system knows */
    uint64_t pss;  /* proportional share: a page of n processes counts 1 / n */
    uint64_t huge; /* mapped by huge pages; shared pages count in full */
} memory_use;

memory_use memory_of(pid_t process);

/* The number of threads that a call uses if asked for this many: at most sl_system.most_threads. 0 asks for all. */
size_t thread_count(size_t asked);

#endif
