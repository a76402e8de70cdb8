/* A file to which whole entries are appended. */
#include "agent/results/log_file.h"

#include "agent/results/results.h"
#include "base/file.h"
#include "base/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES ((size_t) 1 << 26) /* that wait for a disk with room */

hpct_results_log_file hpct_results_log_file_of(char *path, const char *entry)
{
    return (hpct_results_log_file){
        .file = {.fd = -1}, .path = path, .entry = entry, .flush_at = HPCT_RESULTS_LOG_FLUSH};
}

void hpct_results_log_free(hpct_results_log_file *log)
{
    hpct_output_close(&log->file);
    free(log->path);
    free(log->data);
}

static bool make_room(hpct_results_log_file *log, size_t bytes)
{
    size_t room = log->room > 0 ? log->room : HPCT_RESULTS_LOG_FLUSH;
    while (room < log->bytes + bytes)
        room *= 2;
    char *data = room <= MOST_BYTES ? realloc(log->data, room) : NULL;
    if (data == NULL)
        return false;
    log->data = data;
    log->room = room;
    return true;
}

hpct_status hpct_results_log_check(const hpct_results_log_file *log)
{
    return log->lost == HPCT_OK
               ? HPCT_OK
               : hpct_fail(log->lost, "%s: %ss are missing: it could not be written for too long",
                           log->path, log->entry);
}

void hpct_results_log_add(hpct_results_log_file *log, const void *entry, size_t bytes)
{
    if (log->lost == HPCT_OK && !make_room(log, bytes))
        log->lost = HPCT_ERR_IO;
    if (log->lost != HPCT_OK)
        return;
    memcpy(log->data + log->bytes, entry, bytes);
    log->bytes += bytes;
}

/* What was written of an entry is taken back or, where that cannot be, written over by the next
 * attempt. */
hpct_status hpct_results_log_flush(hpct_results_log_file *log)
{
    hpct_status status = hpct_file_write_all(log->file.fd, log->data, log->bytes, log->path);
    if (status == HPCT_OK) {
        size_t most = sizeof log->end - 1, last = log->bytes < most ? log->bytes : most;
        if (last > 0)
            snprintf(log->end, sizeof log->end, "%.*s", (int) last, log->data + log->bytes - last);
        log->written += (off_t) log->bytes;
        log->bytes = 0;
    } else {
        lseek(log->file.fd, log->written, SEEK_SET);
        if (ftruncate(log->file.fd, log->written) != 0 && !log->file.is_special)
            hpct_fail(status, "%s, and it ends in the middle of a %s", hpct_last_error(),
                      log->entry);
    }
    log->flush_at = log->bytes + HPCT_RESULTS_LOG_FLUSH;
    return status;
}

/* ---- elsewhere ---- */

static hpct_status copy_written(const hpct_results_log_file *log, int fd)
{
    char path[64], data[8192];
    snprintf(path, sizeof path, "/proc/self/fd/%d", log->file.fd);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return hpct_file_failed("reading", log->path);
    hpct_status status = HPCT_OK;
    for (off_t at = 0; at < log->written && status == HPCT_OK;) {
        off_t left = log->written - at;
        size_t bytes = left < (off_t) sizeof data ? (size_t) left : sizeof data;
        status = hpct_file_read_all(from, data, bytes, at, log->path);
        if (status == HPCT_OK)
            status = hpct_file_write_all(fd, data, bytes, log->path);
        at += (off_t) bytes;
    }
    close(from);
    return status;
}

static hpct_status copy_log(void *arg, int fd)
{
    const hpct_results_log_file *log = arg;
    if (log->file.fd >= 0)
        HPCT_TRY(copy_written(log, fd));
    return hpct_file_write_all(fd, log->data, log->bytes, log->path);
}

static hpct_status put_log(void *what, const char *name, bool synced)
{
    return hpct_output_rescue(name, copy_log, what, synced);
}

hpct_status hpct_results_log_rescue(hpct_status failed, hpct_results_log_file *log)
{
    return hpct_results_rescue(failed, log->path, put_log, log);
}
