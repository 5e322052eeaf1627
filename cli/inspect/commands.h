/* The commands that describe files and the machine. */
#ifndef CLI_INSPECT_COMMANDS_H
#define CLI_INSPECT_COMMANDS_H

#include "cli/common/options.h"

extern const command command_info;
extern const command command_check;
extern const command command_recall;
extern const command command_cpu;

#endif
