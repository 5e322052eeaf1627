/*
 * Shortlist: vector recall to link into a recommendation service.
 *
 * This header is the contract for shapes, units, ownership, thread-safety and errors. Anything it does not say may
 * change. Unless an entry says otherwise:
 *   - Functions that can fail return sl_status. Any call may return SL_EINVAL (a bad argument) or SL_ENOMEM, and with a
 *     progress callback SL_ECANCELED. Entries list other statuses.
 *   - Outputs are defined on SL_OK (0) only. A handle that could not be made is NULL.
 *   - The caller owns every buffer it passes in. The library keeps none after the call. *_free frees the handle of a
 *     *_create or *_open, and takes NULL.
 *   - Sizes and strides are in bytes. Matrices are row-major. A stride of 0 means dense rows. Vectors are aligned to
 *     their element size.
 *   - *_init fills a parameter struct with its defaults: 0 or NULL where a field names none. NULL params mean the
 *     defaults. *_init passes the caller's struct size, so that programs work with a newer library. The caller sets
 *     struct_size of a struct that a call fills.
 *   - NULL means the default allocator, no log, the system's operations. `threads` 0 means as many as OpenMP gives
 *     (OMP_NUM_THREADS).
 *   - The library never prints, aborts, throws or installs signal handlers. It changes no global state, with one
 *     exception: its first call asks Linux for AMX where the processor has it. From then on the process is refused
 *     alternate signal stacks below some 12 KB. SHORTLIST_MAX_ISA below amxint8 prevents that.
 *   - A call takes less than 48 KB of its thread's stack, so that threads with a stack of 64 KB may make every call. A
 *     library built without optimisation takes more.
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

/* ---- Status */

/* A status never changes its number; no number is used again. */
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

/* Name ("SL_EINVAL") and one-line meaning; never NULL, static storage. */
SL_API const char *sl_status_name(sl_status status);
SL_API const char *sl_status_text(sl_status status);

/* The calling thread's last failure: what, where, what to do; "" before the first. Valid until the thread's next call.
 */
SL_API const char *sl_last_error(void);

/* Gives "0.1.0", in static storage. */
SL_API const char *sl_version(void);

/* ---- Vocabulary */

/* Metric   score of a result                             nearer is
 * IP       inner product x·q                             larger
 * COSINE   x·q / (|x| |q|), in [-1, 1] up to rounding    larger
 * L2       squared Euclidean distance |x - q|²           smaller  */
typedef enum sl_metric { SL_METRIC_IP = 0, SL_METRIC_COSINE = 1, SL_METRIC_L2 = 2 } sl_metric;

/* Element types of input. F16 is IEEE binary16, BF16 the upper half of binary32; both are uint16_t. */
typedef enum sl_dtype { SL_F32 = 0, SL_F16 = 1, SL_BF16 = 2, SL_I8 = 3, SL_U8 = 4, SL_I16 = 5 } sl_dtype;

/* Codes of layer 0, which walks score.
 *   I8, I16   floats are quantised with one scale a vector; integers are kept exactly, with exact integer distances.
 *             Under L2 codes of floats lose neighbours that are closer than some steps: see sl_index_resolution
 *   F32       the floats as given. L2 is taken from differences, so that vectors may lie far from the origin. Squares
 *             of differences below about 1e-19 are 0 in floats: scale up vectors that lie so close
 *   I4        4 bits an element. Finer codes rank what a walk found: those of I8 or I16. Floats of dim up to 112
 *             (COSINE: 120) or above 8192 have 8 more bits instead (I4+8). Integers of dim above 8192 have no I4 */
typedef enum sl_codes { SL_CODES_I8 = 0, SL_CODES_I16 = 1, SL_CODES_F32 = 2, SL_CODES_I4 = 3 } sl_codes;

/* A finer copy of floating-point input, which re-ranks a walk's best candidates.
 *   F32    the vector as given
 *   BF16   the vector less what its codes stand for, in bf16. With 8-bit codes it makes some 16 bits an element
 *   I16    16-bit integers with their own scale */
typedef enum sl_refine { SL_REFINE_NONE = 0, SL_REFINE_F32 = 1, SL_REFINE_BF16 = 2, SL_REFINE_I16 = 3 } sl_refine;

/* Range of a quantised vector's codes. Elements beyond the range get its last code. A query's codes have the same.
 *   AUTO       the codes' own: MINMAX for I8 and I16, MSE for the 4 bits of I4
 *   MINMAX     the largest magnitude
 *   MSE        the least squared error among ten ranges, from the largest magnitude down
 *   QUANTILE   a share of the elements lies beyond
 * Finer codes beside 4 bits always have MINMAX. */
typedef enum sl_clip { SL_CLIP_AUTO = 0, SL_CLIP_MINMAX = 1, SL_CLIP_MSE = 2, SL_CLIP_QUANTILE = 3 } sl_clip;

/* Layer 0 lies in DRAM (a copy), in its mapped file, or in persistent memory. */
typedef enum sl_place { SL_PLACE_DRAM = 0, SL_PLACE_MAP = 1, SL_PLACE_PMEM = 2 } sl_place;

/* Layout of layer 0 in a file.
 *   ARRAYS    an array each for codes, links and ids; the smallest
 *   RECORDS   one record a vector, a multiple of 256 bytes, for slow media (docs/internals/files.md) */
typedef enum sl_layout { SL_LAYOUT_ARRAYS = 0, SL_LAYOUT_RECORDS = 1 } sl_layout;

/* Memory nodes (NUMA) of layer 0's pages.
 *   DEFAULT      by the process's policy (numactl), else the node of a page's first thread
 *   INTERLEAVE   all nodes of the process in turns
 *   BIND         one node; when it is full, the system ends the process
 *   LOCAL        the node of a page's first thread, whatever the process's policy */
typedef enum sl_numa_policy {
    SL_NUMA_DEFAULT = 0,
    SL_NUMA_INTERLEAVE = 1,
    SL_NUMA_BIND = 2,
    SL_NUMA_LOCAL = 3
} sl_numa_policy;

/* See sl_open_params.tier. */
typedef enum sl_tier { SL_TIER_AUTO = 0, SL_TIER_NONE = 1, SL_TIER_DRAM = 2 } sl_tier;

/* Beyond a limit a call returns SL_ELIMIT or SL_EINVAL and says so. */
#define SL_MAX_DIM     65536u
#define SL_MAX_M       256u
#define SL_MAX_EF      65536u
#define SL_MAX_VECTORS 4294901760u
#define SL_MAX_NODES   128u /* memory nodes of a machine */
#define SL_MAX_CPUS    8192u
#define SL_MAX_THREADS 1024u /* of one call */

/* Fills a result row after its last result, with score NaN. No user's id. */
#define SL_NO_ID UINT64_MAX

/* A name function gives an enumerator's last part in lower case ("ip", "u8", "bf16", "map"), or "?". */
SL_API const char *sl_metric_name(sl_metric metric);
SL_API const char *sl_dtype_name(sl_dtype dtype);
SL_API const char *sl_codes_name(sl_codes codes);
SL_API const char *sl_refine_name(sl_refine refine);
SL_API const char *sl_clip_name(sl_clip clip);
SL_API const char *sl_place_name(sl_place place);
SL_API const char *sl_layout_name(sl_layout layout);
SL_API const char *sl_tier_name(sl_tier tier);
SL_API const char *sl_numa_policy_name(sl_numa_policy policy);

/* Reads "interleave", "bind:2", "local" or "default", else SL_EINVAL. *node is 0, under BIND the node. The machine need
 * not have the node. sl_numa_format writes such a text, cut to `size` bytes, and returns it. */
SL_API SL_MUST_USE sl_status sl_numa_parse(const char *text, sl_numa_policy *policy, size_t *node);
SL_API const char *sl_numa_format(sl_numa_policy policy, size_t node, char *text, size_t size);

/* Bytes of one element; 0: out of range. */
SL_API size_t sl_dtype_size(sl_dtype dtype);

/* ---- Callbacks */

/* Memory of one handle. alloc returns `size` bytes aligned to `alignment` (a power of two), or NULL. free gets the same
 * size. Threads of a batch call may call both. The struct is copied; ctx must outlive the handle. The default is
 * aligned_alloc, with 2 MB pages for large blocks where granted. */
typedef struct sl_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size, size_t alignment);
    void (*free)(void *ctx, void *ptr, size_t size);
} sl_allocator;

typedef enum sl_log_level { SL_LOG_ERROR = 0, SL_LOG_WARN = 1, SL_LOG_INFO = 2, SL_LOG_DEBUG = 3 } sl_log_level;

/* Receives an event worth an operator's notice, as one line without a newline, on any calling thread. */
typedef void (*sl_log_fn)(void *ctx, sl_log_level level, const char *message);

