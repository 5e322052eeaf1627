#include "cli/ranker/training_options.h"

#include "cli/common/report.h"
#include "cli/ranker/ranking_inputs.h"

int training_options_check(const training_options *given) {
    if (given->teacher) return EXIT_DONE;
    if (given->temperature >= 0) return report_usage("--temperature needs --teacher MODEL");
    if (given->soft >= 0) return report_usage("--soft needs --teacher MODEL");
    return EXIT_DONE;
}

void set_training(const training_options *given, const sl_ranker *teacher, sl_train_params *params) {
    params->teacher = teacher;
    if (given->temperature >= 0) params->temperature = given->temperature;
    if (given->soft >= 0) params->soft = given->soft;
    if (given->rate_scale >= 0) params->rate_scale = given->rate_scale;
}

int open_optional(const char *path, sl_ranker **out) {
    sl_ranker_info info;
    *out = NULL;
    return path ? open_model(path, out, &info) : EXIT_DONE;
}
