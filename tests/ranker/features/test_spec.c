/* Every key of a spec, and the messages for wrong ones. */
#include "ranker/features/spec.h"
#include "tests/support/check_main.h"
#include "tests/support/faults.h"
#include "tests/support/indexes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL "'label': {'column': 'y'}"
#define ONE   LABEL ", 'features': [{'name': 'a', 'type': 'numeric'}]"

/* JSON with ' instead of ". */
static sl_status read_spec(const char *given, const sl_allocator *allocator, sl_spec **out) {
    char text[8192];
    ck_assert_uint_lt(strlen(given), sizeof text);
    strcpy(text, given);
    for (char *at = text; *at; at++)
        if (*at == '\'') *at = '"';
    return sl_spec_read(text, allocator, out);
}

static sl_spec *good(const char *given) {
    sl_spec *spec;
    ck_ok(read_spec(given, NULL, &spec));
    return spec;
}

START_TEST(defaults) {
    sl_spec *s = good("{" ONE "}");
    ck_assert_int_eq(s->delimiter, ',');
    ck_assert_int_eq(s->header, 1);
    ck_assert_str_eq(s->label, "y");
    ck_assert_ptr_null(s->weight);
    ck_assert_int_eq(s->loss, SL_LOSS_LOGISTIC);
    ck_assert_uint_eq(s->feature_count, 1);
    const sl_feature_spec *f = s->features;
    ck_assert_str_eq(f->column, "a");
    ck_assert_int_eq(f->side, SL_SIDE_USER);
    ck_assert(f->missing_is_mean && f->scale == SL_SCALE_STANDARD && !f->log && !f->indicator);
    ck_assert(f->in_wide && f->in_deep && s->has_wide && s->has_deep);
    ck_assert_double_eq(s->wide_rate, 0.05);
    ck_assert_double_eq(s->wide_beta, 0.01);
    ck_assert_double_eq(s->deep_rate, 0.02);
    ck_assert_double_eq(s->epsilon, 1e-10);
    ck_assert_uint_eq(s->hidden_count, 3);
    ck_assert(s->hidden[0] == 128 && s->hidden[1] == 64 && s->hidden[2] == 32);
    ck_assert(s->activation == SL_RELU && s->optimizer == SL_ADAGRAD && s->schedule == SL_SCHEDULE_CONSTANT);
    ck_assert(s->epochs == 10 && s->minibatch_rows == 256 && s->patience == 2 && s->seed == 1);
    ck_assert_double_eq(s->validation, 0.1);
    ck_assert_double_eq(s->forget, 0.005);
    sl_spec_free(s);
}
END_TEST

