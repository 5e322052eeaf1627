#define _POSIX_C_SOURCE 200809L
#include "ranker/features/json.h"

#include "ranker/features/table.h"

#include <locale.h>
#include <string.h>

/* cJSON needs some 100 bytes of stack a nesting level. A spec needs five levels. */
enum { MAX_DEPTH = 64 };

/* JSON can write a NUL as \u0000. A C string would silently end there. */
static int has_nul(const char *text) {
    for (; *text; text++) {
        if (*text != '\\') continue;
        text++;
        if (strncmp(text, "u0000", 5) == 0) return 1;
        if (!*text) return 0;
    }
    return 0;
}

/* Returns the first bracket that is nested too deep, or NULL. */
static const char *find_too_deep(const char *text) {
    size_t depth = 0;
    int quoted = 0;
    for (; *text; text++) {
        if (*text == '"') quoted = !quoted;
        if (quoted && *text == '\\' && text[1]) text++;
        if (quoted) continue;
        if ((*text == '[' || *text == '{') && ++depth > MAX_DEPTH) return text;
        if ((*text == ']' || *text == '}') && depth) depth--;
    }
    return NULL;
}

static size_t line_of(const char *text, const char *end) {
    size_t line = 1;
    for (; text < end; text++)
        line += *text == '\n';
    return line;
}

/* cJSON reads and writes numbers by the locale, and can't handle a decimal point of several bytes. JSON's point is a
 * dot. So this thread, and no other, switches to the "C" locale while cJSON works. newlocale gives that locale without
 * an allocation. */
typedef struct locale_switch {
    locale_t c, before;
} locale_switch;

static int enter_c_locale(locale_switch *l) {
    l->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (l->c) l->before = uselocale(l->c);
    return l->c != (locale_t)0;
}

static void leave_c_locale(const locale_switch *l) {
    uselocale(l->before);
    freelocale(l->c);
}

sl_status sl_json_parse(const char *text, cJSON **out) {
    *out = NULL;
    if (has_nul(text)) return sl_fail(SL_EINVAL, "the spec: a text has a NUL character");
    const char *end = find_too_deep(text);
    if (end)
        return sl_fail(SL_EINVAL, "the spec: more than %d brackets within each other at line %zu; leave some out",
                       MAX_DEPTH, line_of(text, end));
    locale_switch locale;
    if (!enter_c_locale(&locale))
        return sl_fail(SL_ENOMEM, "the spec: no memory for the locale that numbers are read in");
    *out = cJSON_ParseWithLengthOpts(text, strlen(text) + 1, &end, 1);
    leave_c_locale(&locale);
    if (*out) return SL_OK;
    return sl_fail(SL_EINVAL, "the spec: not JSON at line %zu, near '%s'", line_of(text, end),
                   sl_show(end, strlen(end)).text);
}

char *sl_json_print(const cJSON *root) {
    locale_switch locale;
    if (!enter_c_locale(&locale)) return NULL;
    char *text = cJSON_Print(root);
    leave_c_locale(&locale);
    return text;
}
