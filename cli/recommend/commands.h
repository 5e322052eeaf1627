/* The commands that recommend items, and that measure recommendations. */
#ifndef CLI_RECOMMEND_COMMANDS_H
#define CLI_RECOMMEND_COMMANDS_H

#include "cli/common/options.h"

extern const command command_evaluate;
extern const command command_items;
extern const command command_recommend;

#endif
