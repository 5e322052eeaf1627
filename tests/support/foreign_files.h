/* Writes an index as another library would save it. */
#ifndef SL_TESTS_FOREIGN_FILES_H
#define SL_TESTS_FOREIGN_FILES_H

#include <shortlist.h>

/* A file's bytes, to free(). */
typedef struct foreign_bytes {
    unsigned char *at;
    size_t size, room;
} foreign_bytes;

/* Appends bytes. Aborts for want of memory. */
void foreign_put(foreign_bytes *bytes, const void *data, size_t size);
void foreign_put_u32(foreign_bytes *bytes, uint32_t word);
void foreign_put_u64(foreign_bytes *bytes, uint64_t word);

/* As hnswlib's save_index: the graph, ids and deleted marks of an index in memory, and its vectors as float32 or, for
 * U8 input, as bytes. */
foreign_bytes foreign_hnswlib(const sl_index *index);

/* The parts of a Faiss file; see foreign_faiss. */
typedef enum foreign_part {
    FOREIGN_IDS = 1,   /* IndexIDMap */
    FOREIGN_GRAPH = 2, /* IndexHNSWFlat */
} foreign_part;
/* As Faiss's write_index: an IndexFlat of the vectors, in the parts named. */
foreign_bytes foreign_faiss(const sl_index *index, unsigned parts);

/* Appends the four letters and the header of a Faiss class. metric: 0 for inner products, 1 for L2. */
void foreign_faiss_class(foreign_bytes *bytes, const char *letters, size_t dim, size_t n, uint32_t metric);

#endif
