/* The files, byte by byte. docs/FORMAT.md describes them in prose.
 *
 * All numbers are little-endian. A header page comes first, then sections. Each section begins at a multiple of
 * SL_SECTION_ALIGN. At least SL_SECTION_SLACK zero bytes follow it, because kernels may read whole steps over its end.
 * The magic tells the three types of file apart: see sl_file_type. */
#ifndef SL_STORAGE_FORMAT_H
#define SL_STORAGE_FORMAT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define SL_FILE_ENDIAN   0x01020304u
#define SL_HEADER_SIZE   4096u
#define SL_SECTION_ALIGN 4096u
#define SL_SECTION_SLACK 64u
#define SL_MAX_SECTIONS  32u
#define SL_NONE          0xffffffffu /* no node, no slot: fills link lists */

/* Kinds of section. The numbers are fixed, and below 64. No kind belongs to two types of file: see sl_file_type. */
typedef enum sl_section_kind {
    SL_SECTION_CODES = 1,       /* n rows of row_pitch bytes */
    SL_SECTION_LINKS = 2,       /* n rows of 2*m uint32 node numbers, filled with SL_NONE */
    SL_SECTION_IDS = 3,         /* n ids of id_width bytes; absent if node i has id i (id_width 0) */
    SL_SECTION_UPPER_NODES = 4, /* upper_count uint32: slot -> node */
    SL_SECTION_UPPER_START = 5, /* upper_count + 1 uint32: slot -> its first row; one row a level from 1 on */
    SL_SECTION_UPPER_LINKS = 6, /* upper_rows rows of m uint32 slots, filled with SL_NONE */
    SL_SECTION_REFINE = 7,      /* n rows of refine_pitch bytes */
    SL_SECTION_REST = 8,        /* of I4 codes: n rows of the bits below the first four; dim gives the pitch */
    SL_SECTION_TUNED = 9,       /* settings that tuning found, in records of 96 bytes; not required */
    SL_SECTION_COARSE = 10, /* of I4 codes beside I8 or I16 rows: n rows that walks read, of one or two cache lines */
    SL_SECTION_PROJECTION = 11,       /* the matrix that makes those rows */
    SL_SECTION_PARTITION_STARTS = 12, /* uint32: first node of each partition, and the end of the last; not required */
    SL_SECTION_PARTITION_ROWS = 13,   /* their centroids, rows of I8 codes of floats; not required */
    SL_SECTION_DEAD = 14,             /* (n + 63) / 64 uint64: bit i % 64 of word i / 64 is node i's tombstone */
    SL_SECTION_LIVE = 15,             /* of a file written in place: superblocks and changing facts, see superblock.h */
    SL_SECTION_PARTITION_BANDS = 22,  /* uint8: 16 a partition, under inner product; not required */
    SL_SECTION_PAGE_SUMS = 23,        /* of such a file: uint32, a checksum a page, see page_sums.h */
    SL_SECTION_SUMS = 28,             /* of such a file: n uint32, a CRC-32C a node, see hnsw/graph/checksums.h */
    SL_SECTION_RECORDS = 29, /* n records of record_pitch bytes, in place of LINKS, IDS, SUMS and CODES; or of REST, for
                                I4 codes without COARSE: see hnsw/graph/record.h */
    SL_SECTION_GROUP_STARTS = 30, /* as 12 and 13, of partitions instead of nodes; not required */
    SL_SECTION_GROUP_ROWS = 31,
    SL_SECTION_TAGS = 34,  /* n uint64: each node's tag word; absent in an index without tags */
    SL_SECTION_KEYS = 35,  /* n uint64: each node's key; absent in an index without keys */
    SL_SECTION_MULTI = 36, /* no bytes: an id may have several vectors; absent in other indexes */
    SL_SECTION_LIFETIMES =
        50 /* of a file written in place: when each node was added and deleted; see hnsw/graph/lives.h */
} sl_section_kind;

