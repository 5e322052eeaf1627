/* The operating system as the command uses it: time, interruption, memory, CPUs. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Seconds or nanoseconds of a monotonic clock. */
int64_t now_ns(void);
double now_seconds(void);

/* Makes the first SIGINT, SIGTERM or SIGHUP only set a flag, so that the current work can undo itself. A second one
 * ends the process at once. A write beyond RLIMIT_FSIZE becomes an error in place of a signal. */
void interrupt_install(void);
/* Tells whether the first signal has come. */
int interrupted(void);
/* Ends the process by SIGINT itself where that came, once all is put in order. A shell then ends its loop too. Returns
 * `status` where it did not come. */
int end_as_asked(int status);

/* Ends the command with one line on stderr and EXIT_FAILED when a mapped file became shorter. The system would send
 * SIGBUS. Unfinished outputs are removed. The line begins with the name of `command`. */
void shortened_install(const char *command);
/* Does the same for a child whose parent reports for it: the child ends without a word, by EXIT_SHORTENED. */
void shortened_leave_to_parent(void);
enum { EXIT_SHORTENED = 3 };
/* The text of that line. */
#define SHORTENED                                                                                                      \
    "a file that was mapped became shorter while it was read, or can no longer be read; put whole files in its place " \
    "by renaming, or use --place dram"

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

#endif
