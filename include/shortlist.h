/*
 * Shortlist: vector recall to link into a recommendation service.
 *
 * This header is the contract. What is said here about shapes, units, ownership, thread-safety and errors holds;
 * anything not said here may change.
 *
 * Conventions, everywhere unless an entry says otherwise
 *   - Functions that can fail return sl_status; SL_OK is 0. The detail (what, where, what to do) is in
 *     sl_last_error() of the calling thread until its next failing call.
 *   - Outputs are defined on SL_OK only; a handle that could not be made is set to NULL.
 *   - The caller owns every buffer it passes in; nothing is kept after the call returns. Handles made by a
 *     *_create or *_open are freed by their *_free, which takes NULL.
 *   - Counts and sizes are size_t, sizes are in bytes, ids are uint64_t. Matrices are row-major; `stride` is the
 *     distance between two rows in bytes, 0 meaning dense.
 *   - Parameter structs begin with struct_size and are filled with their defaults by their *_init before use. *_init is
 *     a macro that passes on the size the caller was compiled with, so that a program goes on working with a newer
 *     library, whose structs may have grown.
 *   - The library never prints, aborts, throws, installs signal handlers or changes global state.
 */
#ifndef SHORTLIST_H
#define SHORTLIST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SL_VERSION_MAJOR 0
#define SL_VERSION_MINOR 1
#define SL_VERSION_PATCH 0

#if defined(__GNUC__)
#define SL_API      __attribute__((visibility("default")))
#define SL_MUST_USE __attribute__((warn_unused_result))
#else
#define SL_API
#define SL_MUST_USE
#endif

/* ---------------------------------------------------------------------------------------------------------------
 * Status
 * ------------------------------------------------------------------------------------------------------------- */

/* Numbers are pinned: a status never changes its number, and a number is never used again. */
#define SL_STATUS_MAP(X)                                                                                               \
    X(OK, 0, "success")                                                                                                \
    X(EINVAL, 1, "invalid argument")                                                                                   \
    X(ENOMEM, 2, "out of memory")                                                                                      \
    X(EIO, 3, "input or output failed")                                                                                \
    X(EFORMAT, 4, "not a file of the expected format")                                                                 \
    X(EVERSION, 5, "file of a version this library does not read")                                                     \
    X(ECORRUPT, 6, "file or index is damaged")                                                                         \
    X(EEXIST, 7, "id is already in the index")                                                                         \
    X(ENOTFOUND, 8, "not found")                                                                                       \
    X(EUNSUPPORTED, 9, "not supported by this build or machine")                                                       \
    X(ECANCELED, 10, "cancelled by the progress callback")                                                             \
    X(EBUSY, 11, "in use")                                                                                             \
    X(EDIM, 12, "wrong dimension")                                                                                     \
    X(ETYPE, 13, "wrong element type")                                                                                 \
    X(EVALUE, 14, "vector with NaN, infinity, or zero length under cosine")                                            \
    X(EREADONLY, 15, "index is read-only")                                                                             \
    X(ENOSPC, 16, "no space left on the device")                                                                       \
    X(ELIMIT, 17, "beyond a documented limit")

typedef enum sl_status {
#define SL_X(name, number, text) SL_##name = number,
    SL_STATUS_MAP(SL_X)
#undef SL_X
} sl_status;

/* The status's name ("SL_EINVAL") and its one-line meaning; never NULL, static storage. */
SL_API const char *sl_status_name(sl_status status);
SL_API const char *sl_status_text(sl_status status);

/* What went wrong in the calling thread's last failing call: what, where, and what to do. Never NULL; "" when no
 * call has failed yet. Valid until the thread's next call into the library. */
SL_API const char *sl_last_error(void);

/* "0.1.0"; static storage. */
SL_API const char *sl_version(void);

/* ---------------------------------------------------------------------------------------------------------------
 * Vocabulary
 * ------------------------------------------------------------------------------------------------------------- */

/* Metric   score of a result                             nearer is
 * IP       inner product x·q                             larger
 * COSINE   x·q / (|x| |q|), in [-1, 1] up to rounding    larger
 * L2       squared Euclidean distance |x - q|²           smaller  */
typedef enum sl_metric { SL_METRIC_IP = 0, SL_METRIC_COSINE = 1, SL_METRIC_L2 = 2 } sl_metric;

/* Element types of vectors handed in. F16 is IEEE binary16, BF16 the upper half of binary32; both as uint16_t. */
typedef enum sl_dtype { SL_F32 = 0, SL_F16 = 1, SL_BF16 = 2, SL_I8 = 3, SL_U8 = 4, SL_I16 = 5 } sl_dtype;

/* Codes of layer 0, what the graph is walked over. From floating-point input, I8 and I16 are quantised with one
 * scale a vector. From I8, U8 or I16 input the data itself is the code, kept exactly, and distances are exact
 * integers. I4 walks over 4 bits an element. Of floating-point input whose 4 bits fit a cache line (dim up to 112, or
 * 120 under COSINE), it keeps 8 more beside them that rank what the walk found: about 12 bits an element in all. Of
 * longer vectors and of integers, up to dim 8192, it keeps what I8 (I16 of I16 input) would, which ranks and is what
 * the index knows of a vector, and 64 or 128 bytes beside it that are walked over: 4 bits of a projection learned from
 * the first vectors, and anew as the index grows. */
typedef enum sl_codes { SL_CODES_I8 = 0, SL_CODES_I16 = 1, SL_CODES_F32 = 2, SL_CODES_I4 = 3 } sl_codes;

/* A second tier, of floating-point input, that re-ranks the best of what the graph found.
 *   F32   the vector as it was given
 *   BF16  what the codes leave of the vector, in bf16: with 8-bit codes some 16 bits an element in all
 *   I16   the vector in 16-bit integers with a scale of its own */
typedef enum sl_refine { SL_REFINE_NONE = 0, SL_REFINE_F32 = 1, SL_REFINE_BF16 = 2, SL_REFINE_I16 = 3 } sl_refine;

/* Where layer 0 lives: copied into DRAM, mapped from its file, or persistent memory. */
typedef enum sl_place { SL_PLACE_DRAM = 0, SL_PLACE_MAP = 1, SL_PLACE_PMEM = 2 } sl_place;

/* How layer 0 lies in a file. ARRAYS: its codes, links and ids each in an array of its own, as in memory; the smallest.
 * RECORDS: those of one vector, with a checksum, side by side in a record of a multiple of 256 bytes that begins at
 * one, which is what persistent memory reads at a time: a walk over a slow medium asks it once for a vector. Of codes
 * I4 the rows of 4 bits stay together, apart from the records. */
typedef enum sl_layout { SL_LAYOUT_ARRAYS = 0, SL_LAYOUT_RECORDS = 1 } sl_layout;

/* On which of a machine's memory nodes (NUMA) the pages of layer 0 come to lie.
 *   DEFAULT     as the system has it for the process: numactl's wish, or else the node of who touches a page first
 *   INTERLEAVE  in turns on all nodes that the process may use: the same to threads wherever they run
 *   BIND        on one node. Where that is full, the system ends the process, as under numactl --membind
 *   LOCAL       on the node of the thread that touches a page first, whatever policy the process has */
