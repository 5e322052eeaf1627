#include "cli/ranker/layer_options.h"

#include "cli/common/report.h"
#include "cli/common/system.h"

#include <stdlib.h>
#include <string.h>

const char *const range_names[] = {"observed", "learned"};

int kept_read(const char *given, kept_layers *out) {
    if (!given) return EXIT_DONE;
    out->text = allocate(strlen(given) + 1, 1);
    if (!out->text) return EXIT_FAILED;
    memcpy(out->text, given, strlen(given) + 1);
    for (char *at = out->text; at;) {
        char *next = strchr(at, ','), *equals;
        if (next) *next++ = '\0';
        equals = strchr(at, '=');
        if (!equals || strcmp(equals, "=f32") != 0)
            return report_usage("--keep is '%s'; give LAYER=f32, several with commas between them", given);
        if (out->count == KEPT_MOST) return report_usage("--keep names more than %d layers", KEPT_MOST);
        *equals = '\0';
        out->names[out->count++] = at;
        at = next;
    }
    return EXIT_DONE;
}

void kept_free(kept_layers *kept) {
    free(kept->text);
}

int layer_options_check(const layer_options *given) {
    if (given->layers == SL_TRAIN_LAYERS_INT8) return EXIT_DONE;
    if (given->ranges >= 0) return report_usage("--ranges needs --layers int8");
    if (given->keep) return report_usage("--keep needs --layers int8");
    return EXIT_DONE;
}

void set_layers(const layer_options *given, const kept_layers *kept, sl_train_params *params) {
    if (given->layers >= 0) params->layers = (sl_train_layers)given->layers;
    if (given->ranges >= 0) params->ranges = (sl_train_ranges)given->ranges;
    params->keep = kept->names;
    params->keep_count = kept->count;
}
