/* Shortlist: vector recall to link into a recommendation service.

   This header is the contract for shapes, units, ownership, threads and errors. Anything it does not say may change,
   and so may everything under "Experimental". docs/CALLS.md has costs, methods and details.

   Caveats
     - Mapped files: replace them by renaming, never write into them. If a mapped file becomes shorter, SIGBUS ends the
       process.
     - Files in place: one handle writes, others may read. Keep the file and its log (its name and ".log") together.
     - Crash: a crash, or freeing the handle, undoes every change not yet synced or saved. No change is left half done.
     - fork(): a child may search, on one thread if its parent's batch calls used several, and change an index in
       memory. SL_EBUSY refuses changing what a thread of the parent was changing, and changing, saving or checking a
       writable handle, or saving an exclusive one over its file.
     - Numbering: add, save, compact and tune may renumber the vectors in memory. Ids stay the same. Filters need a
       refresh, iterators end.
     - Filters: making one takes as long as many searches. It holds one bit per vector. Keep it. Refresh it
       to let later vectors pass.
     - Deletes: later adds use the memory of deleted vectors again; in files, after two syncs.
     - L2: if vectors lie close together and far from the origin, codes of floats lose the nearest
       (sl_index_resolution).
     - AMX: the first call asks Linux for it. Linux then refuses alternate signal stacks below some 12 KB.
       SHORTLIST_MAX_ISA below amxint8 prevents this. No call changes other global state.

   Conventions, unless an entry says otherwise
     - Functions that can fail return sl_status. Outputs are defined on SL_OK (0) only. After a failure,
       handles are as before, and new ones NULL.
     - Any call may return SL_EINVAL (a bad argument, or a feature the index was made without) and SL_ENOMEM. Calls with
       progress may return SL_ECANCELED; calls that take vectors SL_ETYPE and SL_EVALUE. Messages name the row or id.
       Entries list other statuses.
     - Errors of a change: SL_EREADONLY; with a file written in place or work_path also SL_ENOSPC and SL_EIO.
     - The caller owns every buffer it passes in. The library keeps none after the call. *_free takes a handle or NULL.
       An index must outlive the handles made from it. Structs of callbacks are copied; ctx must outlive the handle.
     - Sizes and strides are in bytes. Matrices are row-major; stride 0 means dense rows. Vectors are aligned to their
       element size.
     - *_init fills a struct with its defaults: 0 or NULL if a field names none. It passes the caller's struct size, so
       programs work with a newer library. Set struct_size of a struct that a call fills.
     - NULL means default params, the default allocator, no log, the system's operations. Stats, scores and
       all reports except a check's may be NULL. `threads` 0 means as many as OpenMP gives (OMP_NUM_THREADS).
     - Results come best first. Entries left over hold SL_NO_ID, which no vector has, and NaN.
     - The library never prints, aborts, throws or installs signal handlers. A call takes less than 48 KB of stack (more
       without optimisation), so threads of 64 KB may make every call. */
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

/* ---- Status */

/* Numbers never change and are never reused. */
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
    X(EVALUE, 14, "vector with NaN, infinity, a length near 0, or 0 under cosine")                                     \
    X(EREADONLY, 15, "index is read-only")                                                                             \
    X(ENOSPC, 16, "no space left on the device")                                                                       \
    X(ELIMIT, 17, "beyond a documented limit")

typedef enum sl_status {
#define SL_X(name, number, text) SL_##name = number,
    SL_STATUS_MAP(SL_X)
#undef SL_X
} sl_status;

/* "SL_EINVAL", and its meaning; static, never NULL. */
SL_API const char *sl_status_name(sl_status status);
SL_API const char *sl_status_text(sl_status status);

/* The calling thread's last failure: what, where, what to do; "" before the first. Valid until its next call. */
SL_API const char *sl_last_error(void);

/* "0.1.0"; static. */
SL_API const char *sl_version(void);

/* ---- Vocabulary */

/* Metric   score of a result                             nearer is
   IP       inner product x·q                             larger
   COSINE   x·q / (|x| |q|), in [-1, 1] up to rounding    larger
   L2       squared Euclidean distance |x - q|²           smaller  */
typedef enum sl_metric { SL_METRIC_IP = 0, SL_METRIC_COSINE = 1, SL_METRIC_L2 = 2 } sl_metric;

/* F16 (IEEE binary16) and BF16 (upper half of binary32) are uint16_t. */
typedef enum sl_dtype { SL_F32 = 0, SL_F16 = 1, SL_BF16 = 2, SL_I8 = 3, SL_U8 = 4, SL_I16 = 5 } sl_dtype;

/* Codes of layer 0, which walks compare.
     I8, I16  Floats have one scale per vector. Integers and their distances are exact.
     F32      Floats as given. Differences below about 1e-19 square to 0: scale vectors up.
     I4       4 bits per element; finer codes (I8 or I16) re-rank. Floats of small or very large dim have 8 more bits
              instead (I4+8). Integers of dim above 8192 have no I4. */
typedef enum sl_codes { SL_CODES_I8 = 0, SL_CODES_I16 = 1, SL_CODES_F32 = 2, SL_CODES_I4 = 3 } sl_codes;

/* A finer copy of floats, which re-ranks.
     F32   the vector as given
     BF16  the vector less its decoded codes
     I16   16-bit integers with their own scale */
typedef enum sl_refine { SL_REFINE_NONE = 0, SL_REFINE_F32 = 1, SL_REFINE_BF16 = 2, SL_REFINE_I16 = 3 } sl_refine;

/* Range that codes cover. Elements beyond it get the last code.
     AUTO      MSE for I4, else MINMAX
     MINMAX    up to the largest magnitude
     MSE       of least squared error
     QUANTILE  all but a share of the elements */
typedef enum sl_clip { SL_CLIP_AUTO = 0, SL_CLIP_MINMAX = 1, SL_CLIP_MSE = 2, SL_CLIP_QUANTILE = 3 } sl_clip;

/* Layer 0 lies in DRAM (a copy), in its mapped file, or in persistent memory. */
typedef enum sl_place { SL_PLACE_DRAM = 0, SL_PLACE_MAP = 1, SL_PLACE_PMEM = 2 } sl_place;

/* One array each of codes, links and ids; or, for slow media, one record per vector, a multiple of 256 bytes. */
typedef enum sl_layout { SL_LAYOUT_ARRAYS = 0, SL_LAYOUT_RECORDS = 1 } sl_layout;

/* Memory nodes (NUMA) of layer 0's pages.
     DEFAULT     by the process's policy, else as LOCAL
     INTERLEAVE  all nodes in turns
     BIND        one node; when it is full, the system ends the process
     LOCAL       the node of the thread that first touches a page */
typedef enum sl_numa_policy {
    SL_NUMA_DEFAULT = 0,
    SL_NUMA_INTERLEAVE = 1,
    SL_NUMA_BIND = 2,
    SL_NUMA_LOCAL = 3
} sl_numa_policy;

typedef enum sl_tier { SL_TIER_AUTO = 0, SL_TIER_NONE = 1, SL_TIER_DRAM = 2 } sl_tier;