typedef enum sl_numa_policy {
    SL_NUMA_DEFAULT = 0,
    SL_NUMA_INTERLEAVE = 1,
    SL_NUMA_BIND = 2,
    SL_NUMA_LOCAL = 3
} sl_numa_policy;

/* What of a mapped index is also kept in DRAM: see sl_open_params.tier. */
typedef enum sl_tier { SL_TIER_AUTO = 0, SL_TIER_NONE = 1, SL_TIER_DRAM = 2 } sl_tier;

/* Limits; beyond them a call returns SL_ELIMIT or SL_EINVAL and says so. */
#define SL_MAX_DIM     65536u
#define SL_MAX_M       256u
#define SL_MAX_EF      65536u
#define SL_MAX_VECTORS 4294901760u /* node numbers are 32 bits wide, a few of them reserved */
#define SL_MAX_NODES   128u        /* memory nodes of a machine */
#define SL_MAX_CPUS    8192u
#define SL_MAX_THREADS 1024u /* of one call; it uses no more, whatever is asked for */

/* The id that fills a result row after its last result; its score is NaN. Users may not use it as an id. */
#define SL_NO_ID UINT64_MAX

/* Names as the command and the file info print them ("ip", "u8", "bf16", "map"); "?" for a value out of range. */
SL_API const char *sl_metric_name(sl_metric metric);
SL_API const char *sl_dtype_name(sl_dtype dtype);
SL_API const char *sl_codes_name(sl_codes codes);
SL_API const char *sl_refine_name(sl_refine refine);
SL_API const char *sl_place_name(sl_place place);
SL_API const char *sl_layout_name(sl_layout layout);
SL_API const char *sl_tier_name(sl_tier tier);
SL_API const char *sl_numa_policy_name(sl_numa_policy policy);

/* "interleave", "bind:2", "local" or "default" as a policy and, of BIND, its node (0 of others); whether this machine
 * has the node is not looked at. SL_EINVAL where it is none of these. And back, cut to `size` bytes; returns text. */
SL_API SL_MUST_USE sl_status sl_numa_parse(const char *text, sl_numa_policy *policy, size_t *node);
SL_API const char *sl_numa_format(sl_numa_policy policy, size_t node, char *text, size_t size);

/* Bytes of one element; 0 for a value out of range. */
SL_API size_t sl_dtype_size(sl_dtype dtype);

/* ---------------------------------------------------------------------------------------------------------------
 * What a caller may plug in
 * ------------------------------------------------------------------------------------------------------------- */

/* Memory of one handle. alloc returns `size` bytes aligned to `alignment` (a power of two) or NULL; free gets the
 * size it asked for. Both may be called from the threads of a batch call. The default uses aligned_alloc, and 2 MB
 * pages for large blocks where the system grants them. The struct is copied; ctx must outlive the handle. */
typedef struct sl_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size, size_t alignment);
    void (*free)(void *ctx, void *ptr, size_t size);
} sl_allocator;

typedef enum sl_log_level { SL_LOG_ERROR = 0, SL_LOG_WARN = 1, SL_LOG_INFO = 2, SL_LOG_DEBUG = 3 } sl_log_level;

/* Told of events worth an operator's notice; one line without a newline. May be called from any calling thread. */
typedef void (*sl_log_fn)(void *ctx, sl_log_level level, const char *message);

/* Told how far a long call is, from the thread that made the call, some ten times a second. A return other than 0
 * cancels: the call undoes what it did and returns SL_ECANCELED. */
typedef int (*sl_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* The file operations of a save, and of an index that is opened to be written, so that a test or a service can stand
 * between the library and the system. Every entry behaves as the POSIX call of its name (errno set, short writes
 * allowed); allocate sets aside blocks of the file for a range inside it, as posix_fallocate, but with errno set and -1
 * on failure. flush and drain are those of persistent memory, as libpmem's: what was flushed (size bytes at `at`, which
 * are those at `offset` of the file) is durable after the next drain of the same thread. NULL entries use the system's;
 * with flush and drain given, a file opened with place PMEM is taken to lie in persistent memory whatever it lies in.
 */
typedef struct sl_file_ops {
    void *ctx;
    int (*open)(void *ctx, const char *path, int flags, unsigned mode);
    int64_t (*write)(void *ctx, int fd, const void *data, size_t size);
    int (*fsync)(void *ctx, int fd);
    int (*close)(void *ctx, int fd);
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*unlink)(void *ctx, const char *path);
    int64_t (*pwrite)(void *ctx, int fd, const void *data, size_t size, uint64_t offset);
    int (*fdatasync)(void *ctx, int fd);
    int (*ftruncate)(void *ctx, int fd, uint64_t size);
    int (*allocate)(void *ctx, int fd, uint64_t offset, uint64_t size);
    void (*flush)(void *ctx, const void *at, size_t size, uint64_t offset);
    void (*drain)(void *ctx);
} sl_file_ops;

/* CPU c is bit c % 64 of word c / 64. */
typedef struct sl_cpu_set {
    uint64_t words[SL_MAX_CPUS / 64];
} sl_cpu_set;

/* What an index with a NUMA policy asks of the machine, so that a test can be a machine of several nodes. Each entry
 * but the first two and node_here returns 0, or -1 with errno set. May be called from the threads of a batch call. NULL
 * entries ask the system, by libnuma. The struct is copied; ctx must outlive the handle. */
typedef struct sl_numa_ops {
    void *ctx;
    size_t (*nodes)(void *ctx);                      /* numbers are below it, some may be missing; 0: not to be known */
    uint64_t (*node_memory)(void *ctx, size_t node); /* bytes; 0 where this process may have none of it */
    int (*node_cpus)(void *ctx, size_t node, sl_cpu_set *cpus);
    int (*node_here)(void *ctx); /* that the calling thread runs on; -1: not to be known */
    /* For whole pages, as mbind does; `node` is that of BIND. */
    int (*set_policy)(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node);
    /* As the system call of its name for the calling process: moves each page to its node, or with nodes NULL only
     * tells in status where it lies; status is a node, or an errno below 0. */
    int (*move_pages)(void *ctx, void **pages, size_t count, const int *nodes, int *status);
    /* Those the calling thread may run on. */
    int (*get_cpus)(void *ctx, sl_cpu_set *cpus);
    int (*set_cpus)(void *ctx, const sl_cpu_set *cpus);
} sl_numa_ops;

/* ---------------------------------------------------------------------------------------------------------------
 * Index: make, fill, ask, save, open
 * ------------------------------------------------------------------------------------------------------------- */

/* An HNSW graph over codes (Malkov and Yashunin 2016, arXiv 1603.09320). One handle may be searched from any number
 * of threads at once (one searcher a thread, or the batch call); add, delete, reserve, tune, save and free need the
 * handle to themselves. An index in memory survives fork() in both processes; batch calls of a child whose parent had
 * used several threads use one, since OpenMP's do not survive it. A child may search every handle of its parent. It may
 * not change the file of one that was opened writable or exclusive: SL_EBUSY, which names the fork. Each child that
 * writes opens the file itself. From some thousand vectors on, an add that doubles an index, and a save or tuning of
 * one that grew by more than an eighth, number its vectors anew for speed: ids stay, memory is moved. A save uses as
 * many threads for it as the last add was given. */
typedef struct sl_index sl_index;

