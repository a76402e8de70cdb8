/* Tuning results on disk. A file is read completely or not at all; it is written under a temporary
 * name and renamed, so that readers never see a partial file. */
#include "nn/backend/cuda/choices.h"

#include "base/fnv.h"
#include "base/status.h"
#include "nn/graph/op.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (8 << 20) /* bytes; larger files are ignored */

typedef struct choice {
    char *key, *value;
} choice;

struct hpct_cuda_choices {
    char *path, *identity;
    choice *kept;
    size_t count, room;
    bool changed; /* since the last write */
};

bool hpct_cuda_choices_path(char *path, size_t size, const char *identity)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t h = hpct_fnv(HPCT_FNV_START, identity, strlen(identity));
    int length = -1;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(path, size, "%s/hpc-train/choices-%016" PRIx64, cache, h);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path, size, "%s/.cache/hpc-train/choices-%016" PRIx64, home, h);
    bool fits = length > 0 && (size_t) length < size;
    if (!fits && size > 0)
        path[0] = '\0';
    return fits;
}

static choice *find(const hpct_cuda_choices *choices, const char *key)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->kept[i].key, key) == 0)
            return &choices->kept[i];
    }
    return NULL;
}

const char *hpct_cuda_choices_find(const hpct_cuda_choices *choices, const char *key)
{
    const choice *found = find(choices, key);
    return found == NULL ? NULL : found->value;
}

static hpct_status remember(hpct_cuda_choices *choices, const char *key, const char *value,
                            bool replace)
{
    choice *found = find(choices, key);
    if (found != NULL && !replace)
        return HPCT_OK;
    char *new_value = strdup(value), *new_key = NULL;
    if (new_value == NULL)
        return hpct_fail_memory(strlen(value) + 1);
    if (found != NULL) {
        free(found->value);
        found->value = new_value;
        return HPCT_OK;
    }
    if (choices->count == choices->room) {
        size_t room = 2 * choices->room + 32;
        choice *larger = realloc(choices->kept, room * sizeof *larger);
        if (larger == NULL)
            goto fail;
        choices->kept = larger;
        choices->room = room;
    }
    new_key = strdup(key);
    if (new_key == NULL)
        goto fail;
    choices->kept[choices->count++] = (choice){.key = new_key, .value = new_value};
    return HPCT_OK;
fail:
    free(new_value);
    return hpct_fail_memory(0);
}

/* The file's text, null-terminated; the caller frees it. NULL if it cannot be read. */
static char *read_text(const char *path, size_t *size)
{
    FILE *file = path[0] == '\0' ? NULL : fopen(path, "rbe");
    struct stat about;
    char *text = NULL;
    if (file != NULL && fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_size <= FILE_MOST)
        text = malloc((size_t) about.st_size + 1);
    if (text != NULL) {
        *size = fread(text, 1, (size_t) about.st_size, file);
        text[*size] = '\0';
    }
    if (file != NULL)
        fclose(file);
    return text;
}

/* Offset of the last line, which has the checksum of all before it; 0: invalid. */
static size_t good_size(const char *text, size_t size)
{
    static const char form[] = "end 0123456789abcdef\n";
    const size_t last = sizeof form - 1;
    char expected[sizeof form];
    if (size <= last || strlen(text) != size)
        return 0;
    snprintf(expected, sizeof expected, "end %016" PRIx64 "\n",
             hpct_fnv(HPCT_FNV_START, text, size - last));
    return memcmp(text + size - last, expected, last) == 0 ? size - last : 0;
}