/* A call beyond a limit returns SL_ELIMIT or SL_EINVAL, and says so. */
#define SL_MAX_DIM     65536u
#define SL_MAX_M       256u
#define SL_MAX_EF      65536u
#define SL_MAX_VECTORS 4294901760u
#define SL_MAX_NODES   128u
#define SL_MAX_CPUS    8192u
#define SL_MAX_THREADS 1024u

#define SL_NO_ID UINT64_MAX

/* An enumerator's last part in lower case ("ip", "u8", "bf16", "map"), or "?". */
SL_API const char *sl_metric_name(sl_metric metric);
SL_API const char *sl_dtype_name(sl_dtype dtype);
SL_API const char *sl_codes_name(sl_codes codes);
SL_API const char *sl_refine_name(sl_refine refine);
SL_API const char *sl_clip_name(sl_clip clip);
SL_API const char *sl_place_name(sl_place place);
SL_API const char *sl_layout_name(sl_layout layout);
SL_API const char *sl_tier_name(sl_tier tier);
SL_API const char *sl_numa_policy_name(sl_numa_policy policy);

/* Reads "interleave", "bind:2", "local" or "default". *node is BIND's, else 0. sl_numa_format writes this text, cut to
   `size` bytes, and returns it. */
SL_API SL_MUST_USE sl_status sl_numa_parse(const char *text, sl_numa_policy *policy, size_t *node);
SL_API const char *sl_numa_format(sl_numa_policy policy, size_t node, char *text, size_t size);

/* Bytes per element; 0 if out of range. */
SL_API size_t sl_dtype_size(sl_dtype dtype);

/* ---- Callbacks */

/* Memory of one handle. alloc returns `size` bytes aligned to `alignment`, a power of two, or NULL. free gets the same
   size. Threads of a batch call may call both. */
typedef struct sl_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size, size_t alignment);
    void (*free)(void *ctx, void *ptr, size_t size);
} sl_allocator;

typedef enum sl_log_level { SL_LOG_ERROR = 0, SL_LOG_WARN = 1, SL_LOG_INFO = 2, SL_LOG_DEBUG = 3 } sl_log_level;

/* Receives an event worth an operator's notice: a line without newline, on any calling thread. */
typedef void (*sl_log_fn)(void *ctx, sl_log_level level, const char *message);

/* Receives progress some ten times a second, on the call's thread; an unknown total is 0. Nonzero cancels: the call
   undoes its work. */
typedef int (*sl_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* File operations of saves and writable handles. They act as the POSIX calls of these names, with errno and short
   writes. NULL members are the system's. allocate acts as posix_fallocate inside the file, but fails with -1 and errno.
   flush and drain act as libpmem's; give both or neither. */
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

/* CPU c: bit c % 64 of word c / 64. */
typedef struct sl_cpu_set {
    uint64_t words[SL_MAX_CPUS / 64];
} sl_cpu_set;

/* Operations of a NUMA policy. NULL members ask libnuma. Threads of a batch call may call them. All but nodes,
   node_memory and node_here return 0, or -1 with errno set. */
typedef struct sl_numa_ops {
    void *ctx;
    size_t (*nodes)(void *ctx);
    uint64_t (*node_memory)(void *ctx, size_t node);
    int (*node_cpus)(void *ctx, size_t node, sl_cpu_set *cpus);
    int (*node_here)(void *ctx);
    int (*set_policy)(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node);
    int (*move_pages)(void *ctx, void **pages, size_t count, const int *nodes, int *status);
    int (*get_cpus)(void *ctx, sl_cpu_set *cpus);
    int (*set_cpus)(void *ctx, const sl_cpu_set *cpus);
} sl_numa_ops;

/* ---- Index */

/* An HNSW graph over codes (arXiv 1603.09320).
   Threads: any number may make any calls at once, but free. Searches never wait, and find what was acknowledged before
   they began. Calls that change the handle, save, check, tune and sync go one at a time. */
typedef struct sl_index sl_index;

typedef struct sl_index_params {
    size_t struct_size;
    size_t dim;       /* required; 1 to SL_MAX_DIM */
    sl_metric metric; /* default COSINE */
    sl_dtype dtype;   /* of input and queries; default F32. Floats mix freely, integers take their own type */
    sl_codes codes;   /* default I8; I8 or I4 for I8 and U8 input, I16 or I4 for I16 */
    sl_refine refine; /* default NONE; integers and codes F32 take only NONE, I4+8 no BF16 */
    size_t m;         /* links per node, on layer 0 twice as many; 2 to SL_MAX_M, default 16 */
    /* INSERT: candidates kept per node; LEAVES: one set per 50 in each partitioning; m to SL_MAX_EF, default 200 */
    size_t ef_construction;
    uint64_t seed; /* of levels; default 1 */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_numa_policy numa; /* of codes, links, ids and refine copy */
    size_t numa_node;    /* of BIND */
    const sl_numa_ops *numa_ops;
    sl_clip clip; /* default AUTO; F32, and integers without I4, take only AUTO */
    /* QUANTILE: share of a vector's elements beyond the range, rounded to whole elements; 0 to 0.5, default 0.01 */
    double clip_share;
    int tags, keys; /* nonzero: each vector has 64 bits of tags, or a key */
    int multi;      /* nonzero: an id may have several vectors; searches give its best */
    /* Main memory of the handle's blocks; 0 (default): no bound. Further blocks lie in unnamed files in work_path's
       folder; then a child of fork() must not change the index. SL_ENOMEM if that is not enough. Not with a NUMA
       policy. */
    size_t max_memory;
    /* File in which LEAVES notes its work, so that another handle can finish an add that was broken off. Other
       handles get SL_EBUSY. A save removes it. NULL (default): no notes, all in memory. */
    const char *work_path;
} sl_index_params;

SL_API void sl_index_params_init_sized(sl_index_params *params, size_t struct_size);
#define sl_index_params_init(params) sl_index_params_init_sized((params), sizeof *(params))

/* Makes an empty index. Errors: SL_ETYPE, SL_ELIMIT, SL_EUNSUPPORTED (build or system lack the NUMA policy). With
   work_path SL_EBUSY, SL_EIO, SL_ENOSPC, SL_ECORRUPT. */
SL_API SL_MUST_USE sl_status sl_index_create(const sl_index_params *params, sl_index **out);
SL_API void sl_index_free(sl_index *index);

/* Makes room for n vectors, deleted ones included. Errors: those of a change, SL_ELIMIT. */
SL_API SL_MUST_USE sl_status sl_index_reserve(sl_index *index, size_t n);

/* How added vectors get links.
     INSERT  Each vector searches the graph for neighbours (HNSW).
     LEAVES  All pairs in overlapping sets of near vectors are compared (PiPNN, arXiv 2602.21247). Needs 4,096 vectors
             or more, in memory. Threads do not change the graph.
     AUTO    LEAVES if it serves, the batch is no smaller than the index, m is 16 to 24, and ef_construction 200 or
             more. Else INSERT. */
typedef enum sl_builder { SL_BUILDER_AUTO = 0, SL_BUILDER_INSERT = 1, SL_BUILDER_LEAVES = 2 } sl_builder;

/* In seconds. */
typedef struct sl_add_times {
    size_t struct_size;
    double linking;   /* checking, encoding, linking */
    double numbering; /* proving reachability, renumbering by partition */
} sl_add_times;

/* Vectors that an add replaces, in one step. ONE: of each row's id, the nearest to the row of `old`. */
typedef enum sl_replace { SL_REPLACE_NONE = 0, SL_REPLACE_ALL = 1, SL_REPLACE_ONE = 2 } sl_replace;

typedef struct sl_add_params {
    size_t struct_size;
    size_t threads;
    sl_progress_fn progress;
    void *progress_ctx;
    const uint64_t *tags, *keys; /* n words each; NULL: zeros */
    sl_builder builder;
    sl_add_times *times;
    int replace;     /* an sl_replace */
    const void *old; /* rows like the vectors; NULL: the vectors */
} sl_add_params;

SL_API void sl_add_params_init_sized(sl_add_params *params, size_t struct_size);
#define sl_add_params_init(params) sl_add_params_init_sized((params), sizeof *(params))

/* Adds n vectors.
     vectors  (n, dim)
     ids      n ids. NULL: go on after the largest so far; the first is 0
   If progress cancels while the call renumbers, all vectors are added and it returns SL_OK.
   Errors: those of a change, SL_EEXIST (an id twice, or present without replace; not with multi), SL_ELIMIT,
   SL_EUNSUPPORTED (LEAVES does not serve, or replace in persistent memory written directly; says why). */
SL_API SL_MUST_USE sl_status sl_index_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, size_t stride,
                                          const uint64_t *ids, const sl_add_params *params);