typedef struct sl_index_params {
    size_t struct_size;
    size_t dim;             /* 1 to SL_MAX_DIM; required */
    sl_metric metric;       /* default SL_METRIC_COSINE */
    sl_dtype dtype;         /* type of the vectors that will be added and asked; default SL_F32. F32, F16 and BF16 may
                               be mixed freely; I8, U8 and I16 are kept exactly and take only their own type */
    sl_codes codes;         /* default SL_CODES_I8; for I8 and U8 input must be I8 or I4, for I16 input I16 or I4 */
    sl_refine refine;       /* default SL_REFINE_NONE; must be NONE for integer input and for F32 codes, and not BF16
                               for I4 codes that hold 12 bits */
    size_t m;               /* links a node on upper layers, twice that on layer 0; 2 to SL_MAX_M, default 16 */
    size_t ef_construction; /* pool size while inserting; m to SL_MAX_EF, default 200 */
    uint64_t seed;          /* of the levels; default 1 */
    const sl_allocator *allocator; /* NULL: the default */
    sl_log_fn log;                 /* NULL: silent */
    void *log_ctx;
    /* Where the arrays of layer 0 lie: codes, links, ids and the refine tier. Their memory has the policy before it is
     * first touched, in blocks of whole pages. On a machine of several nodes an index with a policy also keeps a copy
     * of its upper layers, some per cent of it, on each node (under BIND on that one), made when a searcher is made or
     * a batch begins, of which each search reads the one of the node it runs on; and the threads of an sl_index_search
     * on several are kept to the CPUs of one node each during the call (under BIND of that one, as many as it has), of
     * those that they may run on, where the system lets them. Default SL_NUMA_DEFAULT: none of this. */
    sl_numa_policy numa;
    size_t numa_node;            /* of SL_NUMA_BIND; default 0 */
    const sl_numa_ops *numa_ops; /* NULL: the system's */
} sl_index_params;

SL_API void sl_index_params_init_sized(sl_index_params *params, size_t struct_size);
#define sl_index_params_init(params) sl_index_params_init_sized((params), sizeof *(params))

/* An empty index. Errors: SL_EINVAL, SL_ETYPE, SL_ELIMIT, SL_ENOMEM, SL_EUNSUPPORTED (a NUMA policy, where this build
 * has no libnuma or the system forbids it). */
SL_API SL_MUST_USE sl_status sl_index_create(const sl_index_params *params, sl_index **out);
SL_API void sl_index_free(sl_index *index);

/* Room for n vectors in all, deleted ones counted, so that adding them need not make room. Errors: SL_ENOMEM,
 * SL_ELIMIT, SL_EREADONLY. */
SL_API SL_MUST_USE sl_status sl_index_reserve(sl_index *index, size_t n);

typedef struct sl_add_params {
    size_t struct_size;
    size_t threads; /* 0: as many as OpenMP gives (OMP_NUM_THREADS); default 0 */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_add_params;

SL_API void sl_add_params_init_sized(sl_add_params *params, size_t struct_size);
#define sl_add_params_init(params) sl_add_params_init_sized((params), sizeof *(params))

/* Add n vectors of the index's dimension. `ids` has n entries, or is NULL: the ids then go on from the largest one
 * there has been plus one, the first being 0. All or nothing: input is checked before anything is added, and a
 * cancelled call leaves the ids as they were; cancelled only once all are in, while they are numbered anew, it leaves
 * them in and numbered as they are, and is SL_OK. Once what was added since the last proof is a sixteenth of the index,
 * every vector is proved to be reachable from the entry point, and linked anew where it is not; sl_index_save and
 * sl_index_check do so in any case. params may be NULL. Errors: SL_EVALUE (the message names the row), SL_EEXIST (an id
 * twice, or already present), SL_EINVAL, SL_ETYPE, SL_ENOMEM, SL_ELIMIT, SL_EREADONLY, SL_ECANCELED; of a file that is
 * written in place SL_ENOSPC and SL_EIO, and then nothing was added. */
SL_API SL_MUST_USE sl_status sl_index_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, size_t stride,
                                          const uint64_t *ids, const sl_add_params *params);

/* Delete the vectors of n ids. From then on no search returns them, sl_index_get does not find them, and the ids may be
 * added again, for other vectors. All or nothing: SL_ENOTFOUND, which names the id, where one is not in the index, was
 * deleted before, or comes twice in `ids`. What is deleted keeps its memory and its place in the graph, through which
 * searches go on to walk: it is marked, and sl_index_stats.deleted counts it; build anew where it has become most of
 * the index. Searches find k vectors as long as k are left, and an ef goes as far as it would in an index of these
 * alone, which takes the more time the more is deleted. Other errors: SL_EINVAL, SL_ENOMEM, SL_EREADONLY; of a
 * file that is written in place SL_ENOSPC and SL_EIO. */
SL_API SL_MUST_USE sl_status sl_index_delete(sl_index *index, const uint64_t *ids, size_t n);

typedef int (*sl_accept_fn)(void *ctx, uint64_t id);

/* From so many queries a thread on, a batch call that is given a recall takes what tuning found for batches
 * (sl_tuned.probes), and below what it found for single queries (sl_tuned.probes_one). */
#define SL_SCAN_LEAST 256u

typedef struct sl_search_params {
    size_t struct_size;
    size_t ef; /* candidates kept while walking layer 0, deleted ones not counted; 1 to SL_MAX_EF, default 64; raised
                  to k where smaller */
    size_t rerank;  /* of those, how many the refine tier, or what I4 codes keep, re-ranks; 0: chosen from k and ef;
                       default 0 */
    size_t threads; /* of a batch call; 0: as many as OpenMP gives; default 1 */
    sl_progress_fn progress; /* of a batch call */
    void *progress_ctx;
    /* A filter: which ids may be returned. Where both are given, both must agree; neither: all ids.
     * `accept` says by a value other than 0 that the id may. Called from the thread that searches, so from several at
     * once of a batch call; of each query at most once an id and walk (see sl_searcher_search). It must not call back
     * into the searcher, nor change its index. */
    sl_accept_fn accept;
    void *accept_ctx;
    /* Bit i % 64 of word i / 64 says whether id i may, for the ids below accept_bits_count; those from there on may
     * not. (accept_bits_count + 63) / 64 words. */
    const uint64_t *accept_bits;
    size_t accept_bits_count;
    /* Above 0, up to 1: the recall to reach, by the settings that sl_index_tune stored for it, which take the place of
     * ef, rerank, stop, probes and groups; see sl_index_find_tuned. 0 (default): these as given. */
    double recall;
    /* Above 0: a walk also ends at a candidate that is more than 1 + stop times as far from the query as the k-th
     * best so far, or where k is above 16 the 16th (under IP: whose score is lower than that one's by more than stop
     * times its magnitude); ef remains the most that is kept. Easy queries end early, hard ones go on, so that a mean
     * recall costs fewer evaluations than by ef alone (distance adaptive beam search, arXiv 2505.15636). 0 (default),
     * with a filter, and where more than a 64th of the vectors is deleted: ef alone. */
    double stop;
    /* Above 0: so many partitions of the index (or up to a quarter more) are scanned for each query, the ones nearest
     * to it, instead of a walk; ef and stop then count for nothing, and fewer than k results are found where fewer
     * vectors are scanned. Under IP, whose longest vectors score highest, those are partitions of which three
     * sixteenths at least are scanned, the longest first, and of up to sixteen times as many what may score as high: in
     * all about as many vectors, of more partitions. Where some vectors are deleted in proportion more are scanned, and
     * a query that finds fewer than k walks after all. In a batch call of 16 queries a thread or more, many queries
     * meet many vectors at a time, which from some hundred on is faster than walks; single queries gain where walks go
     * far, as under IP and at high recall. 0 (default), with a filter, where most vectors are deleted, with codes I16
     * and F32, on processors without AVX2 or NEON, and where the index has no partitions (below 4,096 vectors): walks.
     */
    size_t probes;
    /* Above 0: the partitions are chosen among those of so many groups of some 16 (or up to a quarter more groups), the
     * ones nearest to the query, so that it is compared with the centroids of these alone; it then takes more probes
     * for the same recall. Pays from a million vectors on, where all centroids are more than is scanned. 0 (default),
     * and where the index has no groups: among all. */
    size_t groups;
} sl_search_params;

