/* A program of several commands: finds the command that the user names, and prints the pages. */
#ifndef CLI_COMMON_PROGRAM_H
#define CLI_COMMON_PROGRAM_H

#include "cli/common/options.h"

/* A part of the program's page: a heading, then paragraphs, each under a term. The last one has a NULL text. */
typedef struct page_entry {
    const char *heading; /* NULL: the heading before goes on */
    const char *term;    /* NULL: none */
    const char *text;    /* one paragraph, ended by a newline; wrapped when printed */
} page_entry;

typedef struct program {
    const char *name;     /* "shortlist" */
    const char *summary;  /* "find the nearest vectors, and rank them" */
    const char *synopsis; /* lines, printed as they stand */
    const char *description;
    const command *const *commands; /* ended by NULL */
    const page_entry *entries;
    const char *examples; /* lines, printed as they stand */
} program;

/* Runs the command that argv names. Returns the exit status. */
int program_run(const program *program, int argc, char **argv);

#endif