/* An id in several merged indexes fails the merge, or gets the last index's vectors. With multi all are kept. */
typedef enum sl_clash { SL_CLASH_REFUSE = 0, SL_CLASH_LATER = 1 } sl_clash;

typedef struct sl_merge_params {
    size_t struct_size;
    size_t m, ef_construction; /* 0: the first index's */
    size_t threads;
    sl_clash clash;
    sl_builder builder;
    sl_progress_fn progress;
    void *progress_ctx;
    size_t max_memory; /* as in sl_index_params */
    const char *work_path;
} sl_merge_params;

SL_API void sl_merge_params_init_sized(sl_merge_params *params, size_t struct_size);
#define sl_merge_params_init(params) sl_merge_params_init_sized((params), sizeof *(params))

/* Makes a new index in memory of the vectors that are not deleted.
     indexes  stay as they are. Nobody may change them meanwhile; searches may go on. Their files are verified first
     out      has the first's other parameters, allocator and log; no NUMA policy or tuned settings. Codes, refinements,
              ids, tags and keys are exact copies
   Errors: SL_EINVAL (metric, dimension, type, codes, refinement, tags, keys or multi differ), SL_EEXIST (names the
   indexes), SL_ECORRUPT (a damaged file or vector), SL_EBUSY (another process writes an index), SL_ELIMIT,
   SL_EUNSUPPORTED, those of max_memory and work_path. */
SL_API SL_MUST_USE sl_status sl_index_merge(sl_index *const *indexes, size_t count, const sl_merge_params *params,
                                            sl_index **out);

/* Deletes all vectors of n ids, which may be added again. Searches find k while k are left, but take longer. Errors:
   those of a change, SL_ENOTFOUND (an id absent, deleted before, or given twice). */
SL_API SL_MUST_USE sl_status sl_index_delete(sl_index *index, const uint64_t *ids, size_t n);

/* Brings back the vectors that the last delete of each of n ids took, until their memory is used again. Serves deletes
   by this handle. Errors: those of a change, SL_ENOTFOUND (an id not deleted, or too long ago), SL_EEXIST (an id
   present, or given twice). */
SL_API SL_MUST_USE sl_status sl_index_undelete(sl_index *index, const uint64_t *ids, size_t n);

typedef struct sl_compact_params {
    size_t struct_size;
    sl_progress_fn progress; /* counts deleted vectors. Cancelled, the index stays sound; a later call goes on */
    void *progress_ctx;
} sl_compact_params;

SL_API void sl_compact_params_init_sized(sl_compact_params *params, size_t struct_size);
#define sl_compact_params_init(params) sl_compact_params_init_sized((params), sizeof *(params))

/* Gives the memory of deleted vectors back, in short steps; in a file, to later adds, and empty blocks to the system.
   Waits for earlier searches. Errors: those of a change, SL_EUNSUPPORTED (persistent memory written
   directly). */
SL_API SL_MUST_USE sl_status sl_index_compact(sl_index *index, const sl_compact_params *params);

/* Replaces the tag words, or keys, of all vectors of n ids. An id given twice gets its last word. The next sync makes
   words durable; in persistent memory written directly each is durable at once. Errors: those of a change,
   SL_ENOTFOUND. */
SL_API SL_MUST_USE sl_status sl_index_set_tags(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *tags);
SL_API SL_MUST_USE sl_status sl_index_set_keys(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *keys);

/* Gives the tag words, or keys, of n ids. If an id has several vectors, any one's. Errors: SL_ENOTFOUND. */
SL_API SL_MUST_USE sl_status sl_index_get_tags(sl_index *index, const uint64_t *ids, size_t n, uint64_t *tags);
SL_API SL_MUST_USE sl_status sl_index_get_keys(sl_index *index, const uint64_t *ids, size_t n, uint64_t *keys);

typedef int (*sl_accept_fn)(void *ctx, uint64_t id);

/* With this many queries per thread or more, a batch call with a recall takes sl_tuned.probes, else probes_one. */
#define SL_SCAN_LEAST 256u

/* ---- Filters

   A filter is the set of vectors that searches may return, as of its last refresh. An id stands for all its vectors;
   deleted ones are never allowed.
   Threads: any number of searches may use a filter at once. sl_filter_refresh and sl_filter_free need it alone. */
typedef struct sl_filter sl_filter;

typedef struct sl_filter_params {
    size_t struct_size;
    /* An id is allowed if every member given allows it. NULL allows all. bits has (bits_count + 63) / 64 words; bit i %
       64 of word i / 64 allows id i; ids from bits_count on are not allowed. */
    const uint64_t *bits;
    size_t bits_count;
    const uint64_t *allow; /* allowed ids; ids that the index lacks are ignored */
    size_t allow_count;
    const uint64_t *exclude; /* ids not allowed; likewise */
    size_t exclude_count;
    sl_accept_fn accept; /* above 0: allowed; 0: not; below 0 fails the call (SL_ECANCELED). create and refresh call it
                            once per vector, on the calling thread */
    void *accept_ctx;
    const sl_allocator *allocator;
    /* Allows words with a bit of any_tags, all bits of all_tags and none of none_tags; 0 (default): all. */
    uint64_t any_tags, all_tags, none_tags;
    /* Keys from key_min to key_max, both included; default 0 and UINT64_MAX: all. */
    uint64_t key_min, key_max;
} sl_filter_params;
SL_API void sl_filter_params_init_sized(sl_filter_params *params, size_t struct_size);
#define sl_filter_params_init(params) sl_filter_params_init_sized((params), sizeof *(params))