SL_API void sl_search_params_init_sized(sl_search_params *params, size_t struct_size);
#define sl_search_params_init(params) sl_search_params_init_sized((params), sizeof *(params))

typedef struct sl_search_stats {
    size_t results;     /* results written before the fill */
    size_t evaluations; /* distances computed over codes, by all walks of a search or by scans, to centroids too */
    size_t expansions;  /* nodes whose links were read */
} sl_search_stats;

/* The scratch of one thread's searches: made once, used for any number of queries, never by two threads at once. It
 * belongs to its index, which must outlive it; after an add it goes on working and sees what was added. */
typedef struct sl_searcher sl_searcher;

/* max_ef: the largest ef (or k) it will be asked for, to which searches with a filter may also go: one that is larger
 * than ef leaves them room. Memory grows with it. Errors: SL_EINVAL, SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out);
SL_API void sl_searcher_free(sl_searcher *searcher);

/* The k nearest of one query, best first. ids and scores have k entries each; scores may be NULL. Where fewer than k
 * are found the rest is filled with SL_NO_ID and NaN. Allocates nothing (but once after the index has
 * grown, and where it goes further than it ever has: since much near the query is deleted, or since a scan is to
 * re-rank more than max_ef), takes no lock. params and stats may be NULL. With a filter, ids that it does not accept
 * are left out of what the walk found, before that is re-ranked. Where too few remain (fewer than k; or, where more
 * than a quarter was left out, fewer than would be re-ranked), the walk is made again with ef doubled, up to the
 * searcher's max_ef. So work is bounded, and a filter that accepts few of the max_ef nearest, or nothing, gives fewer
 * than k results, or none, and SL_OK. Errors: SL_EINVAL (k = 0, ef = 0, max(k, ef) above max_ef, accept_bits NULL with
 * a count, recall no number from 0 to 1, stop no number or below 0), SL_ENOTFOUND (no settings are stored for this
 * recall), SL_ETYPE, SL_EVALUE, SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                                                const sl_search_params *params, uint64_t *ids, float *scores,
                                                sl_search_stats *stats);

/* The same for nq queries on params->threads threads: ids and scores are (nq, k). stats, if given, sums over the
 * queries. With a filter, ef may be raised to 8 * max(ef, k), or to 1024 where that is more. What its threads search
 * with is kept for the next call, for up to eight of them, until the index is freed. Errors: as above, the message
 * naming the query's row; SL_ENOMEM, SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                             size_t stride, size_t k, const sl_search_params *params, uint64_t *ids,
                                             float *scores, sl_search_stats *stats);

/* The vectors of n ids as dense rows of dtype: the exact input for integer indexes, codes F32 and refine F32, else
 * the best reconstruction held. Integer indexes give their own type or SL_F32; others give SL_F32. The first call on
 * an opened index that keeps its ids (those given by the user, and those of an index that was renumbered) reads them
 * all once. Safe beside searches.
 * Errors: SL_ENOTFOUND (the message names the id), SL_ETYPE, SL_EINVAL, SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_index_get(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, void *out);

typedef struct sl_index_stats {
    size_t struct_size;
    size_t n, dim, m, ef_construction; /* n vectors, deleted ones left out */
    uint64_t seed;
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_place place;
    size_t max_level;
    /* As a file holds them, deleted vectors counted. */
    uint64_t bytes_codes, bytes_links, bytes_ids, bytes_upper, bytes_refine;
    uint64_t bytes_total;    /* of the whole file */
    double quant_error_mean; /* |x - decoded| / |x|, mean over the vectors; 0 for exact codes */
    double quant_error_max;
    const char *isa;           /* tier of the kernels in use, static storage */
    size_t tuned;              /* settings that sl_index_tune stored, see sl_index_get_tuned */
    uint64_t bytes_partitions; /* as a file holds them */
    size_t deleted;            /* vectors that were deleted, and take up their memory */
    size_t room;               /* of a mapped file that was saved with room: vectors it has room for, deleted ones
                                  included; 0 of others */
    sl_layout layout;          /* of the file it is mapped from; in memory ARRAYS */
    size_t partitions;         /* of near vectors, see sl_search_params.probes; 0: none were made */
    size_t groups;             /* of partitions, see sl_search_params.groups */
} sl_index_stats;

/* Fills *out, whose struct_size the caller has set to sizeof *out. */
SL_API SL_MUST_USE sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out);

typedef struct sl_index_numa {
    size_t struct_size;
    sl_numa_policy policy;        /* as asked for */
    size_t node;                  /* of SL_NUMA_BIND */
    size_t nodes;                 /* node numbers are below it */
    size_t copies;                /* of the upper layers, one a node; 0: there is none but the index's own */
    uint64_t bytes[SL_MAX_NODES]; /* of layer 0, by the node they lie on, in whole pages */
    uint64_t bytes_absent;        /* not in memory; of a mapped file: what this process has not read */
} sl_index_numa;

/* On which nodes the pages of layer 0 lie now, as the system tells (move_pages), and what was asked for. Fills *out,
 * whose struct_size the caller has set. Asks about every page. Safe beside searches. Errors: SL_EINVAL, SL_EUNSUPPORTED
 * (no libnuma in this build, or the system does not tell). */
SL_API SL_MUST_USE sl_status sl_index_get_numa(const sl_index *index, sl_index_numa *out);

/* How layer 0 is read.
 *   MEMORY    from memory of the handle's own: built there, or copied from a file
 *   SHARED    from the file's mapping: the system's page cache, or persistent memory itself where `dax` says so
 *   PRIVATE   the same, with pages of its own where a writer, or a recovery that could not write the file, changed them
 *   DIRECT    from persistent memory that its writer writes as it is */
typedef enum sl_mapping {
    SL_MAPPING_MEMORY = 0,
    SL_MAPPING_SHARED = 1,
    SL_MAPPING_PRIVATE = 2,
    SL_MAPPING_DIRECT = 3
} sl_mapping;

/* "memory", "shared", "private", "direct"; "?" for a value out of range. */
SL_API const char *sl_mapping_name(sl_mapping mapping);

/* Of the tier in DRAM: there is none, also where there was nothing to copy; it is being filled, and searches read the
 * mapping; it is whole, and they read it. */
typedef enum sl_tier_state {
    SL_TIER_STATE_NONE = 0,
    SL_TIER_STATE_FILLING = 1,
    SL_TIER_STATE_FILLED = 2
} sl_tier_state;