START_TEST(every_key) {
    sl_spec *s = good(
        "{'csv': {'delimiter': ';', 'header': false, 'columns': ['y', 'a']}, 'weight': 'w',"
        "'label': {'column': 'y', 'loss': 'multiclass', 'classes': ['x', 3, true, 0.5]}, 'features': ["
        "{'name': 'n', 'type': 'numeric', 'column': 'c', 'scale': 'minmax', 'log': true, 'missing': -1.5,"
        " 'indicator': true, 'side': 'item'},"
        "{'name': 'b', 'type': 'bucket', 'boundaries': [1, 2.5]}, {'name': 'q', 'type': 'bucket', 'quantiles': 4},"
        "{'name': 'v', 'type': 'categorical', 'vocabulary': ['p', 7], 'oov': 3, 'dim': 5},"
        "{'type': 'categorical', 'name': 'f', 'min_count': 2, 'keep': 9, 'limit': 99, 'oov': 0},"
        "{'name': 'm', 'type': 'multi', 'hash': 50, 'separator': ',', 'combine': 'max', 'side': 'item'},"
        "{'name': 'i', 'type': 'categorical', 'identity': 12}, {'name': 's', 'type': 'multi', 'shared': 'v'},"
        "{'name': 'x', 'type': 'cross', 'of': ['v', 'b'], 'hash': 100},"
        "{'name': 'xx', 'type': 'cross', 'of': ['x', 'm'], 'hash': 10, 'combine': 'sum'},"
        "{'name': 'e', 'type': 'vector', 'dim': 8, 'source': 'index'},"
        "{'name': 'r', 'type': 'score', 'scale': 'none', 'missing': 'mean'}],"
        "'wide': {'features': ['x', 'v'], 'rate': 0.5, 'beta': 0.25, 'l1': 1, 'l2': 2},"
        "'deep': {'features': ['e', 'v'], 'hidden': [7], 'activation': 'gelu', 'dropout': 0.5, 'optimizer': 'adam',"
        " 'l2': 0.125, 'beta1': 0.5, 'beta2': 0.75, 'embedding_init': 1},"
        "'train': {'epochs': 3, 'batch': 32, 'validation': 0, 'patience': 0, 'schedule': 'cosine', 'seed': 77, "
        "'forget': 0.25}}");
    const sl_feature_spec *f = s->features;
    ck_assert(s->delimiter == ';' && !s->header && s->column_count == 2);
    ck_assert_str_eq(s->weight, "w");
    ck_assert_uint_eq(s->class_count, 4);
    ck_assert_str_eq(s->classes[1], "3");
    ck_assert_str_eq(s->classes[2], "true");
    ck_assert_str_eq(s->classes[3], "0.5");
    ck_assert(f[0].side == SL_SIDE_ITEM && f[0].log && f[0].indicator && f[0].scale == SL_SCALE_MINMAX);
    ck_assert_double_eq(f[0].missing, -1.5);
    ck_assert(f[1].boundary_count == 2 && f[1].boundaries[1] == 2.5 && f[2].quantiles == 4);
    ck_assert(f[3].coding == SL_CODING_LISTED && f[3].value_count == 2 && f[3].oov == 3 && f[3].dim == 5);
    ck_assert_str_eq(f[3].values[1], "7");
    ck_assert(f[4].min_count == 2 && f[4].keep == 9 && f[4].limit == 99 && f[4].oov == 0);
    ck_assert(f[5].coding == SL_CODING_HASH && f[5].size == 50 && f[5].separator == ',');
    ck_assert(f[5].combine == SL_COMBINE_MAX && f[6].coding == SL_CODING_IDENTITY && f[6].size == 12);
    ck_assert(f[7].shared == 3 && f[7].coding == SL_CODING_LISTED && f[7].dim == 5 && f[7].oov == 3);
    ck_assert(f[8].of_count == 2 && f[8].of[0] == 3 && f[8].of[1] == 1 && f[8].side == SL_SIDE_USER);
    ck_assert(f[9].side == SL_SIDE_PAIR && f[9].combine == SL_COMBINE_SUM);
    ck_assert(f[10].dim == 8 && f[10].from_index && f[11].side == SL_SIDE_PAIR);
    ck_assert(f[8].in_wide && !f[8].in_deep && f[10].in_deep && !f[10].in_wide && f[3].in_wide && f[3].in_deep);
    ck_assert(s->hidden_count == 1 && s->hidden[0] == 7 && s->activation == SL_GELU && s->optimizer == SL_ADAM);
    ck_assert_double_eq(s->deep_rate, 0.001);
    ck_assert_double_eq(s->epsilon, 1e-8);
    ck_assert(s->wide_l1 == 1 && s->wide_l2 == 2 && s->deep_l2 == 0.125 && s->beta1 == 0.5 && s->beta2 == 0.75);
    ck_assert(s->epochs == 3 && s->minibatch_rows == 32 && s->validation == 0 && s->patience == 0 && s->seed == 77);
    ck_assert_double_eq(s->forget, 0.25);
    sl_spec_free(s);
}
END_TEST

START_TEST(parts_left_out) {
    sl_spec *s = good("{" ONE ", 'wide': null}");
    ck_assert(!s->has_wide && s->has_deep && !s->features->in_wide);
    sl_spec_free(s);
    s = good("{" ONE ", 'deep': null}");
    ck_assert(s->has_wide && !s->has_deep);
    sl_spec_free(s);
    s = good("{" LABEL ", 'features': [{'name': 's', 'type': 'score'}]}");
    ck_assert(!s->has_wide && s->has_deep);
    sl_spec_free(s);
}
END_TEST

#define F(rest)  "{" LABEL ", 'features': [{'name': 'a', " rest "}]}"
#define AB(rest) "{" LABEL ", 'features': [{'name': 'a', 'type': 'categorical'}, {'name': 'b', " rest "}]}"

