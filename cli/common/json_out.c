#include "cli/common/json_out.h"

#include "cli/common/utf8.h"

#include <inttypes.h>
#include <math.h>

static void write_quoted(FILE *file, const char *text) {
    fputc('"', file);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(file, "\\u%04x", *s);
        else if (length)
            fwrite(s, 1, length, file);
        else
            fputs("\\ufffd", file);
        s += length ? length : 1;
    }
    fputc('"', file);
}

static void begin_member(json *json, const char *key) {
    if (json->follows) fputs(", ", json->file);
    json->follows = 1;
    if (!key) return;
    write_quoted(json->file, key);
    fputs(": ", json->file);
}

static void open_scope(json *json, const char *key, char bracket) {
    begin_member(json, key);
    fputc(bracket, json->file);
    json->follows = 0;
}

static void close_scope(json *json, char bracket) {
    fputc(bracket, json->file);
    json->follows = 1;
}

void json_begin(json *json, FILE *file) {
    *json = (struct json){.file = file};
    open_scope(json, NULL, '{');
}

void json_end(json *json) {
    close_scope(json, '}');
    fputc('\n', json->file);
}

void json_open_array(json *json, const char *key) {
    open_scope(json, key, '[');
}

void json_close_array(json *json) {
    close_scope(json, ']');
}

void json_open_object(json *json, const char *key) {
    open_scope(json, key, '{');
}

void json_close_object(json *json) {
    close_scope(json, '}');
}

void json_text(json *json, const char *key, const char *text) {
    begin_member(json, key);
    if (text)
        write_quoted(json->file, text);
    else
        fputs("null", json->file);
}

void json_count(json *json, const char *key, uint64_t value) {
    begin_member(json, key);
    fprintf(json->file, "%" PRIu64, value);
}

void json_real(json *json, const char *key, double value) {
    begin_member(json, key);
    if (isfinite(value))
        fprintf(json->file, "%.9g", value);
    else
        fputs("null", json->file);
}

void json_flag(json *json, const char *key, int value) {
    begin_member(json, key);
    fputs(value ? "true" : "false", json->file);
}