/* "none", "filling", "filled"; "?" for a value out of range. */
SL_API const char *sl_tier_state_name(sl_tier_state state);

typedef struct sl_index_storage {
    size_t struct_size;
    sl_place place; /* as it was opened */
    sl_mapping mapping;
    int dax;               /* loads go to persistent memory itself, and not to copies of its pages in DRAM */
    int writable;          /* it can be added to */
    uint64_t bytes_layer0; /* codes, links, ids and refine tier of its vectors; in memory, of those there is room for */
    int pages_known;       /* 0: the system does not tell (/proc/self/smaps, pagemap), and the next three are 0 */
    size_t page_size; /* of the mapping that layer 0 begins in, as the system manages it: 4 KB also where some of its
                         pages are joined to huge ones */
    uint64_t bytes_resident; /* of layer 0, in whole pages, in memory; of a mapped file what this process has read */
    uint64_t bytes_huge;     /* of these, on pages of 2 MB or more */
    /* Of a mapped file that was saved with room; 0 of others. */
    uint64_t room;       /* vectors it can hold */
    uint64_t bytes_log;  /* of its redo log now; 0 where it is written directly */
    uint64_t recoveries; /* times that a log was replayed into it after a crash; by the last of them: */
    uint64_t recovered_groups, recovered_bytes; /* syncs, and bytes of the log */
    uint64_t record_bytes;                      /* of a mapped file of SL_LAYOUT_RECORDS: of one record; 0 of others */
    sl_tier_state tier;
    uint64_t bytes_tier; /* copied into it so far */
    int log_lost; /* 1: its writer died, and the log it left is missing or damaged: see sl_index_sync. Of a mapped file
                     with room */
} sl_index_storage;

/* What the index lies on, now. Fills *out, whose struct_size the caller has set. Asks about every page. Safe beside
 * searches. Errors: SL_EINVAL, SL_ECORRUPT (the superblocks of a file that is written in place). */
SL_API SL_MUST_USE sl_status sl_index_get_storage(const sl_index *index, sl_index_storage *out);

/* Bytes that an index takes, part by part, as a file holds them. */
typedef struct sl_plan {
    size_t struct_size;
    uint64_t n;
    uint64_t bytes_codes;  /* rows; of I4 those of 4 bits, or of the codes it stands for */
    uint64_t bytes_rest;   /* of I4: what 4 bits leave over */
    uint64_t bytes_coarse; /* of I4: the rows that are walked over beside those of other codes */
    uint64_t bytes_links;
    uint64_t bytes_ids; /* of ids that count from 0 */
    uint64_t bytes_refine;
    uint64_t bytes_layer0;          /* all of the above */
    uint64_t bytes_upper;           /* expected: which nodes stand above layer 0 is drawn */
    uint64_t bytes_upper_deviation; /* one standard deviation of that, at most */
    uint64_t bytes_projection;      /* that coarse rows are made with */
    uint64_t bytes_partitions;      /* at most: those that stay empty are left out */
    uint64_t bytes_total;           /* of the file, header and alignment included */
    uint64_t bytes_with_room;       /* of the file when it is saved with room for so many: its ids have 8 bytes */
    uint64_t record_bytes;          /* of a record, in SL_LAYOUT_RECORDS */
    uint64_t bytes_in_records;      /* of the file in that layout, without room */
    uint64_t bytes_tier;            /* of all this, what a tier in DRAM copies (sl_open_params.tier) */
} sl_plan;

/* What n vectors of these parameters will take, before there are any. Fills *out, whose struct_size the caller has set.
 * Errors: as of sl_index_create; SL_ELIMIT (n). */
SL_API SL_MUST_USE sl_status sl_index_plan(const sl_index_params *params, uint64_t n, sl_plan *out);

/* Number of vectors, deleted ones left out. */
SL_API size_t sl_index_size(const sl_index *index);

/* The types of file, told apart by their first bytes: those of sl_index_save, and of sl_ranker_save and sl_items_save
 * of <shortlist_rank.h>. */
typedef enum sl_file_kind { SL_FILE_INDEX = 0, SL_FILE_RANKER = 1, SL_FILE_ITEMS = 2 } sl_file_kind;

/* Reads the first bytes of the file at path, and nothing else: opening it may still fail. Errors: SL_EIO, SL_EFORMAT
 * (none of these), SL_EINVAL. */
SL_API SL_MUST_USE sl_status sl_file_kind_of(const char *path, sl_file_kind *out);

typedef struct sl_check_params {
    size_t struct_size;
    size_t sample;  /* vectors searched for, to compare with exact search; default 200, 0 skips it */
    size_t k, ef;   /* of that sample; default 10 and 200 */
    size_t threads; /* 0: as many as OpenMP gives; default 0 */
    sl_progress_fn progress;
    void *progress_ctx;
    uint64_t *bad_ids; /* with scrub: gets the ids of the first bad_ids_room damaged records; NULL (default): nobody */
    size_t bad_ids_room;
    int scrub; /* of a mapped file with room or in records: verifies each vector's record (its codes, its refine row,
                  its id) against a CRC of its own, and so names the vectors that are damaged. Default 0 */
} sl_check_params;

SL_API void sl_check_params_init_sized(sl_check_params *params, size_t struct_size);
#define sl_check_params_init(params) sl_check_params_init_sized((params), sizeof *(params))

typedef struct sl_check_report {
    size_t struct_size;
    size_t n;
    size_t bad_links; /* links out of range, to the node itself, or twice in one list */
    size_t bad_upper; /* broken records of the upper layers */
    /* Nodes that no path over layer 0 leads to from the entry point. These and no_in_link are counted and are no fault
     * in a file that is written in place, while it has a writer, or as long as its writer has not linked them yet. */
    size_t unreachable;
    size_t no_in_link;  /* nodes nobody links to, but for the entry point */
    size_t bad_vectors; /* records whose scale or norm is not a finite number */
    size_t duplicate_ids;
    size_t min_degree, max_degree;
    double mean_degree;
    double sampled_recall;   /* recall@k over codes of the sample, by walks from the upper layers, against exact search
                                over the same codes; NaN if skipped */
    size_t sections_checked; /* sections of the file that were verified against their CRC; 0 for an index in memory */
    size_t deleted;          /* vectors that n leaves out; what is counted is counted of them too */
    size_t records_checked;  /* by scrub; 0 where there are none with a CRC: sections have one then */
    size_t bad_records;      /* of them; each is named by the id it has in the file, which may be what is damaged */
    size_t pages_checked;    /* of a file saved with room: pages of 4096 bytes verified against a checksum each; 0 for
                                other files. They cover every byte but holes and the two superblocks, which have a CRC
                                each, and of which one whole one is enough */
    size_t bad_pages;        /* of them */
    int unverified; /* 1: a file with room whose pages have no checksums in force, because an older version made it or
                       because it was written directly in persistent memory. Only its records can be verified (scrub) */
} sl_check_report;

/* Whole-index verification: the file's checksums, every invariant of the graph, and reachability. A file is read, not
 * touched: holes stay holes. SL_OK means all of it holds
 * (sampled recall is reported, and what it should be is the caller's to say); SL_ECORRUPT that it does not, with the
 * first fault in the message and the counts in *report, which is filled in both cases. Safe beside searches. params may
 * be NULL; report's struct_size is set by the caller. */
