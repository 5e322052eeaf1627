/* The commands that make and change indexes. */
#ifndef CLI_INDEX_COMMANDS_H
#define CLI_INDEX_COMMANDS_H

#include "cli/common/options.h"

extern const command command_build;
extern const command command_add;
extern const command command_delete;
extern const command command_compact;
extern const command command_import;
extern const command command_merge;
extern const command command_rebuild;
extern const command command_snapshot;

#endif