static const struct wrong {
    const char *json, *message;
} wrongs[] = {
    {"", "not JSON at line 1"},
    {"{\n\n'label' 1}", "not JSON at line 3"},
    {"{} {}", "not JSON"},
    {"[]", "the spec: takes an object"},
    {"{'label': {'column': 'a\\u0000b'}}", "NUL"},
    {"{" ONE ", 'x': 1}", "x: no such key"},
    {"{" ONE ", 'label': {}}", "label: is given twice"},
    {"{'features': []}", "has no label"},
    {"{" LABEL "}", "has no features"},
    {"{" LABEL ", 'features': []}", "features: takes a list"},
    {"{" LABEL ", 'features': {}}", "features: takes a list"},
    {"{" LABEL ", 'features': [1]}", "features[0]: takes an object"},
    {"{" ONE ", 'csv': {'delimiter': ',,'}}", "csv.delimiter: takes a text of one character"},
    {"{" ONE ", 'csv': {'delimiter': 1}}", "csv.delimiter"},
    {"{" ONE ", 'csv': {'delimiter': '\\n'}}", "csv.delimiter"},
    {"{" ONE ", 'csv': {'header': 1}}", "csv.header: takes true or false"},
    {"{" ONE ", 'csv': {'header': false}}", "csv: names no columns"},
    {"{" ONE ", 'csv': {'columns': []}}", "csv.columns: takes a list"},
    {"{" ONE ", 'csv': {'columns': ['a', 2]}}", "csv.columns[1]: takes a text"},
    {"{" ONE ", 'csv': []}", "csv: takes an object"},
    {"{" ONE ", 'weight': 5}", "weight: takes a text"},
    {"{'label': {}, 'features': []}", "label: has no column"},
    {"{'label': {'column': ''}}", "label.column: is an empty text"},
    {"{'label': {'column': 'y', 'loss': 'hinge'}}", "label.loss: takes one of: logistic multiclass squared"},
    {"{'label': {'column': 'y', 'positive': 1, 'at_least': 2}}", "both positive and at_least"},
    {"{'label': {'column': 'y', 'positive': []}}", "label.positive: takes a text, a number"},
    {"{'label': {'column': 'y', 'at_least': 'x'}}", "label.at_least: takes a number"},
    {"{'label': {'column': 'y', 'loss': 'squared', 'at_least': 1}}", "of the loss logistic"},
    {"{'label': {'column': 'y', 'classes': ['a', 'b']}}", "of the loss multiclass"},
    {"{'label': {'column': 'y', 'loss': 'multiclass', 'classes': ['a']}}", "label.classes: takes 2 to"},
    {"{'label': {'column': 'y', 'wieght': 1}}", "label.wieght: no such key"},
    {F("'type': 'numric'"), "features[0].type: takes one of"},
    {F("'column': 'x'"), "features[0]: has no type"},
    {"{" LABEL ", 'features': [{'type': 'numeric'}]}", "features[0]: has no name"},
    {F("'type': 'numeric', 'dim': 3"), "features[0].dim: a numeric feature has no such key"},
    {F("'type': 'numeric', 'missing': 'max'"), "features[0].missing: takes \"mean\" or a number"},
    {F("'type': 'numeric', 'missing': 1e999"), "features[0].missing: takes a number"},
    {F("'type': 'numeric', 'log': 1"), "features[0].log: takes true or false"},
    {F("'type': 'numeric', 'scale': 'x'"), "features[0].scale"},
    {F("'type': 'numeric', 'side': 'pair'"), "features[0].side: takes one of: user item"},
    {F("'type': 'score', 'side': 'user'"), "features[0].side: a score has no such key"},
    {F("'type': 'bucket'"), "either boundaries or quantiles"},
    {F("'type': 'bucket', 'boundaries': [1], 'quantiles': 2"), "either boundaries or quantiles"},
    {F("'type': 'bucket', 'boundaries': []"), "features[0].boundaries: takes a list"},
    {F("'type': 'bucket', 'boundaries': [1, 1]"), "features[0].boundaries[1]: is not above"},
    {F("'type': 'bucket', 'boundaries': ['1']"), "features[0].boundaries[0]: takes a number"},
    {F("'type': 'bucket', 'quantiles': 1"), "features[0].quantiles: takes a whole number from 2"},
    {F("'type': 'categorical', 'vocabulary': []"), "features[0].vocabulary: takes a list"},
    {F("'type': 'categorical', 'vocabulary': ['']"), "features[0].vocabulary[0]: is an empty text"},
    {F("'type': 'categorical', 'vocabulary': [1, 9007199254740993]"),
     "features[0].vocabulary[1]: has a number of 2^53 or more"},
    {"{'label': {'column': 'y', 'positive': 18446744073709551615}}", "label.positive: has a number of 2^53 or more"},
    {F("'type': 'categorical', 'vocabulary': [null]"), "features[0].vocabulary[0]: takes a text, a number"},
    {F("'type': 'categorical', 'hash': 0"), "features[0].hash: takes a whole number from 1"},
    {F("'type': 'categorical', 'hash': 2.5"), "features[0].hash: takes a whole number"},
    {F("'type': 'categorical', 'hash': 3e9"), "features[0].hash: takes a whole number"},
    {F("'type': 'categorical', 'hash': 9, 'identity': 9"), "has both hash and identity"},
    {F("'type': 'categorical', 'hash': 9, 'keep': 9"), "has keep"},
    {F("'type': 'categorical', 'hash': 9, 'oov': 1"), "has oov"},
    {F("'type': 'categorical', 'vocabulary': ['a'], 'limit': 9"), "has limit"},
    {F("'type': 'categorical', 'separator': ','"), "features[0].separator: a categorical feature has no such key"},
    {F("'type': 'categorical', 'dim': 0"), "features[0].dim: takes a whole number from 1"},
    {F("'type': 'categorical', 'limit': 0"), "features[0].limit"},
    {F("'type': 'categorical', 'min_count': -1"), "features[0].min_count"},
    {F("'type': 'categorical', 'shared': 'a'"), "features[0].shared: takes a categorical"},
    {F("'type': 'categorical', 'shared': 'z'"), "no feature has the name 'z'"},
    {F("'type': 'categorical', 'shared': 3"), "features[0].shared: takes a feature's name"},
    {AB("'type': 'multi', 'shared': 'a', 'dim': 3"), "features[1]: has dim"},
    {AB("'type': 'numeric', 'shared': 'a'"), "features[1].shared: a numeric feature has no such key"},
    {F("'type': 'multi', 'combine': 'min'"), "features[0].combine: takes one of: sum mean max"},
    {F("'type': 'multi', 'separator': ''"), "features[0].separator"},
    {F("'type': 'vector'"), "features[0]: has no dim"},
    {F("'type': 'vector', 'dim': 3, 'source': 'x'"), "features[0].source: takes one of: column index"},
    {AB("'type': 'cross', 'of': ['a', 'a'], 'hash': 5"), "features[1].of[1]: 'a' is listed twice"},
    {AB("'type': 'cross', 'of': ['a'], 'hash': 5"), "features[1].of: takes a list of 2"},
    {AB("'type': 'cross', 'of': ['a', 'b'], 'hash': 5"), "features[1].of: 'b' stands behind the cross"},
    {AB("'type': 'cross', 'of': ['a', 'c'], 'hash': 5"), "no feature has the name 'c'"},
    {AB("'type': 'cross', 'of': ['a', 1], 'hash': 5"), "features[1].of[1]: takes a feature's name"},
    {AB("'type': 'cross', 'of': ['a', 'b']"), "features[1]: has no hash"},
    {AB("'type': 'cross', 'hash': 5"), "features[1]: has no \"of\""},
    {AB("'type': 'cross', 'hash': 5, 'of': ['a', 'b'], 'column': 'c'"), "a cross has no such key"},
    {"{" LABEL ", 'features': [{'name': 'a', 'type': 'categorical'}, {'name': 'n', 'type': 'numeric'},"
     "{'name': 'x', 'type': 'cross', 'of': ['a', 'n'], 'hash': 5}]}",
     "'n' is a numeric feature"},
    {"{" LABEL ", 'features': [{'name': 'a', 'type': 'multi'}, {'name': 'b', 'type': 'multi'},"
     "{'name': 'x', 'type': 'cross', 'of': ['a', 'b'], 'hash': 5}]}",
     "'b' is the second multi feature"},
    {"{" LABEL ", 'features': [{'name': 'a', 'type': 'numeric'}, {'name': 'a', 'type': 'numeric'}]}",
     "features[1]: the name 'a' is features[0]'s already"},
    {"{" ONE ", 'wide': {'features': ['b']}}", "wide.features[0]: no feature has the name 'b'"},
    {"{" ONE ", 'wide': {'features': []}}", "wide: has no features"},
    {"{" ONE ", 'wide': {'features': 'a'}}", "wide.features: takes a list"},
    {"{" ONE ", 'wide': {'rate': 0}}", "wide.rate: takes a number above 0"},
    {"{" ONE ", 'wide': {'l1': -1}}", "wide.l1: takes a number from 0"},
    {"{" ONE ", 'wide': {'hidden': [1]}}", "wide.hidden: no such key"},
    {"{" ONE ", 'wide': null, 'deep': null}", "leaves both wide and deep without"},
    {"{" ONE ", 'deep': {'features': ['a', 'a']}}", "deep.features[1]: 'a' is listed twice"},
    {"{" ONE ", 'deep': {'hidden': []}}", "deep.hidden: takes a list"},
    {"{" ONE ", 'deep': {'hidden': [1,2,3,4,5,6,7,8,9]}}", "deep.hidden: takes a list of 1 to 8"},
    {"{" ONE ", 'deep': {'hidden': [3, 0]}}", "deep.hidden[1]: takes a whole number"},
    {"{" ONE ", 'deep': {'activation': 'elu'}}", "deep.activation: takes one of"},
    {"{" ONE ", 'deep': {'dropout': 0.95}}", "deep.dropout: takes a number from 0 to 0.9"},
    {"{" ONE ", 'deep': {'optimizer': 'sgd'}}", "deep.optimizer: takes one of: adagrad adam"},
    {"{" ONE ", 'deep': {'beta1': 1}}", "deep.beta1"},
    {"{" ONE ", 'deep': {'beta2': -1}}", "deep.beta2"},
    {"{" ONE ", 'deep': {'epsilon': 0}}", "deep.epsilon"},
    {"{" ONE ", 'deep': {'rate': '1'}}", "deep.rate: takes a number above 0"},
    {"{" ONE ", 'deep': {'l2': -1}}", "deep.l2"},
    {"{" ONE ", 'deep': {'embedding_init': -1}}", "deep.embedding_init"},
    {"{" ONE ", 'train': {'epochs': 0}}", "train.epochs: takes a whole number from 1"},
    {"{" ONE ", 'train': {'batch': 1.5}}", "train.batch"},
    {"{" ONE ", 'train': {'validation': 1}}", "train.validation"},
    {"{" ONE ", 'train': {'patience': -1}}", "train.patience"},
    {"{" ONE ", 'train': {'forget': 0.6}}", "train.forget"},
    {"{" ONE ", 'train': {'schedule': 'step'}}", "train.schedule"},
    {"{" ONE ", 'train': {'seed': -1}}", "train.seed"},
    {"{" ONE ", 'train': {'seed': 1e300}}", "train.seed"},
};

