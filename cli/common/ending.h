/* Ends of the process that are not a return: by SIGINT, and when a mapped file becomes shorter. */
#ifndef CLI_COMMON_ENDING_H
#define CLI_COMMON_ENDING_H

/* Ends the process by SIGINT itself where that came, once all is put in order. A shell then ends its loop too. Returns
 * `status` where it did not come. */
int end_as_asked(int status);

/* Ends the command with one line on stderr and EXIT_FAILED when a mapped file became shorter. The system would send
 * SIGBUS. Unfinished outputs are removed. The line begins with the name of `command`. */
void shortened_install(const char *command);
/* Does the same for a child whose parent reports for it: the child ends without a word, by EXIT_SHORTENED. */
void shortened_leave_to_parent(void);
enum { EXIT_SHORTENED = 3 };
/* The text of that line. */
#define SHORTENED                                                                                                      \
    "a file that was mapped became shorter while it was read, or can no longer be read; put whole files in its place " \
    "by renaming, or use --place dram"

#endif
