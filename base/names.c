#include <shortlist.h>

static const char *name_of(const char *const *names, size_t count, size_t value) {
    return value < count ? names[value] : "?";
}
#define NAME_OF(names, value) name_of(names, sizeof(names) / sizeof *(names), (size_t)(value))

const char *sl_metric_name(sl_metric metric) {
    static const char *const names[] = {[SL_METRIC_IP] = "ip", [SL_METRIC_COSINE] = "cosine", [SL_METRIC_L2] = "l2"};
    return NAME_OF(names, metric);
}

const char *sl_codes_name(sl_codes codes) {
    static const char *const names[] = {
        [SL_CODES_I8] = "i8", [SL_CODES_I16] = "i16", [SL_CODES_F32] = "f32", [SL_CODES_I4] = "i4"};
    return NAME_OF(names, codes);
}

const char *sl_refine_name(sl_refine refine) {
    static const char *const names[] = {
        [SL_REFINE_NONE] = "none", [SL_REFINE_F32] = "f32", [SL_REFINE_BF16] = "bf16", [SL_REFINE_I16] = "i16"};
    return NAME_OF(names, refine);
}

const char *sl_clip_name(sl_clip clip) {
    static const char *const names[] = {
        [SL_CLIP_AUTO] = "auto", [SL_CLIP_MINMAX] = "minmax", [SL_CLIP_MSE] = "mse", [SL_CLIP_QUANTILE] = "quantile"};
    return NAME_OF(names, clip);
}

const char *sl_place_name(sl_place place) {
    static const char *const names[] = {[SL_PLACE_DRAM] = "dram", [SL_PLACE_MAP] = "map", [SL_PLACE_PMEM] = "pmem"};
    return NAME_OF(names, place);
}

const char *sl_layout_name(sl_layout layout) {
    static const char *const names[] = {[SL_LAYOUT_ARRAYS] = "arrays", [SL_LAYOUT_RECORDS] = "records"};
    return NAME_OF(names, layout);
}

const char *sl_tier_name(sl_tier tier) {
    static const char *const names[] = {[SL_TIER_AUTO] = "auto", [SL_TIER_NONE] = "none", [SL_TIER_DRAM] = "dram"};
    return NAME_OF(names, tier);
}

const char *sl_tier_state_name(sl_tier_state state) {
    static const char *const names[] = {
        [SL_TIER_STATE_NONE] = "none", [SL_TIER_STATE_FILLING] = "filling", [SL_TIER_STATE_FILLED] = "filled"};
    return NAME_OF(names, state);
}

const char *sl_mapping_name(sl_mapping mapping) {
    static const char *const names[] = {[SL_MAPPING_MEMORY] = "memory",
                                        [SL_MAPPING_SHARED] = "shared",
                                        [SL_MAPPING_PRIVATE] = "private",
                                        [SL_MAPPING_DIRECT] = "direct"};
    return NAME_OF(names, mapping);
}