/* Receives a long call's progress some ten times a second, on the thread of that call; an unknown total is 0. Nonzero
 * cancels: the call undoes its work and returns SL_ECANCELED. */
typedef int (*sl_progress_fn)(void *ctx, uint64_t done, uint64_t total);

/* File operations of a save, and of an index opened to be written. Each behaves as the POSIX call of its name (errno
 * set, short writes allowed). NULL ones are the system's.
 *   allocate       as posix_fallocate inside the file; a failure returns -1 and sets errno
 *   flush, drain   as libpmem's, both or neither. `size` bytes at `at` (`offset` in the file) are durable after the
 *                  thread's next drain. Place PMEM then takes any file for persistent memory */
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

/* Operations of an index with a NUMA policy. All but the first two and node_here return 0, or -1 with errno set. NULL
 * ones ask libnuma. Threads of a batch call may call them. The struct is copied; ctx must outlive the handle. */
typedef struct sl_numa_ops {
    void *ctx;
    size_t (*nodes)(void *ctx);                      /* above every node number, some may be missing; 0: unknown */
    uint64_t (*node_memory)(void *ctx, size_t node); /* bytes; 0: none for this process */
    int (*node_cpus)(void *ctx, size_t node, sl_cpu_set *cpus);
    int (*node_here)(void *ctx); /* of the calling thread; -1: unknown */
    /* As mbind, of whole pages; `node` is BIND's. */
    int (*set_policy)(void *ctx, void *at, size_t size, sl_numa_policy policy, size_t node);
    /* As the system call of this process. nodes NULL: only reports. status is a node, or a negative errno. */
    int (*move_pages)(void *ctx, void **pages, size_t count, const int *nodes, int *status);
    /* CPUs the calling thread may run on. */
    int (*get_cpus)(void *ctx, sl_cpu_set *cpus);
    int (*set_cpus)(void *ctx, const sl_cpu_set *cpus);
} sl_numa_ops;

/* ---- Index */

/* An HNSW graph over codes (arXiv 1603.09320).
 * Threads: any number may search at once, each with its own searcher or by batch calls. check, get, contains and ids
 * calls are safe beside searches. Calls of add, delete, set, drop_damaged, reserve, tune, save, sync and free need the
 * handle to themselves.
 * fork(): a child may search every handle, and change an index in memory. Batch calls of a child use one thread if the
 * parent's used several. SL_EBUSY refuses a child that changes the file of a writable or exclusive handle, or saves or
 * checks a writable handle: it opens that file itself.
 * Memory: add, save and tune may renumber some thousand vectors or more. Ids stay, memory moves. */
typedef struct sl_index sl_index;

typedef struct sl_index_params {
    size_t struct_size;
    size_t dim;       /* required; 1 to SL_MAX_DIM */
    sl_metric metric; /* default SL_METRIC_COSINE */
    sl_dtype dtype;   /* of input and queries; default SL_F32. F32, F16 and BF16 mix freely; I8, U8 and I16 are kept
                         exactly and take only their own type */
    sl_codes codes;   /* default SL_CODES_I8; I8 or I4 for I8 and U8 input, I16 or I4 for I16 */
    sl_refine refine; /* default SL_REFINE_NONE, required for integers and codes F32; not BF16 with I4+8 */
    size_t m;         /* links a node on upper layers, twice that on layer 0; 2 to SL_MAX_M, default 16 */
    size_t ef_construction; /* work for a vector's links: candidates of INSERT, sets of LEAVES (a 50th in each of two
                               partitionings); m to SL_MAX_EF, default 200 */
    uint64_t seed;          /* of the levels; default 1 */
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    /* Policy of codes, links, ids and refine copy. With several nodes, each (BIND: that one) gets a copy of the upper
     * layers. A batch call keeps each thread to one node's CPUs (docs/internals/graph.md). Default SL_NUMA_DEFAULT. */
    sl_numa_policy numa;
    size_t numa_node; /* of SL_NUMA_BIND */
    const sl_numa_ops *numa_ops;
    sl_clip clip;      /* default SL_CLIP_AUTO; codes F32, and I8 and I16 of integers, take no other */
    double clip_share; /* of SL_CLIP_QUANTILE: 0 to 0.5, default 0.01. Times dim, rounded: elements beyond */
    int tags, keys;    /* nonzero: each vector has a tag word, or a key, of 64 bits */
    int multi;         /* nonzero: an id may have several vectors. A search then gives k different ids, each by its best
                          vector found. 0 (default): adding an id again is SL_EEXIST */
    /* Bytes that blocks of the handle take of main memory at most; 0 (default): as many as there are. Blocks of 1 MB or
     * more take three quarters of the bound. Further ones lie in files without names, in the folder of work_path. A
     * child of fork() shares these, and must not change the index. Beyond the bound a call returns SL_ENOMEM, and says
     * what it takes. An add that fits gives the same index, byte for byte. Not with a NUMA policy. */
    size_t max_memory;
    /* A file that notes what SL_BUILDER_LEAVES has done, so that an add that was broken off, by a kill too, goes on
     * there when another handle adds the same vectors. The handle keeps others off (SL_EBUSY). A save removes the file.
     * NULL (default): nothing is noted, and all blocks lie in memory. */
    const char *work_path;
} sl_index_params;

SL_API void sl_index_params_init_sized(sl_index_params *params, size_t struct_size);
#define sl_index_params_init(params) sl_index_params_init_sized((params), sizeof *(params))

/* Makes an empty index. Errors: SL_ETYPE, SL_ELIMIT, SL_EUNSUPPORTED (a NUMA policy without libnuma in this build, or
 * forbidden by the system). work_path adds SL_EBUSY, SL_EIO, SL_ENOSPC and SL_ECORRUPT (a file of another kind). */
SL_API SL_MUST_USE sl_status sl_index_create(const sl_index_params *params, sl_index **out);
SL_API void sl_index_free(sl_index *index);

/* Makes room for n vectors in all, deleted ones counted. Errors: SL_ELIMIT, SL_EREADONLY, SL_ENOMEM; with work_path
 * also SL_ENOSPC and SL_EIO. */
SL_API SL_MUST_USE sl_status sl_index_reserve(sl_index *index, size_t n);

/* How added vectors get their links.
 *   INSERT  Each vector searches the graph for its neighbours (HNSW, arXiv 1603.09320).
 *   LEAVES  Overlapping sets of near vectors compare all their pairs (PiPNN, arXiv 2602.21247); under IP each is
 *           compared with the vectors that score best in its direction. The graph is the same for any number of
 *           threads. It is the same on any instruction set too, but for codes F32 and vectors that 8 bits do not tell
 *           apart. The index is in memory, and gets 4,096 vectors or more. Vectors that are there already are joined
 *           with the new ones.
 *   AUTO    LEAVES where it serves, for a batch no smaller than the index, with m of 16 to 24 and ef_construction of
 *           200 or more. Else INSERT. */
typedef enum sl_builder { SL_BUILDER_AUTO = 0, SL_BUILDER_INSERT = 1, SL_BUILDER_LEAVES = 2 } sl_builder;

/* Seconds of an add that succeeded. */
typedef struct sl_add_times {
    size_t struct_size;
    double linking;   /* vectors were checked, encoded and linked */
    double numbering; /* their reachability was proved, and they were numbered by partition */
} sl_add_times;

typedef struct sl_add_params {
    size_t struct_size;
    size_t threads;
    sl_progress_fn progress; /* counts vectors */
    void *progress_ctx;
    const uint64_t *tags, *keys; /* n words each, for an index that has them; NULL: zeros */
    sl_builder builder;
    sl_add_times *times; /* filled; NULL: not told */
} sl_add_params;

SL_API void sl_add_params_init_sized(sl_add_params *params, size_t struct_size);
#define sl_add_params_init(params) sl_add_params_init_sized((params), sizeof *(params))

/* Adds n vectors of the index's dimension, all or nothing. NULL ids go on from the largest id so far plus one; the
 * first is 0. A cancelled call adds nothing; cancelled while it renumbers, it has added all and returns SL_OK.
 * With sl_index_params.multi, an id that is given twice, or is already present, gets one more vector.
 * Errors: SL_EVALUE (names the row), SL_EEXIST (an id twice, or already present; not with multi), SL_ETYPE, SL_ELIMIT,
 * SL_EREADONLY, SL_EUNSUPPORTED (SL_BUILDER_LEAVES does not serve; says why); for a file written in place, and with
 * work_path, SL_ENOSPC and SL_EIO. */
SL_API SL_MUST_USE sl_status sl_index_add(sl_index *index, const void *vectors, sl_dtype dtype, size_t n, size_t stride,
                                          const uint64_t *ids, const sl_add_params *params);

/* An id that several of the merged indexes have.
 *   REFUSE  The merge fails. With sl_index_params.multi no id clashes: it has the vectors of all indexes.
 *   LATER   The vectors of the last index that has it are taken. */
