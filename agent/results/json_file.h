/* agent/results/json_file.h - values of JSON, and a document as a file. */
#ifndef HPCT_AGENT_RESULTS_JSON_FILE_H
#define HPCT_AGENT_RESULTS_JSON_FILE_H

#include <hpctrain/status.h>
#include <jansson.h>
#include <stdint.h>

/* null for what JSON cannot have: a number that is not finite, a text that is NULL or not UTF-8. */
json_t *hpct_results_json_number(double value);
json_t *hpct_results_json_text(const char *text);

/* HPCT_ERR_DATA unless object[key] is a whole number from `least` to `most`. */
hpct_status hpct_results_json_whole(int64_t *out, const json_t *object, const char *key,
                                    int64_t least, int64_t most);

/* As hpct_output_replace: atomic. Returns HPCT_ERR_IO naming `path`. Takes ownership of `root`;
 * NULL (out of memory) is HPCT_ERR_INTERNAL. */
hpct_status hpct_results_json_write(json_t *root, const char *path);

/* HPCT_ERR_NO_INPUT, or HPCT_ERR_DATA with the line. The caller owns *out. */
hpct_status hpct_results_json_read(json_t **out, const char *path);

#endif
