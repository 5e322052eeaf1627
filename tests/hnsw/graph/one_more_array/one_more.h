/* Declarations of the test's array, for every file that includes array_table.def. */
#ifndef SL_TESTS_ONE_MORE_H
#define SL_TESTS_ONE_MORE_H

/* A kind that index files do not use; the test's file type knows it. */
#define ONE_MORE_SECTION ((sl_section_kind)16)
#define ONE_MORE_WIDTH   8

/* The library's hnsw/ is compiled again for this file type. */
#define sl_index_file one_more_file

#endif
