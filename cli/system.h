/* What the command asks of the operating system: time, interruption, memory, CPUs. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Monotonic. */
int64_t now_ns(void);
double now_seconds(void);

/* From here on a first SIGINT, SIGTERM or SIGHUP only sets a flag, so that the work under way can undo itself; a second
 * one ends the process at once. A write beyond RLIMIT_FSIZE becomes an error instead of a signal. */
void interrupt_install(void);
/* Whether that first signal has come. */
int interrupted(void);

/* From here on the command ends where a file that it maps became shorter: with one line on stderr and EXIT_FAILED, its
 * unfinished outputs removed, and not by the SIGBUS that the system sends. `command` is the one whose name the line
 * begins with. */
void shortened_install(const char *command);
/* Of a child that its parent speaks for: from here on it ends so without a word, by EXIT_SHORTENED. */
void shortened_leave_to_parent(void);
enum { EXIT_SHORTENED = 3 };
/* What the line says. */
#define SHORTENED                                                                                                      \
    "a file that was mapped became shorter while it was read, or can no longer be read; put whole files in its place " \
    "by renaming, or use --place dram"

/* `count` elements of `size` bytes, zeroed, freed by free(); NULL, and the failure reported, where they are not to be
 * had. An array of no elements is a valid block. */
void *allocate(size_t count, size_t size);

/* A list of CPU numbers. */
typedef struct cpu_list {
    size_t *cpus;
    size_t count;
} cpu_list;

/* The CPUs this process may run on; returns an exit status. The list is freed by free(list->cpus). */
int cpu_list_allowed(cpu_list *list);

/* Binds the calling thread to these CPUs, at least one; -1, with errno, where that is refused. */
int cpu_pin(const size_t *cpus, size_t count);

/* Bytes that this user may still write to the file system of a folder; 0 where that is not known. */
uint64_t free_space(const char *folder);

/* What a process holds of memory, in bytes. */
typedef struct memory_use {
    int known;     /* the system tells */
    uint64_t pss;  /* its proportional share: a page held by n processes counts for an nth */
    uint64_t huge; /* mapped by huge pages, shared ones in full */
} memory_use;

memory_use memory_of(pid_t process);

#endif