/* Makes a filter, which copies bits and lists. */
SL_API SL_MUST_USE sl_status sl_filter_create(sl_index *index, const sl_filter_params *params, sl_filter **out);
/* Brings a filter up to date with added and renumbered vectors, tags and keys. */
SL_API SL_MUST_USE sl_status sl_filter_refresh(sl_filter *filter);
SL_API void sl_filter_free(sl_filter *filter);
/* Vectors allowed now. */
SL_API size_t sl_filter_count(const sl_filter *filter);

/* How a search with a filter finds candidates (docs/internals/filters.md). */
typedef enum sl_filter_strategy {
    SL_FILTER_AUTO = 0,
    SL_FILTER_EXACT = 1,
    SL_FILTER_PARTITIONS = 2,
    SL_FILTER_WALK = 3,
    SL_FILTER_HOPS = 4
} sl_filter_strategy;

typedef struct sl_search_params {
    size_t struct_size;
    size_t ef;      /* candidates on layer 0, deleted ones aside; 1 to SL_MAX_EF, default 64; raised to k */
    size_t rerank;  /* candidates that finer codes or the refine copy re-rank; default 0: by k and ef */
    size_t threads; /* of a batch call, as is progress; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
    /* Filters of this call; an id must pass all given, `filter` too. accept returns nonzero for an id that may be
       returned. Searching threads call it, at most once per query, vector and walk. It must not use the searcher or
       change the index. accept_bits is as sl_filter_params.bits. */
    sl_accept_fn accept;
    void *accept_ctx;
    const uint64_t *accept_bits;
    size_t accept_bits_count;
    /* Above 0, up to 1: recall to reach. Settings of sl_index_tune replace ef, rerank, stop, probes and groups. */
    double recall;
    /* Above 0: a walk also ends at a candidate farther than 1 + stop times the k-th best. 0 (default), a filter, or
       over a 64th deleted: ef alone ends it. */
    double stop;
    /* Above 0: scans this many nearest partitions instead of a walk, if it can; may give fewer than k. */
    size_t probes;
    /* Above 0: takes partitions from this many nearest groups; 0: from all. */
    size_t groups;
    /* vectors that may be returned; NULL: all */
    const sl_filter *filter;
    sl_filter_strategy strategy; /* of `filter`; default AUTO */
    /* Above 0: at most this many of the k results share a key. The search ends when it has k or has compared all
       allowed. */
    size_t group_size;
    /* has_threshold nonzero: worse results are left out, equal ones stay. NaN: SL_EINVAL. */
    int has_threshold;
    double threshold;
    /* Above 0: a query, or an iterator's page, ends after about this many evaluations with what it has. */
    size_t max_visits;
    /* A filter for each query of sl_index_search, or id of sl_index_search_ids; NULL entries allow all. SL_EINVAL
       elsewhere, and with `filter`. */
    const sl_filter *const *filters;
} sl_search_params;

SL_API void sl_search_params_init_sized(sl_search_params *params, size_t struct_size);
#define sl_search_params_init(params) sl_search_params_init_sized((params), sizeof *(params))

typedef struct sl_search_stats {
    size_t results;                  /* before the fill */
    size_t evaluations;              /* distances over codes and centroids */
    size_t expansions;               /* nodes whose links were read */
    size_t exact, partitions, walks; /* queries with `filter`, by the strategy that ended them */
    size_t hops;
    size_t cut; /* queries that max_visits ended */
} sl_search_stats;

/* Scratch of searches, for one thread at a time. It sees later adds. */
typedef struct sl_searcher sl_searcher;

/* Makes a searcher for ef and k up to max_ef; a filter may raise ef that far. Memory grows with max_ef. */
SL_API SL_MUST_USE sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out);
SL_API void sl_searcher_free(sl_searcher *searcher);

/* Finds the k nearest of one query.
     ids, scores  k entries; min(k, allowed) are found, unless max_visits ends the search. Fewer, or none, are SL_OK
   With multi, results are k different ids, each with the score of its best vector found. Takes no lock. Allocates
   nothing once warm, except among deleted vectors and for large scans.
   Errors: SL_EINVAL (also max(k, ef) above max_ef, `filters`), SL_ENOTFOUND (no settings for this recall). */
SL_API SL_MUST_USE sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                                                const sl_search_params *params, uint64_t *ids, float *scores,
                                                sl_search_stats *stats);

/* The same for nq queries.
     queries      (nq, dim)
     ids, scores  (nq, k)
     stats        sums over queries */
SL_API SL_MUST_USE sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                             size_t stride, size_t k, const sl_search_params *params, uint64_t *ids,
                                             float *scores, sl_search_stats *stats);

/* ---- Iterators

   An iterator gives the results of one query page by page. Each page goes on where the walk stopped.

   Threads: one at a time uses an iterator. */
typedef struct sl_iterator sl_iterator;

/* Makes an iterator, which copies the query. Everything params point to must outlive it. A page is as good as a search
   for all results so far with this ef and rerank. Besides, only accept, accept_bits, filter, max_visits and strategies
   EXACT and WALK count. Errors: SL_EINVAL (also a recall). */
SL_API SL_MUST_USE sl_status sl_iterator_create(const sl_index *index, const void *query, sl_dtype dtype,
                                                const sl_search_params *params, sl_iterator **out);
/* Finds the k nearest vectors that no earlier call gave.
     got    results; may be NULL. Below k: none is left; or, with stats->cut = 1, max_visits ended the page, and the
            next call goes on
     stats  of this call
   Every vector that is allowed and not deleted comes once; with multi every id, by its best. A vector that an
   earlier page missed comes later, and may be nearer than that page's last.
   Errors: SL_EINVAL (after this handle's add, or a save or tuning that renumbers: only free the iterator), SL_ENOMEM
   (call again). */
SL_API SL_MUST_USE sl_status sl_iterator_next(sl_iterator *iterator, size_t k, uint64_t *ids, float *scores,
                                              size_t *got, sl_search_stats *stats);
SL_API void sl_iterator_free(sl_iterator *iterator);

/* Finds the k nearest of n stored vectors, each without itself, as sl_index_search does. k is below SL_MAX_EF,
   group_size 0. Errors: SL_ENOTFOUND, SL_EUNSUPPORTED (with multi). */
SL_API SL_MUST_USE sl_status sl_index_search_ids(sl_index *index, const uint64_t *ids, size_t n, size_t k,
                                                 const sl_search_params *params, uint64_t *out_ids, float *scores,
                                                 sl_search_stats *stats);

/* ---- Range search */

typedef struct sl_range_params {
    size_t struct_size;
    int exact;               /* nonzero: compares with all allowed; 0 (default): walks, and may miss some */
    size_t ef;               /* of the walk to the neighbourhood; 1 to SL_MAX_EF, default 128 */
    const sl_filter *filter; /* allowed vectors; NULL: all */
    size_t threads;          /* over queries, as progress; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
    /* The walk goes on from vectors up to 1 + slack times as far as the radius. 0 or more, default 0.015. */
    double slack;
} sl_range_params;

SL_API void sl_range_params_init_sized(sl_range_params *params, size_t struct_size);
#define sl_range_params_init(params) sl_range_params_init_sized((params), sizeof *(params))