typedef enum sl_clash { SL_CLASH_REFUSE = 0, SL_CLASH_LATER = 1 } sl_clash;

typedef struct sl_merge_params {
    size_t struct_size;
    size_t m, ef_construction; /* of the new index; 0: those of the first */
    size_t threads;
    sl_clash clash;
    sl_builder builder;
    sl_progress_fn progress; /* counts vectors */
    void *progress_ctx;
    size_t max_memory; /* of the new index, as of sl_index_params; what the merge takes lies there too */
    const char *work_path;
} sl_merge_params;

SL_API void sl_merge_params_init_sized(sl_merge_params *params, size_t struct_size);
#define sl_merge_params_init(params) sl_merge_params_init_sized((params), sizeof *(params))

/* Makes a new index in memory of all vectors of one or more indexes, which stay as they are. Codes, refinements, ids,
 * tags and keys are copied exactly. Deleted vectors are left out. The graph of one index is built anew, so that a merge
 * rebuilds it. Builder AUTO joins the graphs of two or three indexes of one size, or of a large one and small ones.
 * These have the new m, at least the new ef_construction, and half or more of their vectors left. Else the graph is
 * built anew. Other parameters are those of the first index; stored settings of a tuning are not taken over. Files that
 * indexes were opened from are verified first. The caller frees *out, which has the first index's allocator and log,
 * and no NUMA policy. Nobody changes the indexes through their handles meanwhile. Searches may go on. Errors: SL_EINVAL
 * (the indexes differ in metric, dimension, type, codes, refinement, tags, keys or multi). SL_EEXIST (names the id and
 * the indexes). SL_ECORRUPT (a damaged file or vector). SL_EBUSY (an index that another process writes). SL_ELIMIT,
 * SL_EUNSUPPORTED, SL_ECANCELED, SL_ENOMEM, and those of max_memory and work_path. *out is then NULL. */
SL_API SL_MUST_USE sl_status sl_index_merge(sl_index *const *indexes, size_t count, const sl_merge_params *params,
                                            sl_index **out);

/* Deletes all vectors of n ids, all or nothing. Searches and sl_index_get do not find deleted vectors, whose ids may be
 * added again. Deleted vectors keep their memory: sl_index_rebuild makes a file without them. Searches find k
 * vectors while k are left, but take longer. Errors: SL_ENOTFOUND (names an id absent, deleted before, or given twice),
 * SL_EREADONLY; for a file written in place SL_ENOSPC and SL_EIO. */
SL_API SL_MUST_USE sl_status sl_index_delete(sl_index *index, const uint64_t *ids, size_t n);

/* Replaces the tag words, or the keys, of all vectors of n ids, all or nothing. The last word counts of an id given
 * twice. In a file written in place the words are durable from the next sync on, as adds are; written directly in
 * persistent memory, each word at once. Filters have the words of when they were made or refreshed. Errors: SL_EINVAL
 * (an index without tags, or keys), SL_ENOTFOUND (names the id), SL_EREADONLY; for a file written in place SL_ENOSPC
 * and SL_EIO. */
SL_API SL_MUST_USE sl_status sl_index_set_tags(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *tags);
SL_API SL_MUST_USE sl_status sl_index_set_keys(sl_index *index, const uint64_t *ids, size_t n, const uint64_t *keys);

/* Gives the tag words, or the keys, of n ids: those of any one vector where an id has several with different words.
 * Errors: SL_EINVAL (an index without them), SL_ENOTFOUND (names the id). */
SL_API SL_MUST_USE sl_status sl_index_get_tags(sl_index *index, const uint64_t *ids, size_t n, uint64_t *tags);
SL_API SL_MUST_USE sl_status sl_index_get_keys(sl_index *index, const uint64_t *ids, size_t n, uint64_t *keys);

typedef int (*sl_accept_fn)(void *ctx, uint64_t id);

/* From so many queries a thread on, a batch call with a recall uses sl_tuned.probes, else sl_tuned.probes_one. */
#define SL_SCAN_LEAST 256u

/* ---- Filters
 *
 * A filter is the set of vectors that searches may return. Ids are looked up once, when the filter is made or
 * refreshed. Making a filter of 10,000 ids takes as long as some 15 searches: keep the filter of a user, or for one
 * call give accept_bits. A filter takes an eighth of a byte a vector, and an id stands for all its vectors. The index
 * must outlive it. Deleted vectors are never allowed. The next refresh allows vectors that were added after the filter
 * was made. Searches go by the tags and keys of the last refresh too.
 *
 * Threads: any number of searches may use a filter at once. sl_filter_refresh and sl_filter_free need it alone. */
typedef struct sl_filter sl_filter;

typedef struct sl_filter_params {
    size_t struct_size;
    /* An id is allowed where all that is given allows it. NULL allows all ids. */
    const uint64_t *bits; /* (bits_count + 63) / 64 words; bit i % 64 of word i / 64 is that of id i; ids from
                             bits_count on are not allowed */
    size_t bits_count;
    const uint64_t *allow; /* ids that are allowed; ids that the index lacks are passed over */
    size_t allow_count;
    const uint64_t *exclude; /* ids that are not allowed; likewise */
    size_t exclude_count;
    sl_accept_fn accept; /* returns above 0 for an id that is allowed, 0 for one that is not, and below 0 to fail the
                            call; called once a vector, on the calling thread, when the filter is made and at each
                            refresh */
    void *accept_ctx;
    const sl_allocator *allocator;
    /* For an index with tags: words with a bit of any_tags, all bits of all_tags and no bit of none_tags are allowed. A
     * mask of 0 (default) asks nothing. */
    uint64_t any_tags, all_tags, none_tags;
    /* For an index with keys: keys from key_min to key_max are allowed, both included. From 0 to UINT64_MAX (default):
     * asks nothing. */
    uint64_t key_min, key_max;
} sl_filter_params;
SL_API void sl_filter_params_init_sized(sl_filter_params *params, size_t struct_size);
#define sl_filter_params_init(params) sl_filter_params_init_sized((params), sizeof *(params))

/* Makes a filter. The filter copies bits and lists. Errors: SL_EINVAL (a list or bitmap that is NULL and counts ids;
 * masks for an index without tags, or a range without keys; key_min above key_max), SL_ENOMEM, SL_ECANCELED (accept
 * returned below 0). */
SL_API SL_MUST_USE sl_status sl_filter_create(sl_index *index, const sl_filter_params *params, sl_filter **out);
/* Brings the filter up to date with the index: after an add, a save or a tuning, which may renumber vectors, and after
 * tags or keys were set. On failure the filter stays as it was. Errors: SL_ENOMEM, SL_ECANCELED. */
SL_API SL_MUST_USE sl_status sl_filter_refresh(sl_filter *filter);
SL_API void sl_filter_free(sl_filter *filter);
/* Counts the vectors that the filter allows now. */
SL_API size_t sl_filter_count(const sl_filter *filter);

/* How a search with a filter finds its candidates (docs/internals/filters.md).
 *   AUTO        by the least cost: from the number allowed, and the share allowed near the query
 *   EXACT       compares with all allowed vectors
 *   PARTITIONS  compares with the allowed vectors of the nearest partitions, until few of the k best are likely missed
 *   WALK        walks the graph, and leaves out what is not allowed
 *   HOPS        walks from allowed vectors to allowed vectors, over one that is not where need be (arXiv 2403.04871)
 * PARTITIONS and HOPS serve indexes with partitions that hold three quarters of the vectors. Elsewhere EXACT takes
 * their place. */
typedef enum sl_filter_strategy {
    SL_FILTER_AUTO = 0,
    SL_FILTER_EXACT = 1,
    SL_FILTER_PARTITIONS = 2,
    SL_FILTER_WALK = 3,
    SL_FILTER_HOPS = 4
} sl_filter_strategy;