SL_API SL_MUST_USE sl_status sl_index_check(sl_index *index, const sl_check_params *params, sl_check_report *report);

/* Of an index that was opened writable: takes out every vector whose record does not agree with its checksum (see
 * scrub). They are deleted, and can no longer be got; walks go on through their places as through copies of a
 * neighbour, so that nothing behind them is lost. Which they are, a check with scrub tells before; add them again from
 * where they came from. The pages that hold these records are summed anew as they are, so that other damage in them is
 * no longer told. *dropped is how many there were. As of other changes, sl_index_sync makes it durable. Needs the
 * handle to itself. threads: 0 for as many as OpenMP gives. Errors: SL_EINVAL, SL_EREADONLY, SL_EUNSUPPORTED (an index
 * in memory), SL_ECORRUPT (no record is sound), SL_ENOSPC. */
SL_API SL_MUST_USE sl_status sl_index_drop_damaged(sl_index *index, size_t threads, size_t *dropped);

typedef struct sl_save_params {
    size_t struct_size;
    const sl_file_ops *file_ops; /* NULL: the system's */
    sl_progress_fn progress;     /* in bytes */
    void *progress_ctx;
    size_t room; /* above 0: the file can be opened to be written in place, and has room for so many vectors in all, at
                    least as many as there are. What is not used takes no space where the file system knows holes, but
                    counts in the file's size. 0 (default): the file is as small as it can be and never changes */
    sl_layout layout; /* default SL_LAYOUT_ARRAYS, also of an index that was opened from records. Like room, of an index
                         alone */
} sl_save_params;

SL_API void sl_save_params_init_sized(sl_save_params *params, size_t struct_size);
#define sl_save_params_init(params) sl_save_params_init_sized((params), sizeof *(params))

/* Writes the whole index to path: first to a temporary file beside it, synced, then renamed over path and the folder
 * synced, so that path holds either what it held or the whole new index, whatever happens. Saving over the file the
 * index is mapped from is allowed. Where only the last step, the folder's sync, fails, the new index is in place and
 * the message says so. What is copied from a mapped file is verified against its checksums first. A new file gets the
 * mode and owner of the file the index was opened from; one that replaces another is no more open than that one.
 * Temporary files of killed saves of the same path are removed.
 *   SL_EBUSY      path is being written in place, by this handle or another (sync makes that durable); is claimed by an
 *                 exclusive handle; or is the file that the index was opened from, and another has replaced or changed
 *                 it since. Open it again then and make the change anew, or open it exclusive from the start
 *   SL_ECORRUPT   the file that the index is mapped from is damaged
 * Others: SL_EIO, SL_ENOSPC, SL_ENOMEM, SL_ECANCELED. The temporary file is removed and path is as it was. */
SL_API SL_MUST_USE sl_status sl_index_save(sl_index *index, const char *path, const sl_save_params *params);

typedef struct sl_open_params {
    size_t struct_size;
    /* Default SL_PLACE_MAP: nothing is loaded, the index is read-only. Put another file in the place of a mapped one by
     * renaming, never by writing into it: one that becomes shorter while it is mapped ends the process by SIGBUS.
     * SL_PLACE_DRAM: the file is copied, its CRCs verified, and the index can be changed (and saved). It is read, not
     * mapped, so that a file which becomes shorter meanwhile is SL_ECORRUPT. */
    sl_place place;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* of the copy into DRAM, in bytes; of a mapping with a NUMA policy or prefault, of reading
                                ahead */
    void *progress_ctx;
    int writable; /* with place MAP, of a file saved with room: adds change the file, and sl_index_sync makes them
                     durable. One handle at a time may; others may have the file open to read. Default 0 */
    const sl_file_ops *file_ops; /* of a writable one; copied; their ctx must outlive the handle. NULL: the system's */
    size_t log_bytes; /* of a writable one: how long its redo log grows before it is emptied; 0 (default): 256 MB */
    /* As of sl_index_params. A mapped file's pages belong to the system's page cache, where no policy of a mapping
     * counts: with place MAP and a policy, layer 0 is read ahead here, which takes as long as reading the file, and its
     * pages are moved to where the policy says, by INTERLEAVE in turns of 2 MB. What other processes have mapped too
     * stays where it is, and what the system drops and reads again later lies where it is then read; the log tells of
     * the first. */
    sl_numa_policy numa;
    size_t numa_node;
    const sl_numa_ops *numa_ops;
    int prefault; /* with place MAP or PMEM: layer 0 is read ahead here, which takes as long as reading the file, so
                     that no search waits for it; where it is larger than memory what was read first goes again. Default
                     0 */
    /* With place MAP or PMEM: whether what searches read most, the upper layers and of codes I4 the 4-bit rows
     * that walks go over, is copied into DRAM, so that a slower medium is asked for the rest alone. Opening does not
     * wait for it: memory for the copies is taken from the allocator here, and a thread of the handle's own fills them
     * while searches read the mapping. Each search reads the one or the other, and finds the same. The thread takes no
     * signals, runs on the CPUs that the opening one may run on, and ends when it is done or, within a megabyte, when
     * the handle is freed. sl_index_storage.tier tells how far it is. Where there is no memory for the copies, or no
     * thread, there is no tier, and the log says so.
     *   AUTO  default: a tier where loads go to persistent memory itself (sl_index_storage.dax) and the copies fit into
     *         half of the memory there is (sl_system.memory). None of other mapped files, of which the page cache
     *         holds one copy for all processes and a tier would be each process's own
     *   NONE  never
     *   DRAM  always. SL_EUNSUPPORTED of a file that was saved with room, since what is copied may change there; of
     *         such AUTO makes none
     * A child that fork() made has the copies where they were whole by then, and reads the mapping where not; it frees
     * its handle as ever. With place DRAM all there is lies in DRAM, and this has no meaning. */
    sl_tier tier;
    size_t threads; /* of the copy into DRAM, which end with it; 0 (default): as many as OpenMP gives. One where
                       SL_NUMA_LOCAL asks for the opening thread's own memory */
    int exclusive;  /* 1: the handle will be changed and saved over its file. Until it is freed, nobody else changes or
                       replaces the file: another exclusive or writable handle, or a save, gets SL_EBUSY. Saving over the
                       file keeps the claim. Not together with writable. Default 0 */
    double wait_s;  /* seconds to wait where the file is SL_EBUSY; default 0 */
} sl_open_params;

SL_API void sl_open_params_init_sized(sl_open_params *params, size_t struct_size);
#define sl_open_params_init(params) sl_open_params_init_sized((params), sizeof *(params))

/* Opens a saved index. The file is not trusted: header, section table and their CRC are verified here in constant
 * time, counts and links are range-checked where they are read, so a damaged or hostile file gives SL_EFORMAT,
 * SL_EVERSION, SL_ECORRUPT or wrong neighbours, never a crash, as long as nobody shortens the file while it is
 * mapped. Other errors: SL_EIO, SL_ENOMEM, SL_EBUSY (written or claimed by another handle), SL_EUNSUPPORTED (writable
 * without room, a tier in DRAM with it; a NUMA policy as of sl_index_create),
 * SL_EINVAL, SL_ECANCELED. params may be NULL. */
SL_API SL_MUST_USE sl_status sl_index_open(const char *path, const sl_open_params *params, sl_index **out);