/* Receives one result of query number `query`; nonzero ends that query. A query's calls come one after another, in no
   order of scores; several threads may call for different queries. It must not change the index. */
typedef int (*sl_range_fn)(void *ctx, size_t query, uint64_t id, float score);

/* Finds all vectors within a score of each of nq queries.
     queries  (nq, dim)
     radius   score >= radius under IP and COSINE, <= under L2; infinite: all, or none
     fn       gets any number of results during the search, an id once for each of its vectors
     stats    results: calls of fn; exact: queries compared with all; walks: the others
   Errors: SL_EINVAL (also a radius of NaN, a filter that a search refuses). By then fn may have received results. A
   query that fn ended is no error. */
SL_API SL_MUST_USE sl_status sl_index_range(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                            size_t stride, double radius, const sl_range_params *params, sl_range_fn fn,
                                            void *ctx, sl_search_stats *stats);

/* Gives the vectors of n ids as dense rows of SL_F32, or an integer index's type. Exact for integers, codes F32 and
   refine F32, else the best reconstruction held. Errors: SL_ENOTFOUND, SL_ETYPE, SL_EUNSUPPORTED (an id has several
   vectors). */
SL_API SL_MUST_USE sl_status sl_index_get(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, void *out);
/* Gives all vectors of one id likewise, in no order. *count is their number; `out` gets the first `room`, or is NULL.
   Errors: SL_ENOTFOUND, SL_ETYPE. */
SL_API SL_MUST_USE sl_status sl_index_get_all(sl_index *index, uint64_t id, sl_dtype dtype, void *out, size_t room,
                                              size_t *count);

typedef struct sl_index_stats {
    size_t struct_size;
    size_t n, dim, m, ef_construction; /* n without deleted ones */
    uint64_t seed;
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_place place;
    size_t max_level;
    /* As in a file, with deleted vectors; bytes_partitions too. */
    uint64_t bytes_codes, bytes_links, bytes_ids, bytes_upper, bytes_refine;
    uint64_t bytes_total;
    double quant_error_mean; /* mean of |x - decoded| / |x|; 0 for exact codes */
    double quant_error_max;
    const char *isa; /* kernels' tier; static */
    size_t tuned;    /* settings stored */
    uint64_t bytes_partitions;
    size_t deleted;
    size_t room; /* of a mapped file with room: vectors it can hold, deleted ones too */
    sl_layout layout;
    size_t partitions;
    size_t groups;
    sl_clip clip; /* AUTO also if its rule was given */
    double clip_share;
    int tags, keys;
    uint64_t bytes_tags, bytes_keys;
    int multi;        /* n counts vectors */
    size_t reusable;  /* places of deleted vectors that the next adds use; not in `deleted` */
    size_t in_repair; /* those of `deleted` that are becoming reusable */
    uint64_t epoch;   /* count of changes that this handle's calls see */
    uint64_t oldest_epoch;
    size_t versions_held; /* replaced versions that the oldest call may read */
    uint64_t bytes_held;
} sl_index_stats;

SL_API SL_MUST_USE sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out);

/* A running call that reads the index. */
typedef struct sl_epoch_holder {
    uint64_t epoch; /* in which it began; 0: unknown. Of another handle: the commit */
    int pid, tid;   /* tid 0: unknown */
} sl_epoch_holder;

/* Lists them, oldest first; then, for a mapped file, those of others. *count is their number;
   `holders` gets the first `room`, or is NULL. */
SL_API SL_MUST_USE sl_status sl_index_holders(const sl_index *index, sl_epoch_holder *holders, size_t room,
                                              size_t *count);

/* Vectors, without deleted ones. */
SL_API size_t sl_index_size(const sl_index *index);

/* *found is 1 if a vector that is not deleted has the id, else 0. */
SL_API SL_MUST_USE sl_status sl_index_contains(sl_index *index, uint64_t id, int *found);

/* Lists the ids that are not deleted, each once, in an order that an add, a save or a tuning may change. *count is
   their number; `ids` gets the first `room`, or is NULL. */
SL_API SL_MUST_USE sl_status sl_index_ids(const sl_index *index, uint64_t *ids, size_t room, size_t *count);

typedef enum sl_file_kind { SL_FILE_INDEX = 0, SL_FILE_RANKER = 1, SL_FILE_ITEMS = 2 } sl_file_kind;

/* Tells a file's type by its first bytes. Errors: SL_EIO, SL_EFORMAT. */
SL_API SL_MUST_USE sl_status sl_file_kind_of(const char *path, sl_file_kind *out);

typedef struct sl_check_params {
    size_t struct_size;
    size_t sample; /* vectors searched for, and compared with exact search; default 200, 0: none */
    size_t k, ef;  /* of the sample; default 10 and 200 */
    size_t threads;
    sl_progress_fn progress;
    void *progress_ctx;
    uint64_t *bad_ids; /* with scrub: ids of the first bad_ids_room damaged records */
    size_t bad_ids_room;
    int scrub; /* nonzero, mapped with room or in records: verifies each vector by its own CRC */
} sl_check_params;

SL_API void sl_check_params_init_sized(sl_check_params *params, size_t struct_size);
#define sl_check_params_init(params) sl_check_params_init_sized((params), sizeof *(params))

typedef struct sl_check_report {
    size_t struct_size;
    size_t n;
    size_t bad_links; /* out of range, to the node itself, or twice in a list */
    size_t bad_upper;
    /* Not reached by layer 0 from the entry point. In a file being written, this and no_in_link are no faults. */
    size_t unreachable;
    size_t no_in_link;
    size_t bad_vectors;
    size_t duplicate_ids;
    size_t min_degree, max_degree;
    double mean_degree;
    double sampled_recall; /* recall@k over the same codes; NaN if skipped */
    size_t sections_checked;
    size_t deleted;
    size_t records_checked;
    size_t bad_records;
    size_t pages_checked;
    size_t bad_pages;
    int unverified;                        /* 1: no page checksums, only scrub verifies */
    size_t sampled_lost;                   /* find less than half of their k nearest */
    size_t resolution_sampled, unresolved; /* as sl_resolution */
} sl_check_report;

/* Verifies a whole index: checksums, every invariant of the graph, reachability. SL_OK: all holds; judge sampled_recall
   and sampled_lost yourself. SL_ECORRUPT: the message has the first fault. *report is filled in both cases. SL_EBUSY: a
   child of fork(). */
SL_API SL_MUST_USE sl_status sl_index_check(sl_index *index, const sl_check_params *params, sl_check_report *report);