typedef struct sl_search_params {
    size_t struct_size;
    size_t ef;      /* candidates kept on layer 0, without deleted ones; 1 to SL_MAX_EF, default 64; raised to k */
    size_t rerank;  /* candidates that the refine copy or I4's finer codes re-rank; default 0: by k and ef */
    size_t threads; /* of a batch call, as progress; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
    /* Filter; both must agree where both are given. `accept` returns nonzero for an id that may be returned. Each
     * searching thread calls `accept`, at most once a query, vector and walk. `accept` must not use the searcher or
     * change the index. */
    sl_accept_fn accept;
    void *accept_ctx;
    /* (accept_bits_count + 63) / 64 words. Bit i % 64 of word i / 64 says whether id i may. Ids from accept_bits_count
     * on may not. */
    const uint64_t *accept_bits;
    size_t accept_bits_count;
    /* Above 0, up to 1: recall to reach. Settings that sl_index_tune stored replace ef, rerank, stop, probes and
     * groups: see sl_index_find_tuned. */
    double recall;
    /* Above 0: a walk also ends at a candidate over 1 + stop times as far as the k-th best (k > 16: the 16th). IP: at a
     * score lower by over stop times that one's magnitude. ef still bounds the walk. 0 (default), with a filter, or
     * with over a 64th deleted: ef alone. */
    double stop;
    /* Above 0: each query scans this many nearest partitions, or up to a quarter more, instead of a walk. ef and stop
     * do not count. Scanning fewer vectors than k gives fewer results. A query walks for 0 (default), a filter, over
     * half deleted, codes I16 or F32, or no partitions (below 4,096 vectors). */
    size_t probes;
    /* Above 0: partitions come from this many nearest groups of some 16, or up to a quarter more. The same recall takes
     * more probes. 0, or no groups in the index: from all. */
    size_t groups;
    /* Vectors that may be returned; NULL: all. Together with accept or accept_bits, all must agree. min(k, allowed)
     * results are found, whatever the strategy. */
    const sl_filter *filter;
    sl_filter_strategy strategy; /* of searches with `filter`; default AUTO */
    /* Above 0: at most so many of the k results have one key, in an index with keys. 1 gives k groups, each by its best
     * vector. The search goes on until k results are found, or all that is allowed was compared. A walk finds them:
     * stop, probes and groups do not count, and of strategies EXACT and WALK do. 0 (default): keys do not count.
     * Searches of an index in which ids have several vectors are such searches, with at most one result of an id. */
    size_t group_size;
    /* With has_threshold nonzero: results of a worse score are left out, and the row is filled up. A score equal to the
     * threshold stays. Errors: SL_EINVAL (NaN). */
    int has_threshold;
    double threshold;
    /* Above 0: a query ends after so many evaluations, some hundred and the centroids more at most, with what it has
     * found by then. sl_search_stats.cut counts such queries. `probes` does not count then. It ends each page of
     * an iterator so. */
    size_t max_visits;
    /* A filter a query, one entry for each query of sl_index_search, or for each id of sl_index_search_ids. An entry
     * NULL allows all to its query. NULL (default): `filter` serves all queries. Errors: SL_EINVAL (`filter` is given
     * too; sl_searcher_search and sl_iterator_create, whose one query has `filter`). */
    const sl_filter *const *filters;
} sl_search_params;

SL_API void sl_search_params_init_sized(sl_search_params *params, size_t struct_size);
#define sl_search_params_init(params) sl_search_params_init_sized((params), sizeof *(params))

typedef struct sl_search_stats {
    size_t results;                  /* written before the fill */
    size_t evaluations;              /* distances over codes, centroids included */
    size_t expansions;               /* nodes whose links were read */
    size_t exact, partitions, walks; /* queries with `filter` that ended with each strategy */
    size_t hops;
    size_t cut; /* queries that sl_search_params.max_visits ended */
} sl_search_stats;

/* Scratch of searches, for any number of queries, one thread at a time. The index must outlive its searchers, which see
 * later adds. */
typedef struct sl_searcher sl_searcher;

/* Makes a searcher for ef and k up to max_ef. A filter may raise ef to max_ef. Memory grows with it. */
SL_API SL_MUST_USE sl_status sl_searcher_create(const sl_index *index, size_t max_ef, sl_searcher **out);
SL_API void sl_searcher_free(sl_searcher *searcher);

/* Finds the k nearest of one query, best first. Outputs have k entries, filled up with SL_NO_ID and NaN. scores and
 * stats may be NULL. Takes no lock. Allocates only after the index has grown (once), among deleted vectors, with a
 * filter (once), or for a scan that re-ranks more than max_ef.
 * With sl_index_params.multi the results are k different ids, each with the score of the best of its vectors that the
 * search found. A walk finds them as it finds single vectors: a larger ef, or a recall, misses the best of an id less
 * often, and strategy EXACT never.
 * A filter applies before re-ranking. min(k, allowed) results are found, unless max_visits ends the search. Fewer than
 * k results, or none, are SL_OK. Errors: SL_EINVAL (also max(k, ef) above max_ef, a group_size without keys, or
 * `filters`), SL_ENOTFOUND (no settings for this recall), SL_ETYPE, SL_EVALUE. */
SL_API SL_MUST_USE sl_status sl_searcher_search(sl_searcher *searcher, const void *query, sl_dtype dtype, size_t k,
                                                const sl_search_params *params, uint64_t *ids, float *scores,
                                                sl_search_stats *stats);

/* The same for nq queries: ids and scores are (nq, k), stats sums over them. A filter may raise ef to 8 * max(ef, k),
 * at least 1024. The index keeps up to eight searchers for later calls. Errors name the query's row. */
SL_API SL_MUST_USE sl_status sl_index_search(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                             size_t stride, size_t k, const sl_search_params *params, uint64_t *ids,
                                             float *scores, sl_search_stats *stats);

/* ---- Iterators
 *
 * An iterator gives the results of one query page by page, the nearest first. A page costs what is left of a search for
 * all results so far: the walk goes on from where it stopped. An iterator has a searcher of its own, and some 16 bytes
 * more for each vector that it has met.
 *
 * Threads: one at a time uses an iterator; others may search and iterate meanwhile. */
typedef struct sl_iterator sl_iterator;

/* Makes an iterator and copies the query. The index must outlive it, and so must what params point to. A page is as
 * good as a search for all results so far with params' ef and rerank. params' accept, accept_bits, filter, max_visits
 * and strategy EXACT or WALK count too; no other field does.
 * Errors: SL_EINVAL (also a recall: give ef), SL_ETYPE, SL_EVALUE. */
SL_API SL_MUST_USE sl_status sl_iterator_create(const sl_index *index, const void *query, sl_dtype dtype,
                                                const sl_search_params *params, sl_iterator **out);
/* Finds the k nearest vectors that no earlier call has given, best first. A vector that an earlier page has missed
 * comes in a later one, and may be nearer than that page's last. Every vector that is allowed and not deleted comes
 * once; with sl_index_params.multi every id once, by its best vector. *got is their number. It is less than k where
 * none is left, or with stats->cut = 1 where max_visits ended the page: the next call goes on. ids and scores have k
 * entries, filled up with SL_NO_ID and NaN. scores, got and stats may be NULL. stats has the work of this call. Vectors
 * that are deleted between two calls do not come. After an add, or a save or tuning that renumbers vectors, this
 * handle's iterators return SL_EINVAL and can only be freed. A filter that is refreshed between two calls serves what
 * has not been met yet. Errors: SL_ENOMEM, after which the call may be repeated. */
SL_API SL_MUST_USE sl_status sl_iterator_next(sl_iterator *iterator, size_t k, uint64_t *ids, float *scores,
                                              size_t *got, sl_search_stats *stats);
SL_API void sl_iterator_free(sl_iterator *iterator);

/* Finds the k nearest of n stored vectors, named by their ids, each without the vector itself. The query is the vector
 * as sl_index_get gives it. k is below SL_MAX_EF. The rest is as of sl_index_search: a filter may refuse the vector
 * itself or not; group_size must be 0. Errors: SL_ENOTFOUND (names the id), SL_EUNSUPPORTED (an index of several
 * vectors an id), those of sl_index_search. */
SL_API SL_MUST_USE sl_status sl_index_search_ids(sl_index *index, const uint64_t *ids, size_t n, size_t k,
                                                 const sl_search_params *params, uint64_t *out_ids, float *scores,
                                                 sl_search_stats *stats);

/* ---- Range search */

typedef struct sl_range_params {
    size_t struct_size;
    int exact; /* nonzero: compares with all vectors that may be returned. 0 (default): walks, and may miss some */
    size_t ef; /* of the walk to the query's neighbourhood, without `exact`; 1 to SL_MAX_EF, default 128 */
    const sl_filter *filter; /* vectors that may be returned; NULL: all */
    size_t threads;          /* over queries, as progress; default 1 */
    sl_progress_fn progress;
    void *progress_ctx;
    /* The walk goes on from vectors up to 1 + slack times as far as the radius, and more find more of what is within
     * it. IP: from a score that is less by up to slack times the radius's magnitude. 0 or more, default 0.015. */
    double slack;
} sl_range_params;

SL_API void sl_range_params_init_sized(sl_range_params *params, size_t struct_size);
#define sl_range_params_init(params) sl_range_params_init_sized((params), sizeof *(params))

/* Receives a vector within the radius of query `query`. Nonzero ends that query. Calls for one query come one after
 * another on one thread, in no order of scores. With several threads, calls for different queries come at once. The
 * function must not change the index. */
typedef int (*sl_range_fn)(void *ctx, size_t query, uint64_t id, float score);

