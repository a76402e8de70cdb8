/* agent/data/csv.h - records of a CSV text (RFC 4180), parsed in place. Knows nothing of what they
 * mean. */
#ifndef HPCT_AGENT_DATA_CSV_H
#define HPCT_AGENT_DATA_CSV_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_data_csv {
    const char *path; /* for messages */
    char *text;       /* [size + 1], the caller's; changed in place */
    size_t size, at;
    size_t line, next; /* of the record that was read last, from 1, and of the next one */
    char **fields;     /* of that record: parts of the text, each ended by a zero */
    size_t num_fields, room;
} hpct_data_csv;

/* A byte order mark is skipped. Returns HPCT_ERR_DATA, naming the line, for a zero byte, as in
 * UTF-16. */
hpct_status hpct_data_csv_open(hpct_data_csv *csv, char *text, size_t size, const char *path);
void hpct_data_csv_close(hpct_data_csv *csv); /* leaves the text */

/* Reads the next record; *any is false at the end. Lines end in LF or CR LF; empty ones are
 * skipped. Returns HPCT_ERR_DATA, naming file, line and column, for a quote or carriage return
 * where none can be. */
hpct_status hpct_data_csv_next(hpct_data_csv *csv, bool *any);

/* HPCT_ERR_DATA, naming what separates the columns instead of commas, for a record of one field
 * that other programs would divide. */
hpct_status hpct_data_csv_check_commas(const hpct_data_csv *csv);

#endif
