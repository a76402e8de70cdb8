/* agent/results/log_file.h - a file that grows during a run. What cannot be written stays in memory
 * and is tried again; the file contains whole entries, lines or records. */
#ifndef HPCT_AGENT_RESULTS_LOG_FILE_H
#define HPCT_AGENT_RESULTS_LOG_FILE_H

#include "base/output.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <sys/types.h>

#define HPCT_RESULTS_LOG_FLUSH ((size_t) 1 << 12)

typedef struct hpct_results_log_file {
    hpct_output file; /* fd -1: not there yet */
    char *path;
    const char *entry; /* "line", for messages */
    char *data;        /* that is not in the file yet */
    size_t bytes, room, flush_at;
    off_t written;
    char end[HPCT_OUTPUT_END]; /* of what is written */
    hpct_status lost;          /* entries that there was no memory for */
} hpct_results_log_file;

/* A log of `path`, which it then owns, that is not opened yet: its `file` is the caller's to
 * create. */
hpct_results_log_file hpct_results_log_file_of(char *path, const char *entry);
void hpct_results_log_free(hpct_results_log_file *log);

/* Appends a whole entry, in memory. `log->bytes >= log->flush_at`: it should be flushed. */
void hpct_results_log_add(hpct_results_log_file *log, const void *entry, size_t bytes);

/* Writes all, or nothing. HPCT_ERR_IO; then it may be called again. The file is open. */
hpct_status hpct_results_log_flush(hpct_results_log_file *log);

/* HPCT_ERR_IO if entries were lost, in what is otherwise complete. */
hpct_status hpct_results_log_check(const hpct_results_log_file *log);

/* What is in the file, whether it has a name or not, and the entries that wait, elsewhere. Returns
 * the earlier error, `failed`, with the place. */
hpct_status hpct_results_log_rescue(hpct_status failed, hpct_results_log_file *log);

#endif