/* Finds all vectors within a score of each of nq queries: score >= radius under IP and COSINE, score <= radius under
 * L2. Scores are those that a search gives. There may be any number of results, also of one id with several vectors.
 * They are handed to fn while the search goes on. An infinite radius is that of all vectors, or of none.
 *
 * Without `exact`, a walk finds the query's neighbourhood and goes on from all that it meets within the radius, and a
 * little beyond. It compares with all vectors that are left once that costs less. Vectors that none of these link to
 * are missed (docs/internals/ranges.md).
 * stats may be NULL: `results` counts calls of fn, `exact` the queries that were compared with all vectors, `walks` the
 * others.
 * Errors: SL_EINVAL (also a radius of NaN, and a filter as of a search), SL_ETYPE, SL_EVALUE, SL_ECANCELED. They name
 * the query; fn may have received results. A query that fn ended is no error. */
SL_API SL_MUST_USE sl_status sl_index_range(const sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                            size_t stride, double radius, const sl_range_params *params, sl_range_fn fn,
                                            void *ctx, sl_search_stats *stats);

/* Gives the vectors of n ids as dense rows of SL_F32, or of an integer index's own type. Rows are exact for integers,
 * codes F32 and refine F32, else the best reconstruction held. Errors: SL_ENOTFOUND (names the id), SL_ETYPE,
 * SL_EUNSUPPORTED (an id with several vectors: sl_index_get_all gives them). */
SL_API SL_MUST_USE sl_status sl_index_get(sl_index *index, const uint64_t *ids, size_t n, sl_dtype dtype, void *out);
/* Gives all vectors of one id, in no order, as sl_index_get gives them. *count is their number. `out` gets the first
 * `room` of them, and may be NULL for none. Errors: SL_ENOTFOUND, SL_ETYPE. */
SL_API SL_MUST_USE sl_status sl_index_get_all(sl_index *index, uint64_t id, sl_dtype dtype, void *out, size_t room,
                                              size_t *count);

typedef struct sl_index_stats {
    size_t struct_size;
    size_t n, dim, m, ef_construction; /* n without deleted vectors */
    uint64_t seed;
    sl_metric metric;
    sl_dtype dtype;
    sl_codes codes;
    sl_refine refine;
    sl_place place;
    size_t max_level;
    /* As a file holds them, with deleted vectors; so bytes_partitions. */
    uint64_t bytes_codes, bytes_links, bytes_ids, bytes_upper, bytes_refine;
    uint64_t bytes_total;    /* of the file */
    double quant_error_mean; /* |x - decoded| / |x|, mean over the vectors; 0 for exact codes */
    double quant_error_max;
    const char *isa; /* kernels' tier; static storage */
    size_t tuned;    /* settings stored */
    uint64_t bytes_partitions;
    size_t deleted;    /* vectors, still in memory */
    size_t room;       /* of a mapped file with room: vectors it can hold, deleted ones too */
    sl_layout layout;  /* of a mapped file; in memory ARRAYS */
    size_t partitions; /* 0: none */
    size_t groups;
    sl_clip clip;      /* AUTO also where what was asked for is the codes' own */
    double clip_share; /* of QUANTILE; else 0 */
    int tags, keys;    /* 1: the index has them */
    uint64_t bytes_tags, bytes_keys;
    int multi; /* 1: an id may have several vectors; n counts vectors */
} sl_index_stats;

SL_API SL_MUST_USE sl_status sl_index_get_stats(const sl_index *index, sl_index_stats *out);

typedef struct sl_index_numa {
    size_t struct_size;
    sl_numa_policy policy;
    size_t node;                  /* of SL_NUMA_BIND */
    size_t nodes;                 /* above every node number */
    size_t copies;                /* of the upper layers, besides the index's own */
    uint64_t bytes[SL_MAX_NODES]; /* of layer 0 on each node, in whole pages */
    uint64_t bytes_absent;        /* not in memory; of a mapped file: not read by this process */
} sl_index_numa;

/* Tells on which nodes layer 0's pages lie now, page by page. Errors: SL_EUNSUPPORTED (no libnuma in this build, or the
 * system does not tell), SL_ELIMIT (above SL_MAX_NODES). */
SL_API SL_MUST_USE sl_status sl_index_get_numa(const sl_index *index, sl_index_numa *out);

/* Memory that layer 0 is read from.
 *   MEMORY    the handle's own
 *   SHARED    the file's mapping: page cache, or persistent memory (`dax`)
 *   PRIVATE   the same, with own pages that a writer changed, or a recovery that could not write the file
 *   DIRECT    persistent memory that its writer writes in place */
typedef enum sl_mapping {
    SL_MAPPING_MEMORY = 0,
    SL_MAPPING_SHARED = 1,
    SL_MAPPING_PRIVATE = 2,
    SL_MAPPING_DIRECT = 3
} sl_mapping;

SL_API const char *sl_mapping_name(sl_mapping mapping);

/* Searches read a FILLED tier, else the mapping. NONE also means that there is nothing to copy. */
typedef enum sl_tier_state {
    SL_TIER_STATE_NONE = 0,
    SL_TIER_STATE_FILLING = 1,
    SL_TIER_STATE_FILLED = 2
} sl_tier_state;

SL_API const char *sl_tier_state_name(sl_tier_state state);

typedef struct sl_index_storage {
    size_t struct_size;
    sl_place place; /* as opened */
    sl_mapping mapping;
    int dax;                 /* loads go to persistent memory itself, not to copies of its pages in DRAM */
    int writable;            /* takes adds */
    uint64_t bytes_layer0;   /* of its vectors; in memory, of the room for them */
    int pages_known;         /* 0: /proc/self/smaps or pagemap do not tell, and the next three are 0 */
    size_t page_size;        /* where layer 0 begins, huge pages aside */
    uint64_t bytes_resident; /* of layer 0 in memory, in whole pages; of a mapped file: read by this process */
    uint64_t bytes_huge;     /* of these, on pages of 2 MB or more */
    /* For a mapped file with room, else 0. */
    uint64_t room;                              /* vectors it can hold */
    uint64_t bytes_log;                         /* of its redo log now; 0: written directly */
    uint64_t recoveries;                        /* replays of a log after a crash; by the last: */
    uint64_t recovered_groups, recovered_bytes; /* syncs, and bytes of the log */
    uint64_t record_bytes;                      /* of a record, mapped in SL_LAYOUT_RECORDS; else 0 */
    sl_tier_state tier;
    uint64_t bytes_tier; /* copied so far */
    int log_lost;        /* of a file with room, 1: a dead writer's log is missing or damaged, see sl_index_sync */
} sl_index_storage;

/* Tells what the index lies on now, page by page. Errors: SL_ECORRUPT (superblocks of a file written in place). */
SL_API SL_MUST_USE sl_status sl_index_get_storage(const sl_index *index, sl_index_storage *out);

/* Bytes of an index in a file, by part. */
typedef struct sl_plan {
    size_t struct_size;
    uint64_t n;
    uint64_t bytes_codes;  /* rows; of I4: those of 4 bits, or of its finer codes */
    uint64_t bytes_rest;   /* of I4: what 4 bits leave over */
    uint64_t bytes_coarse; /* of I4: rows for walks beside finer codes */
    uint64_t bytes_links;
    uint64_t bytes_ids; /* of ids from 0 */
    uint64_t bytes_refine;
    uint64_t bytes_layer0;          /* all above, with tags and keys */
    uint64_t bytes_upper;           /* expected: levels are drawn */
    uint64_t bytes_upper_deviation; /* its standard deviation, at most */
    uint64_t bytes_projection;      /* of coarse rows */
    uint64_t bytes_partitions;      /* at most */
    uint64_t bytes_total;           /* of the file */
    uint64_t bytes_with_room;       /* of the file with room for n vectors */
    uint64_t record_bytes;          /* of a record in SL_LAYOUT_RECORDS */
    uint64_t bytes_in_records;      /* of the file in that layout, without room */
    uint64_t bytes_tier;            /* of these, what a tier in DRAM copies */
    uint64_t bytes_tags, bytes_keys;
} sl_plan;

/* Tells what n vectors of these parameters will take. Under L2 with codes I16 or F32 partitions have centroids in I8,
 * or in F32 where the vectors need it: F32 is counted. Errors: as of sl_index_create; SL_ELIMIT (n). */
SL_API SL_MUST_USE sl_status sl_index_plan(const sl_index_params *params, uint64_t n, sl_plan *out);

/* Vectors, without deleted ones. */
SL_API size_t sl_index_size(const sl_index *index);

/* Tells whether a vector has the id and is not deleted: *found is 1 or 0. The first call on an index with ids of its
 * own makes a map of them. */
SL_API SL_MUST_USE sl_status sl_index_contains(sl_index *index, uint64_t id, int *found);

