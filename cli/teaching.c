#include "cli/teaching.h"

#include "cli/ranking.h"
#include "cli/report.h"

int teaching_check(const teaching *given) {
    if (given->teacher) return EXIT_DONE;
    if (given->temperature >= 0) return report_usage("--temperature needs --teacher MODEL");
    if (given->soft >= 0) return report_usage("--soft needs --teacher MODEL");
    return EXIT_DONE;
}

void teach(const teaching *given, const sl_ranker *teacher, sl_train_params *params) {
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
