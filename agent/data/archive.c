/* Opens archives by libarchive. */
#include "agent/data/archive.h"

#include "base/status.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool hpct_data_name_ends(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcasecmp(name + length - tail, end) == 0;
}

size_t hpct_data_archive_extension(const char *name)
{
    static const char *const ends[] = {".tar",     ".tar.gz", ".tgz",    ".tar.bz2",
                                       ".tbz",     ".tbz2",   ".tar.xz", ".txz",
                                       ".tar.zst", ".tzst",   ".zip"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (hpct_data_name_ends(name, ends[i]))
            return strlen(ends[i]);
    }
    return 0;
}

bool hpct_data_is_archive_name(const char *name)
{
    return hpct_data_archive_extension(name) > 0;
}

struct archive *hpct_data_archive_reader(void)
{
    struct archive *archive = archive_read_new();
    if (archive == NULL)
        return NULL;
    archive_read_support_format_tar(archive);
    archive_read_set_format_option(archive, "tar", "read_concatenated_archives", "1");
    archive_read_support_format_zip_seekable(archive); /* the other accepts truncated zips */
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    return archive;
}

hpct_status hpct_data_archive_failed(struct archive *archive, const char *path)
{
    const char *why = archive_error_string(archive);
    return hpct_fail(HPCT_ERR_DATA, "%s: it is damaged: %s", path,
                     why != NULL ? why : "not an archive");
}

hpct_status hpct_data_archive_open(struct archive *archive, const char *path)
{
    if (archive == NULL)
        return hpct_fail_memory(0);
    if (archive_read_open_filename(archive, path, 1 << 18) == ARCHIVE_OK)
        return HPCT_OK;
    return access(path, R_OK) != 0 ? hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", path, strerror(errno))
                                   : hpct_data_archive_failed(archive, path);
}