/* Lists the ids of the vectors that are not deleted, each id once. *count is their number, `ids` gets the first `room`
 * of them and may be NULL for none. They are in the order in which the vectors lie. An add, a save or a tuning may
 * change that order. */
SL_API SL_MUST_USE sl_status sl_index_ids(const sl_index *index, uint64_t *ids, size_t room, size_t *count);

/* Types of file, told by their first bytes. */
typedef enum sl_file_kind { SL_FILE_INDEX = 0, SL_FILE_RANKER = 1, SL_FILE_ITEMS = 2 } sl_file_kind;

/* Reads the first bytes at path. Opening may still fail. Errors: SL_EIO, SL_EFORMAT (none of these). */
SL_API SL_MUST_USE sl_status sl_file_kind_of(const char *path, sl_file_kind *out);

/* How well an index's codes tell near vectors apart. */
typedef struct sl_resolution {
    size_t struct_size;
    size_t sampled; /* vectors that were compared with all others: 64, or all of fewer; 0 where nothing is measured */
    size_t unresolved; /* of them, vectors whose 16th nearest is closer than 4 steps of the codes, or than
                          the rounding of a score; vectors of equal codes do not count */
} sl_resolution;

/* Measures whether codes of floats under L2 tell near vectors apart. A step of codes is a part of a vector's largest
 * element. So codes lose the nearest of vectors that lie far from the origin and close to one another: a search then
 * returns vectors of the neighbourhood, and not its nearest. Remedy: codes F32, or vectors and queries less the mean of
 * all vectors, which changes no distance. Nothing is measured under other metrics, for integers, and for codes F32.
 * Takes the time of 64 comparisons with all vectors. Errors: SL_EINVAL, SL_ENOMEM. */
SL_API SL_MUST_USE sl_status sl_index_resolution(const sl_index *index, size_t threads, sl_resolution *out);

typedef struct sl_check_params {
    size_t struct_size;
    size_t sample; /* vectors searched for and compared with exact search; default 200, 0: none */
    size_t k, ef;  /* of the sample; default 10 and 200 */
    size_t threads;
    sl_progress_fn progress;
    void *progress_ctx;
    uint64_t *bad_ids; /* with scrub: gets the ids of the first bad_ids_room damaged records */
    size_t bad_ids_room;
    int scrub; /* nonzero, for a mapped file with room or in records: verifies each vector (codes, refine row, id) by
                  its own CRC */
} sl_check_params;

SL_API void sl_check_params_init_sized(sl_check_params *params, size_t struct_size);
#define sl_check_params_init(params) sl_check_params_init_sized((params), sizeof *(params))

typedef struct sl_check_report {
    size_t struct_size;
    size_t n;
    size_t bad_links; /* out of range, to the node itself, or twice in a list */
    size_t bad_upper; /* broken records of the upper layers */
    /* Nodes that layer 0 does not reach from the entry point. Neither these nor no_in_link are faults of a file that
     * has a writer, or whose writer has not linked them yet. */
    size_t unreachable;
    size_t no_in_link;    /* nodes without a link to them, but for the entry point */
    size_t bad_vectors;   /* records whose scale or norm is not finite */
    size_t duplicate_ids; /* vectors of an id that another has too; 0 where an id may have several */
    size_t min_degree, max_degree;
    double mean_degree;
    double sampled_recall;   /* recall@k of the sample, against exact search over the same codes; NaN if skipped */
    size_t sections_checked; /* by their CRC; 0 in memory */
    size_t deleted;          /* vectors not in n, but in all counts */
    size_t records_checked;  /* by scrub; 0 where sections have a CRC */
    size_t bad_records;      /* of them; named by their id in the file, which may be the damage */
    size_t pages_checked; /* of a file with room: 4096-byte pages, all but holes and two superblocks, of which one must
                             be whole */
    size_t bad_pages;     /* of them */
    int unverified; /* 1: a file with room has no page checksums in force, being of an older version or written directly
                       in persistent memory. Only scrub verifies it */
    size_t sampled_lost; /* vectors of the sample of whose own k nearest less than half are found. Many: whole regions
                            are badly linked, though paths lead there */
    size_t resolution_sampled, unresolved; /* as sl_index_resolution tells them; 0 where no sample is wanted */
} sl_check_report;

/* Verifies a whole index: the file's checksums, every invariant of the graph, reachability. Holes stay holes. SL_OK:
 * all holds; the sampled recall and what the sample lost are yours to judge. SL_ECORRUPT: the message has the first
 * fault. *report is filled in both cases. SL_EBUSY: this process was forked from the one that writes the file. */
SL_API SL_MUST_USE sl_status sl_index_check(sl_index *index, const sl_check_params *params, sl_check_report *report);

/* Deletes every vector of a writable index whose record fails its checksum. *dropped is their number. A check with
 * scrub names them beforehand: add them again from their source. Other damage in their pages is no longer found.
 * Errors: SL_EREADONLY, SL_EUNSUPPORTED (in memory), SL_ECORRUPT (no record is sound), SL_ENOSPC. */
SL_API SL_MUST_USE sl_status sl_index_drop_damaged(sl_index *index, size_t threads, size_t *dropped);

typedef struct sl_save_params {
    size_t struct_size;
    const sl_file_ops *file_ops;
    sl_progress_fn progress; /* in bytes */
    void *progress_ctx;
    size_t room;      /* of an index: vectors that the file has room for, at least those it has. A writable handle
                         changes such a file in place. Unused room is a hole in the file. 0 (default): the smallest
                         file, which never changes */
    sl_layout layout; /* of an index; default SL_LAYOUT_ARRAYS, also when opened from records */
} sl_save_params;

SL_API void sl_save_params_init_sized(sl_save_params *params, size_t struct_size);
#define sl_save_params_init(params) sl_save_params_init_sized((params), sizeof *(params))

/* Writes the whole index to path, which holds the old file or the whole new one, whatever happens. A mapped index may
 * be saved over its file. On failure path is as it was, unless the message says that only the folder's sync failed.
 * A finished file that cannot be put at path stays beside it, and the message names it. It is removed where another
 * changed the file that the index was opened from. The file gets mode and owner of the one opened or replaced
 * (docs/FORMAT.md).
 *   SL_EBUSY      path is being written in place (sync makes that durable), or an exclusive handle claims it; another
 *                 changed the file that the index was opened from (open it again, exclusive, and repeat the change);
 *                 another has had path's folder locked for 10 s; or the handle's writer is this process's parent
 *   SL_ECORRUPT   the mapped file is damaged
 *   SL_EIO, SL_ENOSPC */
SL_API SL_MUST_USE sl_status sl_index_save(sl_index *index, const char *path, const sl_save_params *params);

/* Tries whether a save could put a file at `path`: call it before long work whose result goes there. Makes two files of
 * no bytes beside `path`, renames one over the other, and removes it. The file at `path` stays as it is. A later save
 * may still fail.
 * Threads: any.
 * Errors: SL_EINVAL; SL_EIO (also a file that is mounted at `path`: no other can take its place); SL_ENOSPC; SL_EBUSY
 * as of sl_index_save. */
SL_API SL_MUST_USE sl_status sl_save_try(const char *path);

/* The needs of a build: sl_index_create, sl_index_reserve for n vectors, one sl_index_add, sl_index_save. */
typedef struct sl_build_plan {
    size_t struct_size;
    uint64_t n;
    sl_builder builder;   /* that links the vectors: INSERT or LEAVES */
    uint64_t bytes_index; /* in memory after the add; these and the next two as the index's allocator counts them */
    uint64_t bytes_peak;  /* at most at once, of vectors whose codes all differ */
    uint64_t bytes_peak_alike; /* the same, where some vectors have the same codes */
    uint64_t bytes_file;       /* exact, but that partitions without vectors are left out; see sl_index_plan_build */
    /* Comparisons of vectors with centres, while vectors are linked and while they are numbered by partition. The first
     * grow nearly as n, and under IP as n squared. All other work of LEAVES and of numbering grows as n,
     * that of INSERT nearly as n log n. */
    double compared_linking, compared_numbering;
    double compared_in_leaves; /* of vectors with those of their leaves, in proportion to n; 0 with INSERT */
} sl_build_plan;

/* Tells what building an index of n vectors will take. Takes time in proportion to n, since it draws the levels. Under
 * L2 with codes I16 or F32 a build compares vectors in I8, or in F32 where I8 would lose neighbours. Only the build
 * learns which: bytes_index, both peaks and bytes_file count the larger one.
 * Parameters: `params`, whose max_memory, work_path and NUMA policy do not count; `ids` as of sl_index_add; `add`,
 * `save` and their threads, builder, room and layout as they will be given; NULL: defaults. Threads: any. Errors:
 * SL_ETYPE, SL_ENOMEM; SL_ELIMIT (n, room), SL_EINVAL (room, layout, an id of SL_NO_ID), SL_EUNSUPPORTED (builder). */
