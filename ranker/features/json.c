#define _POSIX_C_SOURCE 200809L
#include "ranker/features/json.h"

#include "ranker/features/table.h"

#include <locale.h>
#include <string.h>

/* cJSON takes some 100 bytes of stack for each bracket within a bracket. A spec needs five. */
enum { DEEPEST = 64 };

/* JSON may write a NUL as \u0000. A C text would silently end there. */
static int has_nul(const char *text) {
    for (; *text; text++) {
        if (*text != '\\') continue;
        text++;
        if (strncmp(text, "u0000", 5) == 0) return 1;
        if (!*text) return 0;
    }
    return 0;
}

/* The place of the first bracket that is nested too deep, or NULL. */
static const char *too_deep(const char *text) {
    size_t depth = 0;
    int quoted = 0;
    for (; *text; text++) {
        if (*text == '"') quoted = !quoted;
        if (quoted && *text == '\\' && text[1]) text++;
        if (quoted) continue;
        if ((*text == '[' || *text == '{') && ++depth > DEEPEST) return text;
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

/* cJSON reads and writes numbers by the locale, and knows no decimal point of several bytes. JSON's is a dot. So this
 * thread, and no other, is in the "C" locale while cJSON works. Asking for that locale allocates nothing. */
typedef struct plain_locale {
    locale_t plain, before;
} plain_locale;

static int enter(plain_locale *l) {
    l->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (l->plain) l->before = uselocale(l->plain);
    return l->plain != (locale_t)0;
}

static void leave(const plain_locale *l) {
    uselocale(l->before);
    freelocale(l->plain);
}

sl_status sl_json_parse(const char *text, cJSON **out) {
    *out = NULL;
    if (has_nul(text)) return sl_fail(SL_EINVAL, "the spec: a text has a NUL character");
    const char *end = too_deep(text);
    if (end)
        return sl_fail(SL_EINVAL, "the spec: more than %d brackets within each other at line %zu; leave some out",
                       DEEPEST, line_of(text, end));
    plain_locale locale;
    if (!enter(&locale)) return sl_fail(SL_ENOMEM, "the spec: no memory for the locale that numbers are read in");
    *out = cJSON_ParseWithLengthOpts(text, strlen(text) + 1, &end, 1);
    leave(&locale);
    if (*out) return SL_OK;
    return sl_fail(SL_EINVAL, "the spec: not JSON at line %zu, near '%s'", line_of(text, end),
                   sl_show(end, strlen(end)).text);
}

char *sl_json_print(const cJSON *root) {
    plain_locale locale;
    if (!enter(&locale)) return NULL;
    char *text = cJSON_Print(root);
    leave(&locale);
    return text;
}
