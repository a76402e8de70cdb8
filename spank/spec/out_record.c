/* Fields of the form KEY=VALUE, each ended by a zero byte, as values may hold any other. */
#include <config.h>

#include "spank/spec/out_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/status.h"
#include "spank/spec/entry.h"

#define MAX_BYTES (4l << 20) /* far more than an option and a node's tasks can need */

static void print_field(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s=%s%c", key, value, '\0');
}

static void print(const hpct_spec_out_record *r, FILE *out)
{
    fprintf(out, "job=%" PRIu32 "%c", r->job, '\0');
    if (r->array.is)
        fprintf(out, "array=%" PRIu32 "%carray_task=%" PRIu32 "%c", r->array.job, '\0',
                r->array.task, '\0');
    print_field(out, "step", r->step);
    fprintf(out, "node=%" PRIu32 "%c", r->node, '\0');
    fprintf(out, "umask=%u%c", (unsigned) r->umask, '\0');
    fprintf(out, "start=%" PRId64 "%c", r->start, '\0');
    print_field(out, "cwd", r->cwd);
    print_field(out, "list", r->list);
    for (uint32_t i = 0; i < r->num_tasks; i++)
        fprintf(out, "task=%" PRIu32 "%c", r->tasks[i], '\0');
    if (r->srun != NULL && r->key != NULL) {
        print_field(out, "srun", r->srun);
        print_field(out, "key", r->key);
        fprintf(out, "nodes=%" PRIu32 "%c", r->nodes, '\0');
    }
    print_field(out, "end", "");
}

/* PARENT/.records-42 for PARENT/42; NULL without memory. */
static char *records_path(const char *tmpdir)
{
    char *path = NULL, *copy = strdup(tmpdir);
    if (copy == NULL)
        return NULL;
    hpct_spec_entry_strip(copy);
    const char *name = hpct_spec_entry_last_part(copy);
    if (asprintf(&path, "%.*s" HPCT_SPEC_RECORDS_PREFIX "%s", (int) (name - copy), copy, name) < 0)
        path = NULL;
    free(copy);
    return path;
}

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int hpct_spec_records_open(const char *tmpdir)
{
    char *path = records_path(tmpdir), *own = NULL;
    int fd = path == NULL ? -1 : open_folder(path);
    free(path);
    if (fd >= 0 || errno != ENOENT || asprintf(&own, "%s/" HPCT_SPEC_PRIVATE_FOLDER, tmpdir) < 0)
        return fd;
    fd = open_folder(own);
    free(own);
    return fd;
}

static hpct_status write_record(int folder, const char *path, const hpct_spec_out_record *record)
{
    char name[64], temporary[sizeof name + 4];
    snprintf(name, sizeof name, HPCT_SPEC_OUT_RECORD_PREFIX "%s", record->step);
    snprintf(temporary, sizeof temporary, "new-%s", name);
    unlinkat(folder, temporary, 0);
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out == NULL) {
        hpct_status status =
            hpct_fail(HPCT_ERR_IO, "%s/%s cannot be made: %s", path, temporary, strerror(errno));
        hpct_fd_close(fd);
        return status;
    }
    print(record, out);
    bool written = fflush(out) == 0 && fchmod(fd, 0600) == 0;
    if (fclose(out) == 0 && written && renameat(folder, temporary, folder, name) == 0)
        return HPCT_OK;
    hpct_status status =
        hpct_fail(HPCT_ERR_IO, "%s/%s cannot be written: %s", path, name, strerror(errno));
    unlinkat(folder, temporary, 0);
    return status;
}

hpct_status hpct_spec_out_record_write(const char *tmpdir, const hpct_spec_out_record *record)
{
    char *path = records_path(tmpdir);
    if (path == NULL)
        return hpct_fail_memory(strlen(tmpdir));
    int folder = open_folder(path);
    hpct_status status =
        folder >= 0 ? write_record(folder, path, record)
                    : hpct_fail(HPCT_ERR_IO, "%s cannot be opened: %s", path, strerror(errno));
    hpct_fd_close(folder);
    free(path);
    return status;
}

/* ---- what was found -------------------------------------------------------------------------- */