/* Of an index that was opened writable: what was added, tuned and deleted before the call outlives the process and a
 * power loss once it has returned SL_OK, and is found by all who have the file open, from their next search on. Until
 * then it is found by this handle alone, and a crash takes it back whole. Many changes made durable together cost
 * little more than one. What was not synced when the handle is freed is lost as by a crash, so that a program that
 * meets an error halfway leaves the file as it was. In persistent memory that is written directly, changes are durable
 * and seen by others as they are made, and a sync waits for the last of them; of a delete that a crash cut short some
 * may be deleted. Changes are first written to a log beside the file (its name and ".log") and synced, then to the
 * file; the log is emptied now and then, and removed when the handle is freed. Keep the two together: without the log
 * that a crash left, sl_index_open gives SL_ECORRUPT but to read the mapped file. A reader that has the file
 * open and may write to it finishes the sync of a process that died in it: one of its searches does so, about a second
 * later. Needs the handle to itself, as add does; not for a child that fork() made. Errors: SL_ENOSPC and SL_EIO: it
 * may be tried again, unless the message says to open the file anew, which may have the changes then; SL_EBUSY where
 * the file was renamed, replaced or written over; SL_EUNSUPPORTED for an index in memory, SL_EREADONLY for one that is
 * mapped to be read. */
SL_API SL_MUST_USE sl_status sl_index_sync(sl_index *index);

typedef struct sl_snapshot_params {
    size_t struct_size;
    const sl_file_ops *file_ops; /* of the copy; NULL: the system's. Where write or pwrite is given, all bytes go
                                    through them; else the system copies by itself, sharing blocks where it can */
    sl_progress_fn progress;     /* in bytes; begins again where the copy does */
    void *progress_ctx;
} sl_snapshot_params;

SL_API void sl_snapshot_params_init_sized(sl_snapshot_params *params, size_t struct_size);
#define sl_snapshot_params_init(params) sl_snapshot_params_init_sized((params), sizeof *(params))

/* A copy of the index file at path, put in place of `copy` as sl_index_save does it, that stands on its own: whole,
 * durable, without a log, and nothing that is written to the one is ever found in the other. The file may be open, and
 * be written in place meanwhile by another process or a handle of this one: the copy then has all that was synced
 * before the call, perhaps some of what was synced since, and nothing half. What a crashed writer had synced it has
 * too. The writer goes on, and does not empty its log until the copy is made. What is a hole in the file is one in the
 * copy. A writer in persistent memory has no log: while one has the file open, this is SL_EBUSY, as is opening the file
 * so while this is under way. Errors: SL_EBUSY (also where another index is being written at `copy`), SL_EINVAL (`copy`
 * is the file itself, or its log), SL_EIO, SL_ENOSPC, SL_ENOMEM, SL_ECANCELED, and those of opening a file; `copy` is
 * then as it was. params may be NULL. */
SL_API SL_MUST_USE sl_status sl_index_snapshot(const char *path, const char *copy, const sl_snapshot_params *params);

/* ---------------------------------------------------------------------------------------------------------------
 * Tuning: a recall instead of settings
 * ------------------------------------------------------------------------------------------------------------- */

#define SL_MAX_TARGETS        64u   /* of one tuning */
#define SL_MAX_TUNED          4096u /* settings an index stores */
#define SL_TUNE_LEAST_QUERIES 50u

/* What kept a recall from being reached. */
typedef enum sl_tune_limit {
    SL_LIMIT_NONE = 0,  /* it was reached */
    SL_LIMIT_CODES = 1, /* walks find enough true neighbours, but what ranks them puts others before them */
    SL_LIMIT_GRAPH = 2, /* deeper walks find no more of them */
    SL_LIMIT_EF = 3     /* deeper walks would, but max_ef does not let them */
} sl_tune_limit;

/* "none", "codes", "graph", "ef"; and what to do about it, in half a line. "?" for a value out of range. */
SL_API const char *sl_tune_limit_name(sl_tune_limit limit);
SL_API const char *sl_tune_limit_text(sl_tune_limit limit);

/* Settings that tuning stored: those found for one target at one k. */
typedef struct sl_tuned {
    size_t struct_size;
    double target; /* the recall asked for */
    size_t k;
    size_t least_k; /* they reach the target for every k from this one up to k, as measured */
    size_t ef, rerank;
    double stop;
    sl_tune_limit limit;   /* other than NONE: not reached; the settings and figures are those of the best recall */
    double recall;         /* recall@k with them, mean over the tuning's queries */
    double standard_error; /* of that mean, by how much the queries differ from one another */
    double evaluations;    /* distances computed a query, mean */
    size_t n;              /* vectors in the index when it was tuned */
    size_t queries;        /* it was tuned with */
    size_t ef_alone;       /* reaches the target without stop: for searches with a filter, for fewer than k, or where
                              more than a 64th is deleted, which take it and no stop; ef where stop is 0 */
    size_t probes;     /* partitions that a batch of 256 queries a thread or more scans for each instead of walking, see
                          sl_search_params.probes; 0: it walks */
    size_t probes_one; /* the same of searches for one query, and of smaller batches */
    size_t groups;     /* among whose partitions these are chosen, see sl_search_params.groups; 0: among all */
    int scan_only;     /* 1: walks do not reach the target and scans do, which the figures are of. It serves no search
                          that cannot scan: one with a filter, where more than half is deleted, or on a processor for
                          which there is no scan; ef is what a search walks with whose scan found fewer than k */
} sl_tuned;

typedef struct sl_tune_params {
    size_t struct_size;
    const double *targets; /* recalls, each above 0, up to 1, in any order; NULL: 0.8, 0.85, 0.9, 0.925, 0.95, 0.96,
                              0.97, 0.98, 0.99, 0.995 */
    size_t target_count;   /* up to SL_MAX_TARGETS; 0 with NULL */
    size_t max_ef;  /* the deepest search tried; k to SL_MAX_EF; 0 (default): 16384, or k where that is more; never more
                       than there are vectors, or k */
    size_t threads; /* 0: as many as OpenMP gives; default 0 */
    sl_progress_fn progress; /* in no unit of its own */
    void *progress_ctx;
} sl_tune_params;

SL_API void sl_tune_params_init_sized(sl_tune_params *params, size_t struct_size);
#define sl_tune_params_init(params) sl_tune_params_init_sized((params), sizeof *(params))

typedef struct sl_tune_report {
    size_t struct_size;
    size_t targets;        /* different ones */
    size_t reached;        /* of them */
    size_t first;          /* number of the lowest target's settings for sl_index_get_tuned; the others follow */
    size_t passes;         /* times all queries were asked */
    size_t queries_needed; /* as many that two standard errors are no more than 0.005 at every target reached; where it
                              is above those given, other queries may meet another recall by more than that */
} sl_tune_report;

