/* hpct_model_save_keras: the .keras archive of Keras 3 (keras/src/saving/saving_lib.py), a zip of
 * metadata.json, config.json and model.weights.h5. The parts are written as files of their own
 * first: HDF5 needs one. */
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <hpctrain/export.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG "config.json"
#define WEIGHTS "model.weights.h5"
#define METADATA "metadata.json"
#define METADATA_TEXT "{\"keras_version\": \"3.0.0\"}\n"
#define BLOCK (1 << 20)

typedef struct packing {
    const char *path;      /* of the archive, for messages */
    char folder[PATH_MAX]; /* with the parts */
} packing;

static hpct_status failed(const packing *p, struct archive *archive)
{
    const char *why = archive_error_string(archive);
    return hpct_fail(HPCT_ERR_IO, "%s: writing failed: %s", p->path, why != NULL ? why : "zip");
}

/* Without a date, so that the same model gives the same file. */
static hpct_status begin_entry(const packing *p, struct archive *archive, const char *name,
                               int64_t bytes)
{
    struct archive_entry *entry = archive_entry_new();
    if (entry == NULL)
        return hpct_fail_memory(0);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, bytes);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    int code = archive_write_header(archive, entry);
    archive_entry_free(entry);
    return code == ARCHIVE_OK ? HPCT_OK : failed(p, archive);
}

static hpct_status write_data(const packing *p, struct archive *archive, const void *data,
                              size_t size)
{
    return archive_write_data(archive, data, size) == (la_ssize_t) size ? HPCT_OK
                                                                        : failed(p, archive);
}

static hpct_status copy(const packing *p, struct archive *archive, int fd, int64_t bytes,
                        const char *from)
{
    char *block = malloc(BLOCK);
    hpct_status status = block != NULL ? HPCT_OK : hpct_fail_memory(BLOCK);
    for (int64_t done = 0; done < bytes && status == HPCT_OK;) {
        size_t size = bytes - done < BLOCK ? (size_t) (bytes - done) : BLOCK;
        status = hpct_file_read_all(fd, block, size, done, from);
        if (status == HPCT_OK)
            status = write_data(p, archive, block, size);
        done += (int64_t) size;
    }
    free(block);
    return status;
}

static hpct_status add_file(const packing *p, struct archive *archive, const char *name)
{
    char from[PATH_MAX + 32];
    struct stat info;
    snprintf(from, sizeof from, "%s/%s", p->folder, name);
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hpct_file_failed("reading", from);
    hpct_status status = fstat(fd, &info) == 0 ? HPCT_OK : hpct_file_failed("reading", from);
    if (status == HPCT_OK)
        status = begin_entry(p, archive, name, info.st_size);
    if (status == HPCT_OK)
        status = copy(p, archive, fd, info.st_size, from);
    close(fd);
    return status;
}

/* Stored, not compressed: weights hardly become smaller. */
static hpct_status pack(const packing *p, struct archive *archive, int fd)
{
    if (archive_write_set_format_zip(archive) != ARCHIVE_OK ||
        archive_write_zip_set_compression_store(archive) != ARCHIVE_OK ||
        archive_write_open_fd(archive, fd) != ARCHIVE_OK)
        return failed(p, archive);
    HPCT_TRY(begin_entry(p, archive, METADATA, strlen(METADATA_TEXT)));
    HPCT_TRY(write_data(p, archive, METADATA_TEXT, strlen(METADATA_TEXT)));
    HPCT_TRY(add_file(p, archive, CONFIG));
    HPCT_TRY(add_file(p, archive, WEIGHTS));
    return archive_write_close(archive) == ARCHIVE_OK ? HPCT_OK : failed(p, archive);
}

static hpct_status write_archive(void *argument, int fd)
{
    struct archive *archive = archive_write_new();
    if (archive == NULL)
        return hpct_fail_memory(0);
    hpct_status status = pack(argument, archive, fd);
    archive_write_free(archive);
    return status;
}

static hpct_status make_folder(packing *p)
{
    const char *base = getenv("TMPDIR");
    int length = snprintf(p->folder, sizeof p->folder, "%s/hpc-train-keras-XXXXXX",
                          base != NULL && *base != '\0' ? base : "/tmp");
    if (length >= (int) sizeof p->folder)
        return hpct_fail(HPCT_ERR_IO, "TMPDIR is too long");
    if (mkdtemp(p->folder) != NULL)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_IO, "%s cannot be made: %s (TMPDIR sets where)", p->folder,
                     strerror(errno));
}

static hpct_status write_parts(const packing *p, const hpct_model *model)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", p->folder, CONFIG);
    HPCT_TRY(hpct_model_save_json(model, path));
    snprintf(path, sizeof path, "%s/%s", p->folder, WEIGHTS);
    return hpct_model_save_weights(model, path);
}

static void remove_parts(const packing *p)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", p->folder, CONFIG);
    unlink(path);
    snprintf(path, sizeof path, "%s/%s", p->folder, WEIGHTS);
    unlink(path);
    rmdir(p->folder);
}

hpct_status hpct_model_save_keras(const hpct_model *model, const char *path)
{
    packing p = {.path = path};
    HPCT_TRY(make_folder(&p));
    hpct_status status = write_parts(&p, model);
    if (status == HPCT_OK)
        status = hpct_output_replace(path, write_archive, &p);
    remove_parts(&p);
    return status;
}
