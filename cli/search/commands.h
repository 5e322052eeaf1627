/* The commands that search, and that measure searches. */
#ifndef CLI_SEARCH_COMMANDS_H
#define CLI_SEARCH_COMMANDS_H

#include "cli/common/options.h"

extern const command command_search;
extern const command command_eval;
extern const command command_tune;
extern const command command_truth;

#endif
