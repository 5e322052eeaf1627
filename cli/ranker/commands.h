/* The commands that make and use models. */
#ifndef CLI_RANKER_COMMANDS_H
#define CLI_RANKER_COMMANDS_H

#include "cli/common/options.h"

extern const command command_train;
extern const command command_predict;
extern const command command_quantize;
extern const command command_prune;

#endif
