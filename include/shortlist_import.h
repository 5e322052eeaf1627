/* Shortlist: indexes that other libraries made. The conventions of <shortlist.h> hold. */
#ifndef SHORTLIST_IMPORT_H
#define SHORTLIST_IMPORT_H

#include <shortlist.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library that wrote a file.
     HNSWLIB  save_index of hnswlib 0.5 to 0.8: float32, or bytes under L2. The file has no metric
     FAISS    write_index of Faiss 1.7 to 1.15: IndexHNSWFlat, IndexHNSWSQ, IndexFlat, IndexScalarQuantizer, and
              IndexIDMap over them. Scalar quantisers: 8, 6 and 4 bits, fp16, bf16, and bytes as they are */
typedef enum sl_foreign_format { SL_FOREIGN_HNSWLIB = 0, SL_FOREIGN_FAISS = 1 } sl_foreign_format;

#define SL_METRIC_OF_FILE (-1)
#define SL_REFINE_AUTO    (-1)

typedef struct sl_import_params {
    size_t struct_size;
    sl_foreign_format format;
    /* An sl_metric, or SL_METRIC_OF_FILE (default). hnswlib's files need one. COSINE also reads an inner-product file
       of vectors of length 1. */
    int metric;
    int refine; /* an sl_refine, or SL_REFINE_AUTO (default): BF16 for floats in codes I8, else NONE */
    const sl_index_params *index; /* codes, seed, clip and the like; metric and refine of it do not count. dim 0: the
                                     file's. m and ef_construction are the file's */
    size_t threads;
    sl_progress_fn progress; /* counts vectors */
    void *progress_ctx;
} sl_import_params;

SL_API void sl_import_params_init_sized(sl_import_params *params, size_t struct_size);
#define sl_import_params_init(params) sl_import_params_init_sized((params), sizeof *(params))

/* Makes an index in memory of another library's file. Links, levels, labels and deleted marks are the file's; the codes
   are our own. Vectors that no link reaches get one. A file without a graph is linked as sl_index_add does.
   Labels become ids; vectors of a Faiss file without an id map are numbered from 0.
     path  stays mapped during the call. If it becomes shorter meanwhile, SIGBUS ends the process
   Errors: SL_EIO, SL_EFORMAT (of another format, or written by a big-endian machine), SL_EUNSUPPORTED (names what the
   file holds), SL_ECORRUPT (names the first fault), SL_EDIM, SL_EINVAL (no metric, or not the file's), SL_EVALUE,
   SL_EEXIST (a label twice), SL_ELIMIT, and those of sl_index_create. */
SL_API SL_MUST_USE sl_status sl_index_import(const char *path, const sl_import_params *params, sl_index **out);

#ifdef __cplusplus
}
#endif

#endif