typedef enum sl_ranker_section {
    SL_SECTION_SPEC = 16,        /* the features and the model that were asked for, as JSON text */
    SL_SECTION_FEATURES = 17,    /* fitted statistics and vocabularies */
    SL_SECTION_WIDE = 18,        /* weights of the wide part */
    SL_SECTION_EMBEDDINGS = 19,  /* rows of the embedding tables */
    SL_SECTION_DENSE = 20,       /* weights of the deep part's layers */
    SL_SECTION_TRAINER = 21,     /* state of the optimisers; in checkpoints only */
    SL_SECTION_TABLE_CODES = 32, /* 16 bytes a table: the codes of its rows; see ranker/model/table_codes.h */
    SL_SECTION_TABLE_ROWS = 33,  /* rows of the coded tables, each with a scale and an offset */
    SL_SECTION_LAYERS = 40,      /* in place of DENSE: layers, some of them in codes; see ranker/model/coded_layers.h */
    SL_SECTION_RANGES = 41       /* ranges of layers that train to be in codes; in checkpoints only */
} sl_ranker_section;

typedef enum sl_items_section {
    SL_SECTION_DIRECTORY = 24, /* columns, their types and places */
    SL_SECTION_ITEM_IDS = 25,  /* uint64: each row's id */
    SL_SECTION_COLUMNS = 26,   /* the columns' elements */
    SL_SECTION_TEXT = 27       /* bytes of the texts that columns point to */
} sl_items_section;

/* Of the routing file of a split, see cluster/search/split_file.h. */
typedef enum sl_split_section {
    SL_SECTION_SPLIT_FACTS = 44,  /* one sl_split_facts */
    SL_SECTION_SPLIT_PARTS = 45,  /* an sl_split_part per part */
    SL_SECTION_SPLIT_STARTS = 46, /* uint32: first group of each part and their end, first cell of each group and their
                                     end */
    SL_SECTION_SPLIT_CELLS = 47,  /* float: centre of each cell, dim numbers */
    SL_SECTION_SPLIT_GROUPS = 48, /* float: centre of each group */
    SL_SECTION_SPLIT_REACHES = 49 /* sl_split_reach: reaches by the share of true neighbours */
} sl_split_section;

/* Flag of a section: a reader that doesn't know its kind must refuse the file. */
#define SL_SECTION_REQUIRED 1u
/* Flag of a section: it's written in place, and its CRC is 0 and means nothing. */
#define SL_SECTION_CHANGING 2u

typedef struct sl_file_section {
    uint32_t kind;
    uint32_t flags;
    uint64_t offset;
    uint64_t size; /* without slack and alignment */
    uint32_t crc32c;
    uint32_t reserved;
} sl_file_section;

/* The differences between types of file. */
typedef struct sl_file_type {
    char magic[9];        /* the file's first 8 bytes, ended by a 0 here alone */
    const char *name;     /* as messages name it: "an index" */
    uint32_t version;     /* the version that this library writes, and the newest it reads */
    uint64_t known_kinds; /* bit 1 << kind for each kind of section that may occur */
    /* The end of the type's own fields in the header page. SL_HEADER_COMMON: it has none, and keeps its facts in
     * sections. From here to the section table all bytes must be zero, or the file is refused. */
    uint32_t fields_end;
} sl_file_type;

/* type.c */
extern const sl_file_type sl_index_file, sl_ranker_file, sl_items_file, sl_split_file;

/* A section's content, for messages: "section 26 (values of the columns)". Never NULL. */
const char *sl_section_name(uint32_t kind);

/* Bytes of the header page with the same meaning in every file. The fields from n on are an index's own. */
#define SL_HEADER_COMMON 32u