void hpct_spec_out_found_mark(int folder, int number)
{
    char name[32];
    snprintf(name, sizeof name, "found.%d", number);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    hpct_fd_close(fd);
}

bool hpct_spec_out_found_marked(int folder, int number)
{
    char name[32];
    snprintf(name, sizeof name, "found.%d", number);
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool take_number(const char *value, uint32_t *number)
{
    long read = 0;
    if (!hpct_number_parse(value, 0, UINT32_MAX, &read))
        return false;
    *number = (uint32_t) read;
    return true;
}

static bool take_start(const char *value, int64_t *start)
{
    long read = 0;
    bool good = hpct_number_parse(value, 0, LONG_MAX, &read);
    *start = read;
    return good;
}

static bool take_text(const char *value, char **text)
{
    free(*text);
    *text = strdup(value);
    return *text != NULL;
}

static bool take_task(const char *value, hpct_spec_out_record *r)
{
    uint32_t *tasks = realloc(r->tasks, (r->num_tasks + 1) * sizeof *tasks);
    if (tasks == NULL)
        return false;
    r->tasks = tasks;
    return take_number(value, &r->tasks[r->num_tasks++]);
}

static bool read_field(hpct_spec_out_record *r, const char *key, const char *value)
{
    uint32_t mask = 0;
    const struct {
        const char *key;
        uint32_t *number;
        char **text;
    } fields[] = {
        {"job", &r->job, NULL},
        {"array", &r->array.job, NULL},
        {"array_task", &r->array.task, NULL},
        {"node", &r->node, NULL},
        {"umask", &mask, NULL},
        {"nodes", &r->nodes, NULL},
        {"step", NULL, &r->step},
        {"cwd", NULL, &r->cwd},
        {"list", NULL, &r->list},
        {"srun", NULL, &r->srun},
        {"key", NULL, &r->key},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(key, fields[i].key) != 0)
            continue;
        bool good = fields[i].number != NULL ? take_number(value, fields[i].number)
                                             : take_text(value, fields[i].text);
        r->array.is = r->array.is || (good && strcmp(key, "array") == 0);
        r->umask = strcmp(key, "umask") == 0 ? (mode_t) mask : r->umask;
        return good && mask <= 0777 && (r->step == NULL || strchr(r->step, '/') == NULL);
    }
    if (strcmp(key, "start") == 0)
        return take_start(value, &r->start);
    return strcmp(key, "task") == 0 && take_task(value, r);
}

static bool parse(char *text, size_t size, hpct_spec_out_record *r)
{
    for (char *field = text, *next; field < text + size; field = next) {
        next = field + strlen(field) + 1;
        if (strcmp(field, "end=") == 0)
            return r->step != NULL && r->cwd != NULL && r->list != NULL;
        char *value = strchr(field, '=');
        if (value == NULL)
            return false;
        *value = '\0';
        if (!read_field(r, field, value + 1))
            return false;
    }
    return false;
}

hpct_status hpct_spec_out_record_read(int folder, const char *name, hpct_spec_out_record *out)
{
    hpct_status status = HPCT_OK;
    struct stat info;
    char *text = NULL;
    *out = (hpct_spec_out_record){0};
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MAX_BYTES) {
        status = hpct_fail(HPCT_ERR_DATA, "%s is not a record of what to copy", name);
        goto end;
    }
    text = calloc(1, (size_t) info.st_size + 1);
    if (text == NULL) {
        status = hpct_fail_memory((size_t) info.st_size);
        goto end;
    }
    ssize_t size = hpct_fd_read(fd, text, (size_t) info.st_size);
    if (size < 0 || !parse(text, (size_t) size, out))
        status = hpct_fail(HPCT_ERR_DATA, "%s is not a record of what to copy", name);
end:
    close(fd);
    free(text);
    if (status != HPCT_OK)
        hpct_spec_out_record_free(out);
    return status;
}

void hpct_spec_out_record_free(hpct_spec_out_record *record)
{
    free(record->step);
    free(record->cwd);
    free(record->list);
    free(record->tasks);
    free(record->srun);
    free(record->key);
    *record = (hpct_spec_out_record){0};
}
