/* Counts what a process executes: PID STEPS FOLDER. Steps the busiest thread of the process, instruction by
 * instruction, until it has executed STEPS instructions of the libraries in FOLDER (but numpy's), and prints the counts
 * as JSON.
 *
 * A kernel that a library holds but never calls is so told from one that runs. x86-64 alone. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPANS = 512, KNOWN = 1 << 18, MOST_SECONDS = 20, LONGEST = 16 };

/* Kinds of instructions. An instruction has a width or none, and may have a use. */
enum { OWN = 1, WIDE = 2, HALF = 4, NARROW = 8, DOT = 16, TILE = 32, PREFETCH = 64, SEEN = 128 };

typedef struct span {
    uint64_t from, to;
} span;

static span spans[SPANS];
static size_t span_count;
static uint64_t known_at[KNOWN];
static uint8_t known_kinds[KNOWN];
static size_t known_count;

/* ---- A library's own instructions ---- */

static void read_spans(long pid, const char *folder) {
    char name[64], line[4096];
    snprintf(name, sizeof name, "/proc/%ld/maps", pid);
    FILE *maps = fopen(name, "r");
    while (maps && span_count < SPANS && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char mode[8];
        int path = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &from, &to, mode, &path) < 3 || mode[2] != 'x' || !path)
            continue;
        if (strncmp(line + path, folder, strlen(folder)) == 0 && !strstr(line + path, "/numpy"))
            spans[span_count++] = (span){from, to};
    }
    if (maps) fclose(maps);
}

static int is_own(uint64_t at) {
    for (size_t i = 0; i < span_count; i++)
        if (at >= spans[i].from && at < spans[i].to) return 1;
    return 0;
}

/* ---- Kinds of instructions ---- */

static int is_byte_dot(unsigned map, unsigned prefix, unsigned op) {
    return map == 2 && prefix == 1 && op >= 0x50 && op <= 0x53; /* vpdpbusd, vpdpbusds, vpdpwssd, vpdpwssds */
}

/* EVEX: AVX-512, of any width. A rounding mode takes the place of the width: the width is then 512 bits. */
static int evex(const uint8_t *b) {
    unsigned length = b[3] >> 5 & 3u, rounds = (b[3] & 0x10u) && b[5] >> 6 == 3;
    int kinds = length == 2 || rounds ? WIDE : length == 1 ? HALF : NARROW;
    return kinds | (is_byte_dot(b[1] & 7u, b[2] & 3u, b[4]) ? DOT : 0);
}

/* VEX: AVX and AVX2, and the tiles of AMX. */
static int vex(const uint8_t *b) {
    unsigned last = b[0] == 0xc5 ? b[1] : b[2], map = b[0] == 0xc5 ? 1 : b[1] & 0x1fu, op = b[0] == 0xc5 ? b[2] : b[3];
    if (map == 2 && (op == 0x5e || op == 0x5c)) return TILE; /* tdpb..d, tdpbf16ps */
    return (last & 4u ? HALF : NARROW) | (is_byte_dot(map, last & 3u, op) ? DOT : 0);
}

static int is_sse(unsigned op) {
    return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x7f) || op == 0xc2 ||
           op == 0xc6 || op >= 0xd0 || op == 0x38 || op == 0x3a;
}

static int kinds_of(const uint8_t *b) {
    while (*b == 0x66 || *b == 0xf2 || *b == 0xf3 || *b == 0x2e || *b == 0x3e || *b == 0x64 || *b == 0x65 || *b == 0x67)
        b++;
    if (*b == 0x62) return evex(b);
    if (*b == 0xc4 || *b == 0xc5) return vex(b);
    if ((*b & 0xf0u) == 0x40) b++;
    if (*b != 0x0f) return 0;
    if (b[1] == 0x18 || b[1] == 0x0d) return PREFETCH;
    return is_sse(b[1]) ? NARROW : 0;
}