/* Adds keys of the file that are not in memory. */
static hpct_status merge_file(hpct_cuda_choices *choices)
{
    size_t size = 0;
    char *text = read_text(choices->path, &size), *rest = NULL;
    hpct_status status = HPCT_OK;
    size_t good = text == NULL ? 0 : good_size(text, size);
    if (good > 0) {
        text[good] = '\0';
        char *line = strtok_r(text, "\n", &rest);
        bool ours = line != NULL && strcmp(line, choices->identity) == 0;
        for (line = strtok_r(NULL, "\n", &rest); ours && line != NULL && status == HPCT_OK;
             line = strtok_r(NULL, "\n", &rest)) {
            char *tab = strchr(line, '\t');
            if (tab == NULL)
                continue;
            *tab = '\0';
            status = remember(choices, line, tab + 1, false);
        }
    }
    free(text);
    return status;
}

hpct_status hpct_cuda_choices_open(hpct_cuda_choices **out, const char *path, const char *identity)
{
    hpct_cuda_choices *choices = *out = calloc(1, sizeof *choices);
    if (choices == NULL)
        return hpct_fail_memory(sizeof *choices);
    choices->path = strdup(path);
    choices->identity = strdup(identity);
    hpct_status status = choices->path == NULL || choices->identity == NULL
                             ? hpct_fail_memory(strlen(path) + strlen(identity))
                             : merge_file(choices);
    if (status != HPCT_OK) {
        hpct_cuda_choices_close(choices);
        *out = NULL;
    }
    return status;
}

/* Creates the file's parent folders. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700); /* errors are detected when the file is created */
        *slash = '/';
    }
}

/* All choices in the file's format; the caller frees it. */
static char *make_text(const hpct_cuda_choices *choices)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        return NULL;
    fprintf(stream, "%s\n", choices->identity);
    for (size_t i = 0; i < choices->count; i++)
        fprintf(stream, "%s\t%s\n", choices->kept[i].key, choices->kept[i].value);
    bool good = fflush(stream) == 0;
    if (good)
        fprintf(stream, "end %016" PRIx64 "\n", hpct_fnv(HPCT_FNV_START, text, size));
    if (fclose(stream) == 0 && good)
        return text;
    free(text);
    return NULL;
}

static hpct_status write_file(const hpct_cuda_choices *choices)
{
    char other[PATH_MAX];
    int length = snprintf(other, sizeof other, "%s.XXXXXX", choices->path);
    if (length < 0 || (size_t) length >= sizeof other)
        return hpct_fail(HPCT_ERR_IO, "%s: the path is too long", choices->path);
    char *text = make_text(choices);
    if (text == NULL)
        return hpct_fail_memory(0);
    make_folders(choices->path);
    int fd = mkstemp(other);
    size_t size = strlen(text), done = 0;
    bool good = fd >= 0;
    while (good && done < size) {
        ssize_t written = write(fd, text + done, size - done);
        good = written > 0 || (written < 0 && errno == EINTR);
        done += written > 0 ? (size_t) written : 0;
    }
    good = good && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        error = errno;
        good = false;
    }
    if (good && rename(other, choices->path) != 0) {
        error = errno;
        good = false;
    }
    if (fd >= 0 && !good)
        unlink(other);
    free(text);
    return good ? HPCT_OK : hpct_fail(HPCT_ERR_IO, "%s: %s", choices->path, strerror(error));
}

hpct_status hpct_cuda_choices_keep(hpct_cuda_choices *choices, const char *key, const char *value)
{
    if (strpbrk(key, "\t\n") != NULL || strpbrk(value, "\t\n") != NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "choices: \"%s\" has a tab or a newline", key);
    choices->changed = true;
    return remember(choices, key, value, true);
}

hpct_status hpct_cuda_choices_write(hpct_cuda_choices *choices)
{
    if (!choices->changed || choices->path[0] == '\0')
        return HPCT_OK;
    choices->changed = false;
    HPCT_TRY(merge_file(choices));
    return write_file(choices);
}

void hpct_cuda_choices_close(hpct_cuda_choices *choices)
{
    if (choices == NULL)
        return;
    for (size_t i = 0; i < choices->count; i++) {
        free(choices->kept[i].key);
        free(choices->kept[i].value);
    }
    free(choices->kept);
    free(choices->path);
    free(choices->identity);
    free(choices);
}