START_TEST(wrong_keys_are_named) {
    sl_spec *spec;
    ck_fails(read_spec(wrongs[_i].json, NULL, &spec), SL_EINVAL, wrongs[_i].message);
    ck_assert_ptr_null(spec);
}
END_TEST

#define OPEN "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
#define NESTED                                                                                                         \
    "[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]" \
    "]]]]]],[[[[[[[[]]]]]]]],[[[[[[[[]]]]]]]]"
START_TEST(null_and_deep_nesting) {
    sl_spec *spec;
    ck_fails(sl_spec_read(NULL, NULL, &spec), SL_EINVAL, "NULL");
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH + 1);
    memset(text, '[', DEPTH);
    text[DEPTH] = 0;
    ck_fails(sl_spec_read(text, NULL, &spec), SL_EINVAL, "more than 64 brackets within each other at line 1");
    free(text);
    /* Closed brackets, and brackets in texts, do not count as nested. */
    ck_fails(sl_spec_read("{\"a\": [" NESTED "], \"b\": \"\\\"" OPEN OPEN "\"}", NULL, &spec), SL_EINVAL,
             "a: no such key");
}
END_TEST

START_TEST(memory_may_run_out) {
    const char *text = "{'csv': {'columns': ['y', 'a']}, 'label': {'column': 'y', 'positive': 12.25}, 'features': ["
                       "{'name': 'a', 'type': 'categorical', 'vocabulary': [1, 'x']}]}";
    sl_status status = SL_ENOMEM;
    for (size_t at = 1; status == SL_ENOMEM; at++) {
        fault_allocator faults;
        fault_allocator_init(&faults, at);
        sl_spec *spec;
        status = read_spec(text, &faults.allocator, &spec);
        ck_assert_int_eq(status == SL_OK, spec != NULL);
        ck_assert_msg(status == SL_OK || status == SL_ENOMEM, "%s", sl_last_error());
        if (status == SL_OK) ck_assert_uint_gt(at, 3);
        sl_spec_free(spec);
        ck_assert_uint_eq(faults.live_blocks, 0);
    }
}
END_TEST

int main(void) {
    TCase *cases[] = {tcase_create("spec")};
    tcase_add_test(cases[0], defaults);
    tcase_add_test(cases[0], every_key);
    tcase_add_test(cases[0], parts_left_out);
    tcase_add_loop_test(cases[0], wrong_keys_are_named, 0, (int)(sizeof wrongs / sizeof *wrongs));
    tcase_add_test(cases[0], null_and_deep_nesting);
    tcase_add_test(cases[0], memory_may_run_out);
    return check_main("spec", cases, 1);
}