static int look_up(pid_t thread, uint64_t at) {
    size_t place = (size_t)((at * 0x9e3779b97f4a7c15u) >> 40) & (KNOWN - 1);
    while (known_kinds[place] && known_at[place] != at)
        place = (place + 1) & (KNOWN - 1);
    if (known_kinds[place]) return known_kinds[place];
    int kinds = SEEN;
    if (is_own(at)) {
        uint8_t bytes[LONGEST + 8] = {0};
        for (size_t i = 0; i < LONGEST; i += sizeof(long)) {
            errno = 0;
            long word = ptrace(PTRACE_PEEKTEXT, thread, (void *)(uintptr_t)(at + i), NULL);
            if (errno) break;
            memcpy(bytes + i, &word, sizeof word);
        }
        kinds |= OWN | kinds_of(bytes);
    }
    if (known_count < KNOWN / 2) {
        known_count++;
        known_at[place] = at;
        known_kinds[place] = (uint8_t)kinds;
    }
    return kinds;
}

/* ---- Stepping ---- */

static unsigned long long time_of(long pid, long thread) {
    char name[96];
    unsigned long long spent = 0;
    snprintf(name, sizeof name, "/proc/%ld/task/%ld/schedstat", pid, thread);
    FILE *file = fopen(name, "r");
    if (file && fscanf(file, "%llu", &spent) != 1) spent = 0;
    if (file) fclose(file);
    return spent;
}

static size_t threads_of(long pid, long *threads, size_t most) {
    char name[64];
    size_t count = 0;
    snprintf(name, sizeof name, "/proc/%ld/task", pid);
    DIR *folder = opendir(name);
    for (struct dirent *entry; folder && count < most && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') threads[count++] = strtol(entry->d_name, NULL, 10);
    if (folder) closedir(folder);
    return count;
}

/* The thread that takes the most time for a twentieth of a second; the first where times are not told. */
static pid_t busiest(long pid) {
    enum { THREADS = 256 };
    long threads[THREADS], found = pid;
    unsigned long long before[THREADS], most = 0;
    size_t count = threads_of(pid, threads, THREADS);
    for (size_t i = 0; i < count; i++)
        before[i] = time_of(pid, threads[i]);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    for (size_t i = 0; i < count; i++) {
        unsigned long long spent = time_of(pid, threads[i]) - before[i];
        if (spent <= most) continue;
        most = spent;
        found = threads[i];
    }
    return (pid_t)found;
}

static int failed(const char *what) {
    printf("{\"why\": \"cannot %s: %s\"}\n", what, strerror(errno));
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long pid = strtol(argv[1], NULL, 10);
    unsigned long long steps = strtoull(argv[2], NULL, 10), own = 0, all = 0, counts[8] = {0};
    read_spans(pid, argv[3]);
    pid_t thread = busiest(pid);
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) return failed("trace it");
    if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) return failed("interrupt it");
    time_t end = time(NULL) + MOST_SECONDS;
    int status;
    while (own < steps && ((all & 0xfff) || time(NULL) < end)) {
        struct user_regs_struct registers;
        if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return failed("wait for it");
        if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) != 0) return failed("read its registers");
        int kinds = look_up(thread, registers.rip), stop = WSTOPSIG(status);
        all++;
        own += (kinds & OWN) != 0;
        for (size_t i = 1; i < 7; i++)
            counts[i] += (unsigned)kinds >> i & 1u;
        long signal = stop == SIGTRAP ? 0 : stop;
        if (ptrace(PTRACE_SINGLESTEP, thread, NULL, (void *)signal) != 0) return failed("step it");
    }
    if (waitpid(thread, &status, __WALL) == thread) ptrace(PTRACE_DETACH, thread, NULL, NULL);
    printf(
        "{\"own\": %llu, \"all\": %llu, \"bits512\": %llu, \"bits256\": %llu, \"bits128\": %llu, \"byte_dot\": %llu, "
        "\"tile\": %llu, \"prefetch\": %llu}\n",
        own, all, counts[1], counts[2], counts[3], counts[4], counts[5], counts[6]);
    return 0;
}