SL_API SL_MUST_USE sl_status sl_index_plan_build(const sl_index_params *params, uint64_t n, const uint64_t *ids,
                                                 const sl_add_params *add, const sl_save_params *save,
                                                 sl_build_plan *out);

typedef struct sl_open_params {
    size_t struct_size;
    /* SL_PLACE_MAP (default) and PMEM, here called mapped: loads nothing; read-only unless writable. Replace the file
     * by renaming, never write into it: a file that becomes shorter ends the process by SIGBUS.
     * SL_PLACE_DRAM: reads the file and verifies its CRCs. The index can be changed and saved. A file that becomes
     * shorter meanwhile is SL_ECORRUPT. */
    sl_place place;
    const sl_allocator *allocator;
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* in bytes copied or read ahead */
    void *progress_ctx;
    int writable; /* mapped, with room: adds change the file, sl_index_sync makes them durable. One handle may; others
                     may read */
    const sl_file_ops *file_ops; /* of a writable handle. Copied; ctx must outlive it */
    size_t log_bytes;            /* of a writable handle: size at which its redo log is emptied; default 0: 256 MB */
    /* As of sl_index_params. Mapped, layer 0 is read ahead too, and its pages moved. The log tells of those that stay
     * (docs/internals/graph.md). */
    sl_numa_policy numa;
    size_t numa_node;
    const sl_numa_ops *numa_ops;
    int prefault; /* nonzero, mapped: reads all of layer 0 here, so that no search waits */
    /* Mapped: copies of the upper layers and of I4's 4-bit rows in DRAM, for slow media. A thread of the handle fills
     * them after opening (docs/internals/graph.md). sl_index_storage.tier tells how far it is.
     *   AUTO   default: if loads go to persistent memory itself (sl_index_storage.dax), the file has no room, and they
     *          fit half of sl_system.memory
     *   NONE   never
     *   DRAM   always; SL_EUNSUPPORTED for a file with room */
    sl_tier tier;
    size_t threads; /* of the copy into DRAM; they end with it. One for SL_NUMA_LOCAL */
    int exclusive;  /* 1: the index is to be changed and saved over its file. Until it is freed, also after such a save,
                       other exclusive or writable handles, and saves, get SL_EBUSY. Not with writable */
    double wait_s;  /* seconds to wait while SL_EBUSY; progress gets (0, 0) meanwhile */
} sl_open_params;

SL_API void sl_open_params_init_sized(sl_open_params *params, size_t struct_size);
#define sl_open_params_init(params) sl_open_params_init_sized((params), sizeof *(params))

/* Opens a saved index; mapped, in constant time. A damaged or hostile file gives SL_EFORMAT, SL_EVERSION, SL_ECORRUPT
 * or wrong neighbours, never a crash, unless it is shortened while mapped.
 * Errors: SL_EIO, SL_EBUSY (written or claimed by another handle), SL_EUNSUPPORTED (writable without room, a tier in
 * DRAM with it; writable or exclusive on a file system without locks; a NUMA policy as of sl_index_create). */
SL_API SL_MUST_USE sl_status sl_index_open(const char *path, const sl_open_params *params, sl_index **out);

/* Makes durable what was added, tuned and deleted so far in a writable index. Synced changes survive the process and a
 * power loss, and all who have the file open find them from their next search on. Other changes are this handle's
 * alone; a crash, or freeing the handle, takes them back whole.
 * Every vector that a sync publishes can be reached: a search for k = n finds all, unless the log warns that memory was
 * short.
 * Keep the file and its log (its name and ".log") together. Without the log that a crash left, sl_index_open gives
 * SL_ECORRUPT, but to read the mapped file. Written directly, persistent memory has no log, and changes count at once
 * (docs/internals/in-place.md).
 * Errors: SL_ENOSPC and SL_EIO (try again, unless the message says to open the file anew, which may have the changes),
 * SL_EBUSY (the file was renamed, replaced or written over; a child of fork()), SL_EUNSUPPORTED (in memory),
 * SL_EREADONLY (mapped to be read). */
SL_API SL_MUST_USE sl_status sl_index_sync(sl_index *index);

typedef struct sl_snapshot_params {
    size_t struct_size;
    const sl_file_ops *file_ops; /* of the copy. All bytes go through write or pwrite if given, else by the system,
                                    which may share blocks */
    sl_progress_fn progress;     /* in bytes; begins again where the copy does */
    void *progress_ctx;
} sl_snapshot_params;

SL_API void sl_snapshot_params_init_sized(sl_snapshot_params *params, size_t struct_size);
#define sl_snapshot_params_init(params) sl_snapshot_params_init_sized((params), sizeof *(params))

/* Copies the index file at path, and puts the copy in place as sl_index_save does. The copy is whole, durable, without
 * a log, and independent. Holes stay holes. Beside a writer, the copy has all that was synced before, perhaps some
 * synced since, and nothing half.
 * Errors: SL_EBUSY (a writer in persistent memory, which is refused in turn; another index is being written at `copy`),
 * SL_EINVAL (also `copy` is the file or its log), SL_EIO, SL_ENOSPC, those of opening. `copy` is then as it was. */
SL_API SL_MUST_USE sl_status sl_index_snapshot(const char *path, const char *copy, const sl_snapshot_params *params);

typedef struct sl_rebuild_params {
    size_t struct_size;
    const char *output;        /* file to write; NULL: the new file takes the place of the old one */
    size_t m, ef_construction; /* 0: the index's own */
    size_t room;               /* vectors that the new file has room for. At least the old file's room, and where there
                                  is room, all vectors. 0: the old file's */
    size_t threads;
    sl_builder builder;
    double wait_s;     /* as of sl_open_params */
    size_t max_memory; /* of the new index, as of sl_index_params */
    const char *work_path;
    const sl_allocator *allocator; /* of all that the call takes */
    const sl_file_ops *file_ops;   /* of the save */
    sl_log_fn log;
    void *log_ctx;
    sl_progress_fn progress; /* of each step anew: bytes verified, vectors linked, bytes saved */
    void *progress_ctx;
} sl_rebuild_params;

SL_API void sl_rebuild_params_init_sized(sl_rebuild_params *params, size_t struct_size);
#define sl_rebuild_params_init(params) sl_rebuild_params_init_sized((params), sizeof *(params))

typedef struct sl_rebuild_report {
    size_t struct_size;
    size_t n;                           /* vectors of the new file; before there were n + deleted */
    size_t deleted;                     /* left out */
    uint64_t bytes_before, bytes_after; /* sl_index_stats.bytes_total: without unused room. bytes_after 0: the rebuild
                                           is done, but its file could not be opened to tell */
    size_t room;                        /* of the new file; 0: it never changes */
    sl_layout layout;
    const char *linked_from; /* codes by which vectors were compared: "i8", "i16", "f32", or "i4+8" for 4 bits with the
                                8 beside them; static storage */
} sl_rebuild_report;

/* Makes the index file at path anew, as sl_index_merge of one index does: compact, with new links and numbers, without
 * deleted vectors. The new file takes the place of the old one as sl_index_save does, whole or not at all. Layout,
 * room, ids, the next id, tags, keys, codes and refinements stay. Stored settings of a tuning are not taken over.
 * Handles that have the old file open go on with it: open the file again to see the new one.
 * The call claims the file as an exclusive handle does, so that nobody changes it meanwhile. The old file is verified
 * before its vectors are taken. Changes that a dead writer left in its log are in the new file, and the log is gone.
 * The new index is in memory as a whole until it is saved, but as max_memory says. `report` may be NULL.
 * Threads: any, since the call takes no handle.
 * Errors: SL_EBUSY (another handle, also of this process, writes or claims the file or `output`). SL_ECORRUPT (damage:
 * build the index again). SL_EFORMAT and SL_EVERSION of opening. SL_EIO, SL_ENOSPC, SL_ELIMIT, SL_EUNSUPPORTED (the
 * builder does not serve), SL_ECANCELED, SL_ENOMEM, and those of work_path. The file is then as it was, unless the
 * message says that only the folder's sync failed. */
SL_API SL_MUST_USE sl_status sl_index_rebuild(const char *path, const sl_rebuild_params *params,
                                              sl_rebuild_report *report);

/* ---- Tuning */

#define SL_MAX_TARGETS        64u   /* of one tuning */
#define SL_MAX_TUNED          4096u /* settings an index stores */
#define SL_TUNE_LEAST_QUERIES 50u

/* Why a recall was not reached. */
typedef enum sl_tune_limit {
    SL_LIMIT_NONE = 0,
    SL_LIMIT_CODES = 1, /* walks find enough true neighbours, but ranking puts others before them; or the codes do not
                         * tell neighbours apart: see sl_index_resolution */
    SL_LIMIT_GRAPH = 2, /* deeper walks find no more of them */
    SL_LIMIT_EF = 3     /* deeper walks would, but for max_ef */
} sl_tune_limit;