/* Finds for each target the cheapest settings (ef, rerank and stop) that reach it on these queries, nq rows of the
 * index's dimension like those to come, and stores them in the index in place of those of the same k. Cheapest is by
 * distances computed and rows re-ranked, not by time, so that a busy machine finds the same. Recall is followed over ef
 * as a rising curve, and half a standard error, 0.002 at most, is asked beyond the target. A stop is stored only where
 * the queries that find least, the worst 1 % and 5 %, find as much with it as by ef alone; ef is then twice that which
 * reaches the target alone, so that no search costs more than one with that ef. Probes are
 * stored where a batch of many queries is expected to take less time by scanning so many partitions, and where walks do
 * not reach the target and scans do, with no more rows than the time of the deepest walk is expected to be worth.
 * truth: (nq, k), each row the ids of the true k nearest, best first. NULL: they are found by comparing every query
 * with every vector as sl_index_get gives it; without a refine tier that is what the codes have kept of it, and recall
 * against it does not count what they lost.
 * A target out of reach is no error: it is stored with its reason. Settings stay when vectors are added; sl_tuned says
 * for how many they were found. They are saved with the index; of one that is mapped too, which is tuned in memory and
 * can be saved over its own file. Needs the handle to itself. params and report may be NULL; report's struct_size is
 * set by the caller. On failure the settings are as before; an index in memory may have been put in order, as by a
 * save. Errors: SL_EINVAL (also fewer than SL_TUNE_LEAST_QUERIES queries, fewer than k vectors, a neighbour twice in a
 * row of truth, a truth of which no more is found than by chance), SL_ENOTFOUND (truth names an id that is not in the
 * index), SL_EVALUE, SL_ETYPE, SL_ENOMEM, SL_ELIMIT, SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_index_tune(sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                           size_t stride, const uint64_t *truth, size_t k, const sl_tune_params *params,
                                           sl_tune_report *report);

/* The stored settings, by rising k, those of one k by rising target. SL_ENOTFOUND from their number on
 * (sl_index_stats.tuned). *out, whose struct_size the caller has set, is filled. */
SL_API SL_MUST_USE sl_status sl_index_get_tuned(const sl_index *index, size_t i, sl_tuned *out);

/* The settings that a search with this k and recall uses: of those tuned for this k, or else for the next larger k that
 * were measured to serve this one too (least_k), the lowest target that is no lower than the recall. SL_ENOTFOUND where
 * there are none, which says whether none were tuned, or the recall was out of reach and why. SL_EINVAL. */
SL_API SL_MUST_USE sl_status sl_index_find_tuned(const sl_index *index, size_t k, double recall, sl_tuned *out);

/* ---------------------------------------------------------------------------------------------------------------
 * Exact search: ground truth, and small sets
 * ------------------------------------------------------------------------------------------------------------- */

typedef struct sl_exact_params {
    size_t struct_size;
    size_t dim;
    sl_metric metric; /* default SL_METRIC_COSINE */
    sl_dtype dtype;   /* of base and queries alike; default SL_F32 */
    size_t k;
    size_t threads; /* 0: as many as OpenMP gives; default 0 */
    const sl_allocator *allocator;
    sl_progress_fn progress; /* of one scan, in rows */
    void *progress_ctx;
} sl_exact_params;

SL_API void sl_exact_params_init_sized(sl_exact_params *params, size_t struct_size);
#define sl_exact_params_init(params) sl_exact_params_init_sized((params), sizeof *(params))

/* A scan in blocks, for base sets larger than memory. Queries are copied at creation. Not for two threads at once. */
typedef struct sl_exact sl_exact;

SL_API SL_MUST_USE sl_status sl_exact_create(const sl_exact_params *params, const void *queries, size_t nq,
                                             size_t stride, sl_exact **out);
SL_API void sl_exact_free(sl_exact *exact);

/* Compares n rows, whose ids are first_id, first_id + 1, …, with every query. Errors: SL_EVALUE (rows with NaN,
 * infinity, or zero length under cosine), SL_ECANCELED, after which the scan can only be freed. */
SL_API SL_MUST_USE sl_status sl_exact_scan(sl_exact *exact, const void *rows, size_t n, size_t stride,
                                           uint64_t first_id);

/* The k nearest of each query so far, best first, ties by smaller id: ids and scores (may be NULL) are (nq, k), filled
 * as by a search. The order is that of scores computed in double precision (exact integers for integer types), so it
 * is the same on every machine. */
SL_API SL_MUST_USE sl_status sl_exact_results(const sl_exact *exact, uint64_t *ids, float *scores);

/* ---------------------------------------------------------------------------------------------------------------
 * Vectors, one at a time
 * ------------------------------------------------------------------------------------------------------------- */

/* Score of two vectors of the same type under a metric. Exact integers for integer types (cosine: one rounding);
 * float types within dim · 2^-23 · Σ|aᵢbᵢ| of the true value. A zero vector under cosine gives SL_EVALUE. */
SL_API SL_MUST_USE sl_status sl_score(sl_metric metric, sl_dtype dtype, const void *a, const void *b, size_t dim,
                                      double *score);

/* n elements from one floating-point type to another, rounded to nearest, ties to even; F16 and BF16 overflow to
 * infinity, NaN stays NaN. Integer types convert to SL_F32 only. Errors: SL_ETYPE. */
SL_API SL_MUST_USE sl_status sl_convert(const void *from, sl_dtype from_dtype, void *to, sl_dtype to_dtype, size_t n);

/* ---------------------------------------------------------------------------------------------------------------
 * The machine
 * ------------------------------------------------------------------------------------------------------------- */

typedef enum sl_isa {
    SL_ISA_SCALAR = 0,
    SL_ISA_AVX2 = 1,
    SL_ISA_AVXVNNI = 2,
    SL_ISA_AVX512BW = 3,
    SL_ISA_AVX512VNNI = 4,
    SL_ISA_NEON = 5,
    SL_ISA_COUNT = 6
} sl_isa;

/* "scalar", "avx2", …: the words SHORTLIST_MAX_ISA takes. */
SL_API const char *sl_isa_name(sl_isa isa);

typedef struct sl_system {
    size_t struct_size;
    sl_isa isa;             /* the tier in use: the best available one not above SHORTLIST_MAX_ISA */
    unsigned isa_available; /* bit (1 << tier) for each tier this machine and build can run */
    size_t cpus;            /* this process may run on */
    size_t numa_nodes;      /* 1 where the system does not tell */
    size_t page_size;
    size_t huge_page_size;      /* of transparent huge pages; 0 where there are none */
    const char *huge_page_mode; /* "always", "madvise", "never" or "none" */
    /* What this build was made with. No version has MPI yet: has_mpi is always 0. */
    int has_openmp, has_numa, has_pmem, has_onednn, has_mpi;
    size_t max_threads; /* of a batch call with threads = 0 */
    uint64_t memory;    /* bytes: the machine's, or fewer where a control group limits this process; 0: not known */
    size_t
        most_threads; /* of a call, however many it asks for: SL_MAX_THREADS, or OMP_THREAD_LIMIT where that is less */
} sl_system;

/* Fills *out, whose struct_size the caller has set. */
SL_API SL_MUST_USE sl_status sl_system_query(sl_system *out);

typedef struct sl_numa_node {
    size_t struct_size;
    size_t cpu_count;
    uint64_t memory; /* bytes; 0 where this process may have none of it */
    sl_cpu_set cpus;
} sl_numa_node;

/* What memory node `node` has. Fills *out, whose struct_size the caller has set. Errors: SL_EINVAL, SL_ENOTFOUND (no
 * such node; numbers are below SL_MAX_NODES), SL_EUNSUPPORTED (as of sl_index_get_numa). */
SL_API SL_MUST_USE sl_status sl_numa_get_node(size_t node, sl_numa_node *out);

#ifdef __cplusplus
}
#endif

#endif