typedef struct sl_recall_params {
    size_t struct_size;
    size_t sample;  /* vectors drawn; default 200 */
    size_t k, ef;   /* of the searches; default 10 and 64 */
    double seconds; /* draws no more after this time; 0: no limit */
    uint64_t seed;  /* equal seeds draw equal vectors of an index that did not change */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_recall_params;

SL_API void sl_recall_params_init_sized(sl_recall_params *params, size_t struct_size);
#define sl_recall_params_init(params) sl_recall_params_init_sized((params), sizeof *(params))

typedef struct sl_recall_report {
    size_t struct_size;
    size_t sampled;
    double recall, standard_error; /* of the k nearest by the codes, the vector itself aside */
    size_t lost;                   /* vectors of whose k nearest a search found less than half */
} sl_recall_report;

/* Measures what searches for stored vectors find, against a comparison with all vectors: one pass over the index per
   drawn vector, on the calling thread. Changes go on beside it. */
SL_API SL_MUST_USE sl_status sl_index_recall(const sl_index *index, const sl_recall_params *params,
                                             sl_recall_report *report);

typedef struct sl_save_params {
    size_t struct_size;
    const sl_file_ops *file_ops;
    sl_progress_fn progress;
    void *progress_ctx;
    size_t room; /* vectors the file has room for, at least its own. A writable handle changes such a file in place. 0
                    (default): the smallest file, which never changes */
    sl_layout layout; /* default ARRAYS, also when opened from records */
} sl_save_params;

SL_API void sl_save_params_init_sized(sl_save_params *params, size_t struct_size);
#define sl_save_params_init(params) sl_save_params_init_sized((params), sizeof *(params))

/* Writes the whole index to path. Whatever happens, path holds the old file or the whole new one, even if the index
   maps it. On failure path is as it was, unless the message says that only the folder's sync failed.
   Errors: SL_EBUSY (path is being written in place: sync; an exclusive handle claims it; another changed the file that
   the index was opened from; another locks path's folder), SL_ECORRUPT (the mapped file), SL_EIO, SL_ENOSPC. */
SL_API SL_MUST_USE sl_status sl_index_save(sl_index *index, const char *path, const sl_save_params *params);

/* Tries, before long work, whether a save could put a file at `path`. A file there stays. A later save may still fail.
   Threads: any. Errors: SL_EIO (also a file mounted at `path`), SL_ENOSPC, SL_EBUSY as of sl_index_save. */
SL_API SL_MUST_USE sl_status sl_save_try(const char *path);

typedef struct sl_open_params {
    size_t struct_size;
    /* MAP (default) and PMEM, here called mapped: loads nothing; read-only unless writable. DRAM: reads the file and
       verifies its CRCs. The index can be changed and saved. */
    sl_place place;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress;
    void *progress_ctx;
    int writable;                /* mapped, with room: changes go to the file, sl_index_sync makes them durable */
    const sl_file_ops *file_ops; /* of a writable handle */
    size_t log_bytes;            /* size at which a writable handle empties its redo log; 0 (default): 256 MB */
    /* As in sl_index_params. Mapped, layer 0 is read ahead and its pages moved. */
    sl_numa_policy numa;
    size_t numa_node;
    const sl_numa_ops *numa_ops;
    int prefault; /* nonzero, mapped: reads all of layer 0 now, so that no search waits */
    /* Mapped: copies of the upper layers and I4's 4-bit rows in DRAM, for slow media. AUTO (default): of persistent
       memory without room, if they fit. DRAM: always. */
    sl_tier tier;
    size_t threads; /* that copy into DRAM; LOCAL: one */
    int exclusive;  /* 1: to change the index and save it over its file. Until it is freed, other exclusive or writable
                       handles, and saves, get SL_EBUSY. Not with writable */
    double wait_s;  /* seconds to wait while SL_EBUSY; progress gets (0, 0) */
} sl_open_params;

SL_API void sl_open_params_init_sized(sl_open_params *params, size_t struct_size);
#define sl_open_params_init(params) sl_open_params_init_sized((params), sizeof *(params))

/* Opens a saved index; mapped, in constant time. A damaged or hostile file gives SL_EFORMAT, SL_EVERSION, SL_ECORRUPT
   or wrong neighbours, never a crash.
   Errors: SL_EIO, SL_EBUSY (another handle writes or claims it), SL_EUNSUPPORTED (writable without room; a tier in DRAM
   with it; writable or exclusive on a file system without locks; a NUMA policy). */
SL_API SL_MUST_USE sl_status sl_index_open(const char *path, const sl_open_params *params, sl_index **out);

/* Makes durable what was added, tuned, set and deleted in a writable index: it survives the process and a power loss,
   and all who have the file open find it from their next search on. Until then this handle alone does.
   If the log that a crash left is gone, the file can only be mapped for reading, else SL_ECORRUPT. Written directly,
   persistent memory has no log, and changes count at once.
   Errors: SL_ENOSPC and SL_EIO (try again, unless the message says to open the file anew), SL_EBUSY (the file was
   renamed, replaced or written over; a child of fork()), SL_EUNSUPPORTED (in memory), SL_EREADONLY. */
SL_API SL_MUST_USE sl_status sl_index_sync(sl_index *index);

typedef struct sl_snapshot_params {
    size_t struct_size;
    const sl_file_ops *file_ops; /* of the copy */
    sl_progress_fn progress;
    void *progress_ctx;
} sl_snapshot_params;

SL_API void sl_snapshot_params_init_sized(sl_snapshot_params *params, size_t struct_size);
#define sl_snapshot_params_init(params) sl_snapshot_params_init_sized((params), sizeof *(params))

/* Copies the index file at path, and puts the copy in place as sl_index_save does: whole, durable, without a log,
   independent. Beside a writer the copy has all synced before, perhaps some synced since, and nothing half.
   Errors: SL_EBUSY (a writer in persistent memory; another index is being written at `copy`), SL_EINVAL (also `copy` is
   the file or its log), SL_EIO, SL_ENOSPC, those of opening. */
SL_API SL_MUST_USE sl_status sl_index_snapshot(const char *path, const char *copy, const sl_snapshot_params *params);

typedef struct sl_rebuild_params {
    size_t struct_size;
    const char *output;        /* file to write; NULL: in place of the old one */
    size_t m, ef_construction; /* 0: the index's own */
    size_t room;               /* at least the old file's, and all vectors; 0: the old file's */
    size_t threads;
    sl_builder builder;
    double wait_s;
    size_t max_memory;
    const char *work_path;
    const sl_allocator *allocator;
    const sl_file_ops *file_ops;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress;
    void *progress_ctx;
} sl_rebuild_params;

SL_API void sl_rebuild_params_init_sized(sl_rebuild_params *params, size_t struct_size);
#define sl_rebuild_params_init(params) sl_rebuild_params_init_sized((params), sizeof *(params))

typedef struct sl_rebuild_report {
    size_t struct_size;
    size_t n; /* there were n + deleted */
    size_t deleted;
    /* Without unused room. bytes_after 0: the new file could not be opened. */
    uint64_t bytes_before, bytes_after;
    size_t room;
    sl_layout layout;
    const char *linked_from; /* codes compared: "i8", "i16", "f32", or "i4+8"; static */
} sl_rebuild_report;

/* Makes the index file at path anew, without deleted vectors: merges this index, then saves it over the file. Layout,
   room, ids, the next id, tags, keys, codes and refinements stay; tuned settings do not. Handles on the old file go on
   with it.
   Threads: any. Errors: SL_EBUSY (another handle writes or claims the file or `output`), SL_ECORRUPT, SL_EFORMAT,
   SL_EVERSION, SL_EIO, SL_ENOSPC, SL_ELIMIT, SL_EUNSUPPORTED (builder), those of work_path. On failure as
   sl_index_save. */
SL_API SL_MUST_USE sl_status sl_index_rebuild(const char *path, const sl_rebuild_params *params,
                                              sl_rebuild_report *report);

/* ---- Tuning */

#define SL_MAX_TARGETS        64u
#define SL_MAX_TUNED          4096u /* settings in an index */
#define SL_TUNE_LEAST_QUERIES 50u

typedef enum sl_tune_limit {
    SL_LIMIT_NONE = 0,
    SL_LIMIT_CODES = 1, /* codes rank others before true neighbours */
    SL_LIMIT_GRAPH = 2, /* deeper walks find no more */
    SL_LIMIT_EF = 3     /* max_ef is too small */
} sl_tune_limit;

/* The text says what to do about it, or "?". */
SL_API const char *sl_tune_limit_name(sl_tune_limit limit);
SL_API const char *sl_tune_limit_text(sl_tune_limit limit);

/* Settings for one target at one k. */
typedef struct sl_tuned {
    size_t struct_size;
    double target;
    size_t k;
    size_t least_k; /* settings reach the target from here to k */
    size_t ef, rerank;
    double stop;
    sl_tune_limit limit; /* not NONE: target not reached, settings of the best recall */
    double recall;       /* mean over the tuning's queries */
    double standard_error;
    double evaluations; /* mean per query */
    size_t n;           /* vectors when tuned */
    size_t queries;
    size_t ef_alone;   /* ef without stop */
    size_t probes;     /* for batches of SL_SCAN_LEAST queries per thread; 0: walks */
    size_t probes_one; /* for smaller ones */
    size_t groups;     /* 0: all */
    int scan_only;     /* 1: only scans reach the target */
} sl_tuned;

typedef struct sl_tune_params {
    size_t struct_size;
    const double *targets; /* recalls above 0, up to 1; NULL: ten from 0.8 to 0.995 */
    size_t target_count;   /* up to SL_MAX_TARGETS; 0 with NULL */
    size_t max_ef;         /* deepest tried, k to SL_MAX_EF; default 0: 16384; at most max(n, k) */
    size_t threads;
    sl_progress_fn progress;
    void *progress_ctx;
} sl_tune_params;

SL_API void sl_tune_params_init_sized(sl_tune_params *params, size_t struct_size);
#define sl_tune_params_init(params) sl_tune_params_init_sized((params), sizeof *(params))

typedef struct sl_tune_report {
    size_t struct_size;
    size_t targets;
    size_t reached;
    size_t first; /* the lowest target's number for sl_index_get_tuned */
    size_t passes;
    size_t queries_needed; /* for two standard errors of 0.005 */
} sl_tune_report;

/* Finds for each target the cheapest settings that reach it, and stores them in place of those of the same k. A target
   out of reach is stored with its reason. Settings stay through adds, and are saved. A mapped index is tuned in memory:
   save it.
     queries  (nq, dim), like those to come
     truth    (nq, k) ids of the true k nearest, different ones, best first. NULL: found among what sl_index_get gives
   Errors: SL_EINVAL (also fewer than SL_TUNE_LEAST_QUERIES queries or k vectors, a neighbour twice in a row of truth,
   truth no better than chance), SL_EUNSUPPORTED (codes that lose the nearest), SL_ENOTFOUND (an id of truth),
   SL_ELIMIT. */
SL_API SL_MUST_USE sl_status sl_index_tune(sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                           size_t stride, const uint64_t *truth, size_t k, const sl_tune_params *params,
                                           sl_tune_report *report);

/* Gives settings i, by rising k, then target. SL_ENOTFOUND: none has this number. */
SL_API SL_MUST_USE sl_status sl_index_get_tuned(const sl_index *index, size_t i, sl_tuned *out);

/* Gives the settings of a search with this k and recall: the lowest target not below recall, tuned for k, else for the
   next larger k that serves it (least_k). SL_ENOTFOUND says why there are none. */
SL_API SL_MUST_USE sl_status sl_index_find_tuned(const sl_index *index, size_t k, double recall, sl_tuned *out);

/* ---- Exact search */

typedef struct sl_exact_params {
    size_t struct_size;
    size_t dim;
    sl_metric metric; /* default COSINE */
    sl_dtype dtype;   /* of base and queries; default F32 */
    size_t k;
    size_t threads;
    const sl_allocator *allocator;
    sl_progress_fn progress;
    void *progress_ctx;
} sl_exact_params;

SL_API void sl_exact_params_init_sized(sl_exact_params *params, size_t struct_size);
#define sl_exact_params_init(params) sl_exact_params_init_sized((params), sizeof *(params))

/* A scan in blocks, for bases larger than memory. It copies the queries. Threads: one at a time. */
typedef struct sl_exact sl_exact;

SL_API SL_MUST_USE sl_status sl_exact_create(const sl_exact_params *params, const void *queries, size_t nq,
                                             size_t stride, sl_exact **out);
SL_API void sl_exact_free(sl_exact *exact);

/* Compares n rows of ids first_id, first_id + 1, … with every query; all are below SL_NO_ID. After SL_EVALUE or
   SL_ECANCELED only free the scan. */
SL_API SL_MUST_USE sl_status sl_exact_scan(sl_exact *exact, const void *rows, size_t n, size_t stride,
                                           uint64_t first_id);

/* Gives the k nearest of each query so far, (nq, k), ties by smaller id: the same on every machine. */
SL_API SL_MUST_USE sl_status sl_exact_results(const sl_exact *exact, uint64_t *ids, float *scores);

/* ---- Single vectors */

/* Exact for integers (cosine: one rounding); floats within dim · 2^-23 · Σ|aᵢbᵢ| of the true value. */
SL_API SL_MUST_USE sl_status sl_score(sl_metric metric, sl_dtype dtype, const void *a, const void *b, size_t dim,
                                      double *score);

/* Converts n elements between floating-point types, to nearest, ties to even. F16 and BF16 overflow to infinity; NaN
   stays NaN. Integers convert to SL_F32 only. */
SL_API SL_MUST_USE sl_status sl_convert(const void *from, sl_dtype from_dtype, void *to, sl_dtype to_dtype, size_t n);

/* ---- The machine */

typedef enum sl_isa {
    SL_ISA_SCALAR = 0,
    SL_ISA_AVX2 = 1,
    SL_ISA_AVXVNNI = 2,
    SL_ISA_AVX512BW = 3,
    SL_ISA_AVX512VNNI = 4,
    SL_ISA_NEON = 5,
    SL_ISA_AMXINT8 = 6,
    SL_ISA_COUNT = 7
} sl_isa;

/* The words of SHORTLIST_MAX_ISA. */
SL_API const char *sl_isa_name(sl_isa isa);

typedef struct sl_system {
    size_t struct_size;
    sl_isa isa;             /* in use: the best up to SHORTLIST_MAX_ISA */
    unsigned isa_available; /* bit (1 << tier) for each that can run */
    size_t cpus;
    size_t numa_nodes;
    size_t page_size;
    size_t huge_page_size;      /* transparent; 0: none */
    const char *huge_page_mode; /* "always", "madvise", "never" or "none" */
    int has_openmp, has_numa, has_pmem, has_onednn;
    size_t max_threads;  /* of a batch call with threads = 0, up to most_threads */
    uint64_t memory;     /* the machine's, or a control group's; 0: unknown */
    size_t most_threads; /* of a call: SL_MAX_THREADS, or a lower OMP_THREAD_LIMIT */
} sl_system;

SL_API SL_MUST_USE sl_status sl_system_query(sl_system *out);

/* ---- Experimental

   What follows may change or go in any version. So may sl_filter_strategy, sl_numa_ops, flush and drain of
   sl_file_ops, max_memory and work_path, stop, probes, groups, max_visits and filters of sl_search_params, and
   sl_open_params.tier. */

typedef struct sl_resolution {
    size_t struct_size;
    size_t sampled;    /* vectors compared with all */
    size_t unresolved; /* of them: codes do not tell their nearest apart */
} sl_resolution;

/* Measures whether codes of floats under L2 tell near vectors apart. docs/CALLS.md has remedies. */
SL_API SL_MUST_USE sl_status sl_index_resolution(const sl_index *index, size_t threads, sl_resolution *out);

/* Deletes every vector of a writable index whose record fails its checksum; *dropped is their number. A check with
   scrub names them before. Errors: SL_EREADONLY, SL_EUNSUPPORTED (in memory), SL_ECORRUPT (no record is sound),
   SL_ENOSPC. */
SL_API SL_MUST_USE sl_status sl_index_drop_damaged(sl_index *index, size_t threads, size_t *dropped);

/* Bytes of an index's file, by part. */
typedef struct sl_plan {
    size_t struct_size;
    uint64_t n;
    uint64_t bytes_codes;  /* I4+8: 4-bit rows; I4: finer codes */
    uint64_t bytes_rest;   /* I4+8: the 8 bits */
    uint64_t bytes_coarse; /* I4: 4-bit rows */
    uint64_t bytes_links;
    uint64_t bytes_ids; /* if ids run from 0 */
    uint64_t bytes_refine;
    uint64_t bytes_layer0;          /* all above, tags, keys */
    uint64_t bytes_upper;           /* upper layers, expected */
    uint64_t bytes_upper_deviation; /* standard deviation, at most */
    uint64_t bytes_projection;      /* makes coarse rows */
    uint64_t bytes_partitions;      /* at most */
    uint64_t bytes_total;           /* the file */
    uint64_t bytes_with_room;       /* the file with room for n */
    uint64_t record_bytes;
    uint64_t bytes_in_records; /* the file in layout RECORDS */
    uint64_t bytes_tier;       /* of these, copied by a DRAM tier */
    uint64_t bytes_tags, bytes_keys;
} sl_plan;

/* Plans n vectors of these parameters. Errors: as of sl_index_create; SL_ELIMIT (n). */
SL_API SL_MUST_USE sl_status sl_index_plan(const sl_index_params *params, uint64_t n, sl_plan *out);

/* The needs of sl_index_create, sl_index_reserve for n vectors, one sl_index_add and sl_index_save. */
typedef struct sl_build_plan {
    size_t struct_size;
    uint64_t n;
    sl_builder builder;        /* INSERT or LEAVES */
    uint64_t bytes_index;      /* in memory after the add */
    uint64_t bytes_peak;       /* most at once, if all codes differ */
    uint64_t bytes_peak_alike; /* the same, if some are equal */
    uint64_t bytes_file;       /* exact, but for empty partitions */
    /* Comparisons of vectors with centres, while linking and numbering. */
    double compared_linking, compared_numbering;
    double compared_in_leaves; /* of vectors with each other; INSERT: 0 */
} sl_build_plan;

/* Plans building an index of n vectors. ids are as in sl_index_add. Threads: any. Errors: SL_ETYPE, SL_ELIMIT (n,
   room), SL_EUNSUPPORTED (builder). */
SL_API SL_MUST_USE sl_status sl_index_plan_build(const sl_index_params *params, uint64_t n, const uint64_t *ids,
                                                 const sl_add_params *add, const sl_save_params *save,
                                                 sl_build_plan *out);

/* Memory that layer 0 is read from. */
typedef enum sl_mapping {
    SL_MAPPING_MEMORY = 0,  /* the handle's own */
    SL_MAPPING_SHARED = 1,  /* the file's */
    SL_MAPPING_PRIVATE = 2, /* the file's, but own changed pages */
    SL_MAPPING_DIRECT = 3   /* persistent memory, written in place */
} sl_mapping;

SL_API const char *sl_mapping_name(sl_mapping mapping);

/* Searches read a FILLED tier, else the mapping. */
typedef enum sl_tier_state {
    SL_TIER_STATE_NONE = 0,
    SL_TIER_STATE_FILLING = 1,
    SL_TIER_STATE_FILLED = 2
} sl_tier_state;

SL_API const char *sl_tier_state_name(sl_tier_state state);

typedef struct sl_index_storage {
    size_t struct_size;
    sl_place place;
    sl_mapping mapping;
    int dax; /* 1: loads go to persistent memory itself */
    int writable;
    uint64_t bytes_layer0;
    int pages_known; /* 0: the system does not tell; the next three are 0 */
    size_t page_size;
    uint64_t bytes_resident;                    /* of layer 0, in memory */
    uint64_t bytes_huge;                        /* of these, on pages of 2 MB or more */
    uint64_t room;                              /* vectors the file can hold */
    uint64_t bytes_log;                         /* redo log */
    uint64_t recoveries;                        /* replays of a log after a crash */
    uint64_t recovered_groups, recovered_bytes; /* syncs and bytes of the last */
    uint64_t record_bytes;                      /* 0: not RECORDS */
    sl_tier_state tier;
    uint64_t bytes_tier; /* copied so far */
    int log_lost;        /* 1: a dead writer's log is lost */
} sl_index_storage;

/* Describes the memory and file of an index now. Errors: SL_ECORRUPT. */
SL_API SL_MUST_USE sl_status sl_index_get_storage(const sl_index *index, sl_index_storage *out);

typedef struct sl_index_numa {
    size_t struct_size;
    sl_numa_policy policy;
    size_t node;                  /* of BIND */
    size_t nodes;                 /* above every node's number */
    size_t copies;                /* of the upper layers, besides the index's own */
    uint64_t bytes[SL_MAX_NODES]; /* of layer 0, by node */
    uint64_t bytes_absent;        /* not in memory */
} sl_index_numa;

/* Tells on which nodes layer 0's pages lie now. Errors: SL_EUNSUPPORTED (build or system cannot tell), SL_ELIMIT (above
   SL_MAX_NODES). */
SL_API SL_MUST_USE sl_status sl_index_get_numa(const sl_index *index, sl_index_numa *out);

typedef struct sl_numa_node {
    size_t struct_size;
    size_t cpu_count;
    uint64_t memory; /* 0: none for this process */
    sl_cpu_set cpus;
} sl_numa_node;

/* Describes a memory node. Errors: SL_ENOTFOUND, SL_EUNSUPPORTED and SL_ELIMIT as of sl_index_get_numa. */
SL_API SL_MUST_USE sl_status sl_numa_get_node(size_t node, sl_numa_node *out);

#ifdef __cplusplus
}
#endif

#endif
