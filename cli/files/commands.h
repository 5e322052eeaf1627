/* The commands that work on files of vectors. */
#ifndef CLI_FILES_COMMANDS_H
#define CLI_FILES_COMMANDS_H

#include "cli/common/options.h"

extern const command command_convert;

#endif
