#include "cli/common/program.h"

#include "cli/common/ending.h"
#include "cli/common/report.h"

#include <stdio.h>
#include <string.h>

static const command *find_command(const program *program, const char *name) {
    for (const command *const *at = program->commands; *at; at++)
        if (strcmp((*at)->name, name) == 0) return *at;
    return NULL;
}

static int print_overview(const program *program) {
    printf("NAME\n       %s - %s\n\nSYNOPSIS\n%s\nDESCRIPTION\n", program->name, program->summary, program->synopsis);
    options_wrap(program->description, 7);
    printf("\nCOMMANDS\n");
    for (const command *const *at = program->commands; *at; at++)
        printf("       %-10s %s\n", (*at)->name, (*at)->summary);
    printf("       %-10s %s\n", "help", "print this page, or that of a command");
    for (const page_entry *entry = program->entries; entry->text; entry++) {
        if (entry->heading) printf("\n%s\n", entry->heading);
        if (entry->term) printf("       %s\n", entry->term);
        options_wrap(entry->text, entry->term ? 15 : 7);
    }
    printf("\nEXAMPLES\n%s", program->examples);
    return report_stdout();
}

static int print_help(const program *program, int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0) return print_overview(program);
    const command *command = find_command(program, argv[1]);
    if (!command) return report_usage("unknown command '%s'", argv[1]);
    options_help(command);
    return report_stdout();
}

int program_run(const program *program, int argc, char **argv) {
    if (argc < 2) return report_usage("a command is missing");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return print_overview(program);
    if (strcmp(name, "help") == 0) return print_help(program, argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) {
        printf("%s %s\n", program->name, sl_version());
        return report_stdout();
    }
    const command *command = find_command(program, name);
    if (!command) return report_usage("unknown command '%s'", name);
    report_command(command->name);
    shortened_install(command->name);
    return command->run(command, argc - 1, argv + 1);
}