typedef struct sl_file_header {
    char magic[8];
    uint32_t version;
    uint32_t endian;
    uint32_t header_size;
    uint32_t section_count;
    uint64_t file_size;
    uint64_t n;
    uint32_t dim;
    uint8_t metric;
    uint8_t dtype;
    uint8_t codes;
    uint8_t refine;
    uint32_t m;
    uint32_t ef_construction;
    uint64_t seed;
    uint32_t row_pitch;
    uint32_t refine_pitch;
    uint32_t id_width; /* 0, 4 or 8 */
    uint32_t entry_node;
    uint32_t entry_slot; /* SL_NONE if no node is above layer 0 */
    uint32_t max_level;
    uint32_t upper_count;
    uint32_t upper_rows;
    uint64_t next_id;
    double quant_error_sum;
    double quant_error_max;
    uint64_t quant_error_count;
    uint64_t dead_count; /* deleted nodes; 0: there is no section DEAD, unless the file has room */
    /* Room of a file that is written in place; 0 in others. There the head page of SL_SECTION_LIVE holds n and all that
     * changes, and the header keeps the values of the file's making. */
    uint64_t room;
    uint64_t upper_room;   /* slots; one less than the starts */
    uint64_t rows_room;    /* rows of UPPER_LINKS */
    uint32_t record_pitch; /* 0: codes, links and ids are sections of their own */
    uint8_t clip;          /* how codes are clipped; 0: by the codes' own rule */
    uint8_t unused_clip[3];
    double clip_share; /* of clip 3 */
    uint8_t reserved[336];
    sl_file_section sections[SL_MAX_SECTIONS];
    uint8_t unused[2556];
    uint32_t crc32c; /* of the header page up to here */
} sl_file_header;

#define SL_AT(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field)
SL_AT(sl_file_section, kind, 0);
SL_AT(sl_file_section, flags, 4);
SL_AT(sl_file_section, offset, 8);
SL_AT(sl_file_section, size, 16);
SL_AT(sl_file_section, crc32c, 24);
static_assert(sizeof(sl_file_section) == 32, "sl_file_section");
SL_AT(sl_file_header, version, 8);
SL_AT(sl_file_header, endian, 12);
SL_AT(sl_file_header, header_size, 16);
SL_AT(sl_file_header, section_count, 20);
SL_AT(sl_file_header, file_size, 24);
SL_AT(sl_file_header, n, 32);
SL_AT(sl_file_header, dim, 40);
SL_AT(sl_file_header, metric, 44);
SL_AT(sl_file_header, dtype, 45);
SL_AT(sl_file_header, codes, 46);
SL_AT(sl_file_header, refine, 47);
SL_AT(sl_file_header, m, 48);
SL_AT(sl_file_header, ef_construction, 52);
SL_AT(sl_file_header, seed, 56);
SL_AT(sl_file_header, row_pitch, 64);
SL_AT(sl_file_header, refine_pitch, 68);
SL_AT(sl_file_header, id_width, 72);
SL_AT(sl_file_header, entry_node, 76);
SL_AT(sl_file_header, entry_slot, 80);
SL_AT(sl_file_header, max_level, 84);
SL_AT(sl_file_header, upper_count, 88);
SL_AT(sl_file_header, upper_rows, 92);
SL_AT(sl_file_header, next_id, 96);
SL_AT(sl_file_header, quant_error_sum, 104);
SL_AT(sl_file_header, quant_error_max, 112);
SL_AT(sl_file_header, quant_error_count, 120);
SL_AT(sl_file_header, dead_count, 128);
SL_AT(sl_file_header, room, 136);
SL_AT(sl_file_header, upper_room, 144);
SL_AT(sl_file_header, rows_room, 152);
SL_AT(sl_file_header, record_pitch, 160);
SL_AT(sl_file_header, clip, 164);
SL_AT(sl_file_header, unused_clip, 165);
SL_AT(sl_file_header, clip_share, 168);
SL_AT(sl_file_header, reserved, 176);
SL_AT(sl_file_header, sections, 512);
SL_AT(sl_file_header, unused, 1536);
SL_AT(sl_file_header, crc32c, 4092);
static_assert(sizeof(sl_file_header) == SL_HEADER_SIZE, "sl_file_header");
static_assert(offsetof(sl_file_header, n) == SL_HEADER_COMMON, "SL_HEADER_COMMON");

#endif
