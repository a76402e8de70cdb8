/* gzip files, by libdeflate. The only file that uses it. */
#include "config.h"

#include "agent/data/gunzip.h"

#ifdef HAVE_LIBDEFLATE

#include <libdeflate.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALLEST 18        /* header and trailer */
#define LARGEST_RATIO 1032 /* maximal compression ratio of deflate */

static bool read_at(int fd, uint8_t *out, size_t bytes)
{
    for (size_t filled = 0; filled < bytes;) {
        ssize_t got = pread(fd, out + filled, bytes - filled, (off_t) filled);
        if (got <= 0)
            return false;
        filled += (size_t) got;
    }
    return true;
}

/* Returns the whole file, or NULL. */
static uint8_t *load(int fd, size_t *bytes)
{
    struct stat info;
    uint8_t magic[2];
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < SMALLEST ||
        !read_at(fd, magic, sizeof magic) || magic[0] != 0x1f || magic[1] != 0x8b)
        return NULL;
    uint8_t *file = malloc((size_t) info.st_size);
    if (file != NULL && !read_at(fd, file, (size_t) info.st_size)) {
        free(file);
        return NULL;
    }
    *bytes = (size_t) info.st_size;
    return file;
}

/* Returns `num` bytes inflated from the file's only member, or NULL. */
static uint8_t *inflate_all(const uint8_t *file, size_t bytes, size_t num)
{
    size_t used = 0;
    uint8_t *content = malloc(num + 1);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    if (content == NULL || decompressor == NULL ||
        libdeflate_gzip_decompress_ex(decompressor, file, bytes, content, num, &used, NULL) !=
            LIBDEFLATE_SUCCESS ||
        used != bytes) {
        free(content);
        content = NULL;
    }
    libdeflate_free_decompressor(decompressor);
    return content;
}

uint8_t *hpct_data_gunzip(int fd, size_t *num)
{
    size_t bytes;
    uint8_t *content = NULL, *file = load(fd, &bytes);
    if (file == NULL)
        return NULL;
    const uint8_t *end = file + bytes; /* the last four bytes: the size */
    *num =
        (size_t) end[-4] | (size_t) end[-3] << 8 | (size_t) end[-2] << 16 | (size_t) end[-1] << 24;
    if (*num / LARGEST_RATIO <= bytes)
        content = inflate_all(file, bytes, *num);
    free(file);
    return content;
}

#else

uint8_t *hpct_data_gunzip(int fd, size_t *num)
{
    (void) fd;
    (void) num;
    return NULL;
}

#endif
