/* Writes one JSON object to a stream. The key of an array's element is NULL. */
#ifndef CLI_COMMON_JSON_OUT_H
#define CLI_COMMON_JSON_OUT_H

#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *file;
    int follows; /* a comma is due before the next member */
} json;

void json_begin(json *json, FILE *file);
/* Closes the object and ends the line. */
void json_end(json *json);

void json_open_array(json *json, const char *key);
void json_close_array(json *json);
void json_open_object(json *json, const char *key);
void json_close_object(json *json);

/* Writes text. Bytes that are not UTF-8 become U+FFFD. NULL becomes null. */
void json_text(json *json, const char *key, const char *text);
void json_count(json *json, const char *key, uint64_t value);
/* Writes the shortest form that keeps 9 digits. A value that is not finite becomes null. */
void json_real(json *json, const char *key, double value);
void json_flag(json *json, const char *key, int value);

#endif