/* The text says what to do about it, or "?". */
SL_API const char *sl_tune_limit_name(sl_tune_limit limit);
SL_API const char *sl_tune_limit_text(sl_tune_limit limit);

/* Settings stored for one target at one k. */
typedef struct sl_tuned {
    size_t struct_size;
    double target; /* recall asked for */
    size_t k;
    size_t least_k; /* from here to k they reach the target, as measured */
    size_t ef, rerank;
    double stop;
    sl_tune_limit limit;   /* other than NONE: not reached, and these are of the best recall */
    double recall;         /* recall@k, mean over the tuning's queries */
    double standard_error; /* of that mean */
    double evaluations;    /* distances a query, mean */
    size_t n;              /* vectors in the index when tuned */
    size_t queries;        /* of the tuning */
    size_t ef_alone; /* reaches the target without stop (ef where that is 0), for searches with a filter, for fewer than
                        k, or with over a 64th deleted */
    size_t probes;   /* for batches of SL_SCAN_LEAST queries a thread or more; 0: walks */
    size_t probes_one; /* for single queries and smaller batches */
    size_t groups;     /* groups that these are chosen from; 0: all */
    int scan_only; /* 1: only scans reach the target, by these figures. No use with a filter, over half deleted, or a
                      processor without scans. A scan of fewer than k is followed by a walk of ef */
} sl_tuned;

typedef struct sl_tune_params {
    size_t struct_size;
    const double *targets; /* recalls above 0, up to 1, in any order; NULL: 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97,
                              0.98, 0.99, 0.995 */
    size_t target_count;   /* up to SL_MAX_TARGETS; 0 with NULL */
    size_t max_ef; /* deepest tried, k to SL_MAX_EF, at most the vectors there are, or k; default 0: 16384, or k where
                      more */
    size_t threads;
    sl_progress_fn progress; /* without a unit */
    void *progress_ctx;
} sl_tune_params;

SL_API void sl_tune_params_init_sized(sl_tune_params *params, size_t struct_size);
#define sl_tune_params_init(params) sl_tune_params_init_sized((params), sizeof *(params))

typedef struct sl_tune_report {
    size_t struct_size;
    size_t targets;        /* different ones */
    size_t reached;        /* of them */
    size_t first;          /* the lowest target's number for sl_index_get_tuned; others follow */
    size_t passes;         /* over all queries */
    size_t queries_needed; /* for two standard errors of 0.005 */
} sl_tune_report;

/* Finds for each target the cheapest settings that reach it on these queries, and stores them in place of those of the
 * same k.
 *   queries   nq rows of the index's dimension, like those to come
 *   truth     (nq, k) ids of the true k nearest, different ones, best first. NULL: found among all that sl_index_get
 *             gives. Without a refine copy, recall then does not count what codes lost
 *   report    may be NULL
 * A target out of reach is no error, and is stored with its reason. Settings stay when vectors are added, and are saved
 * with the index. A mapped index is tuned in memory: save it. On failure settings are as before.
 * Errors:
 *   SL_EINVAL        also fewer than SL_TUNE_LEAST_QUERIES queries or k vectors, a neighbour twice in a row of truth,
 * or truth found no better than by chance SL_EUNSUPPORTED  codes that lose what is nearest SL_ENOTFOUND     an unknown
 * id in truth SL_EVALUE, SL_ETYPE, SL_ELIMIT */
SL_API SL_MUST_USE sl_status sl_index_tune(sl_index *index, const void *queries, sl_dtype dtype, size_t nq,
                                           size_t stride, const uint64_t *truth, size_t k, const sl_tune_params *params,
                                           sl_tune_report *report);

/* Gives stored settings i, by rising k, then target. SL_ENOTFOUND from sl_index_stats.tuned on. */
SL_API SL_MUST_USE sl_status sl_index_get_tuned(const sl_index *index, size_t i, sl_tuned *out);

/* Gives the settings of a search with this k and recall: the lowest target not below recall. Settings tuned for k go
 * before those of the next larger k that serve it (least_k). SL_ENOTFOUND says why there are none. */
SL_API SL_MUST_USE sl_status sl_index_find_tuned(const sl_index *index, size_t k, double recall, sl_tuned *out);

/* ---- Exact search */

typedef struct sl_exact_params {
    size_t struct_size;
    size_t dim;
    sl_metric metric; /* default SL_METRIC_COSINE */
    sl_dtype dtype;   /* of base and queries; default SL_F32 */
    size_t k;
    size_t threads;
    const sl_allocator *allocator;
    sl_progress_fn progress; /* of one scan, in rows */
    void *progress_ctx;
} sl_exact_params;

SL_API void sl_exact_params_init_sized(sl_exact_params *params, size_t struct_size);
#define sl_exact_params_init(params) sl_exact_params_init_sized((params), sizeof *(params))

/* A scan in blocks, for base sets larger than memory. The scan copies the queries. Threads: one at a time. */
typedef struct sl_exact sl_exact;

SL_API SL_MUST_USE sl_status sl_exact_create(const sl_exact_params *params, const void *queries, size_t nq,
                                             size_t stride, sl_exact **out);
SL_API void sl_exact_free(sl_exact *exact);

/* Compares n rows of ids first_id, first_id + 1, … with every query. All ids are below SL_NO_ID, else SL_EINVAL. After
 * SL_EVALUE or SL_ECANCELED the scan can only be freed. */
SL_API SL_MUST_USE sl_status sl_exact_scan(sl_exact *exact, const void *rows, size_t n, size_t stride,
                                           uint64_t first_id);

/* Gives the k nearest of each query so far, best first, ties by smaller id: the same on every machine. Outputs are
 * (nq, k), filled as by a search; scores may be NULL. */
SL_API SL_MUST_USE sl_status sl_exact_results(const sl_exact *exact, uint64_t *ids, float *scores);

/* ---- Single vectors */

/* Scores two vectors: exact for integer types (cosine: one rounding), floats within dim · 2^-23 · Σ|aᵢbᵢ| of the true
 * value. Errors: SL_EVALUE. */
SL_API SL_MUST_USE sl_status sl_score(sl_metric metric, sl_dtype dtype, const void *a, const void *b, size_t dim,
                                      double *score);

/* Converts n elements between floating-point types, to nearest, ties to even. F16 and BF16 overflow to infinity; NaN
 * stays NaN. Integers convert to SL_F32 only. Errors: SL_ETYPE. */
SL_API SL_MUST_USE sl_status sl_convert(const void *from, sl_dtype from_dtype, void *to, sl_dtype to_dtype, size_t n);

/* ---- The machine */

typedef enum sl_isa {
    SL_ISA_SCALAR = 0,
    SL_ISA_AVX2 = 1,
    SL_ISA_AVXVNNI = 2,
    SL_ISA_AVX512BW = 3,
    SL_ISA_AVX512VNNI = 4,
    SL_ISA_NEON = 5,
    SL_ISA_AMXINT8 = 6, /* AVX512VNNI and matrices */
    SL_ISA_COUNT = 7
} sl_isa;

/* The words of SHORTLIST_MAX_ISA. */
SL_API const char *sl_isa_name(sl_isa isa);

typedef struct sl_system {
    size_t struct_size;
    sl_isa isa;             /* in use: the best available, up to SHORTLIST_MAX_ISA */
    unsigned isa_available; /* bit (1 << tier) for each that process and build can run; AMXINT8 only up to the cap */
    size_t cpus;            /* of this process */
    size_t numa_nodes;      /* 1 where the system does not tell */
    size_t page_size;
    size_t huge_page_size;                          /* of transparent huge pages; 0: none */
    const char *huge_page_mode;                     /* "always", "madvise", "never" or "none" */
    int has_openmp, has_numa, has_pmem, has_onednn; /* as built */
    size_t max_threads;                             /* of a batch call with threads = 0, unless most_threads is less */
    uint64_t memory;                                /* bytes: the machine's, or fewer by a control group; 0: unknown */
    size_t
        most_threads; /* of a call, however many it asks for: SL_MAX_THREADS, or OMP_THREAD_LIMIT where that is less */
} sl_system;

SL_API SL_MUST_USE sl_status sl_system_query(sl_system *out);

typedef struct sl_numa_node {
    size_t struct_size;
    size_t cpu_count;
    uint64_t memory; /* bytes; 0: none for this process */
    sl_cpu_set cpus;
} sl_numa_node;

/* Describes a memory node. Errors: SL_ENOTFOUND (no such node), SL_EUNSUPPORTED and SL_ELIMIT (as of
 * sl_index_get_numa).
 */
SL_API SL_MUST_USE sl_status sl_numa_get_node(size_t node, sl_numa_node *out);

#ifdef __cplusplus
}
#endif

#endif
