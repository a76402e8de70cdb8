/* Whole JSON documents, written so that no reader sees half of one. */
#include "agent/json_file.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t) written;
    }
    return true;
}

hpct_status hpct_json_write(json_t *document, const char *path)
{
    hpct_status status = HPCT_OK;
    char *text = NULL, *line = NULL, *temporary = NULL;
    int fd = -1;
    if (document != NULL)
        text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(document);
    if (text == NULL || asprintf(&line, "%s\n", text) < 0 ||
        asprintf(&temporary, "%s.tmp%d", path, (int) getpid()) < 0) {
        status = hpct_fail_memory(0);
        goto end;
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
        goto end;
    }
    bool written = write_all(fd, line, strlen(line)) && fsync(fd) == 0;
    if (close(fd) != 0 || !written || rename(temporary, path) != 0) {
        status = hpct_fail(HPCT_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
        unlink(temporary);
    }
end:
    free(text);
    free(line);
    free(temporary);
    return status;
}

hpct_status hpct_json_read(json_t **out, const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    *out = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (*out == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: line %d: %s", path, error.line, error.text);
    return HPCT_OK;
}
