/* How the process ends without a return: by SIGINT, and when a mapped file becomes shorter. */
#ifndef CLI_COMMON_ENDING_H
#define CLI_COMMON_ENDING_H

/* Ends the process by SIGINT if SIGINT came, after all cleanup. A shell then ends its loop too. Otherwise returns
 * `status`. */
int end_as_asked(int status);

/* Installs a SIGBUS handler for mapped files that become shorter. It removes unfinished outputs, prints one line on
 * stderr that begins with `command`, and ends with EXIT_FAILED. */
void shortened_install(const char *command);
/* Does the same for a child whose parent reports for it: the child ends by EXIT_SHORTENED and prints nothing. */
void shortened_leave_to_parent(void);
enum { EXIT_SHORTENED = 3 };
/* The text of that line. */
#define SHORTENED                                                                                                      \
    "a file that was mapped became shorter while it was read, or can no longer be read; put whole files in its place " \
    "by renaming, or use --place dram"

#endif
