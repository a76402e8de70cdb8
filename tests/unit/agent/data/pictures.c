/* Data sets for tests. */
#include "tests/unit/agent/data/pictures.h"

#include "tests/unit/unit.h"

#include <archive.h>
#include <archive_entry.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char *folders[128];
static int num_folders;

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void) info;
    (void) kind;
    (void) where;
    return remove(path);
}

static void remove_folders(void)
{
    for (int i = 0; i < num_folders; i++) {
        nftw(folders[i], remove_one, 8, FTW_DEPTH | FTW_PHYS);
        free(folders[i]);
    }
    num_folders = 0;
}

char *pictures_folder(void)
{
    char path[] = "/tmp/hpct-test-XXXXXX";
    assert_true(num_folders < 128);
    assert_non_null(mkdtemp(path));
    if (num_folders == 0)
        atexit(remove_folders);
    folders[num_folders] = strdup(path);
    return folders[num_folders++];
}

void pictures_write(const char *folder, const char *name, const void *bytes, size_t size, bool gz)
{
    char path[4096];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%s/%.*s", folder, (int) (slash - name), name);
        mkdir(path, 0777);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    gzFile file = gzopen(path, gz ? "wb" : "wbT");
    assert_non_null(file);
    assert_int_equal(size == 0 ? 0 : gzwrite(file, bytes, (unsigned) size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

size_t pictures_seed(const char *name, uint8_t *out, size_t room)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", top != NULL ? top : ".", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(out, 1, room, file);
    assert_true(size < room);
    fclose(file);
    return size;
}

static size_t put_big_endian(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t) (value >> (24 - 8 * i));
    return 4;
}

size_t pictures_idx(uint8_t *out, uint32_t magic, int rank, const uint32_t *sizes,
                    const uint8_t *elements, size_t count)
{
    size_t length = put_big_endian(out, magic);
    for (int i = 0; i < rank; i++)
        length += put_big_endian(out + length, sizes[i]);
    memcpy(out + length, elements, count);
    return length + count;
}

static void write_split(const char *folder, const char *prefix, int count, int classes, bool gz)
{
    size_t elements = (size_t) count * 784;
    uint8_t *pixels = calloc(elements, 1), *labels = malloc((size_t) count);
    uint8_t *file = malloc(elements + 64);
    char name[64];
    const char *suffix = gz ? ".gz" : "";
    for (int i = 0; i < count; i++) {
        labels[i] = (uint8_t) (i % classes);
        memset(pixels + (size_t) i * 784 + (size_t) (2 * labels[i] + 2) * 28, 200 + i % 50, 28);
        pixels[(size_t) i * 784 + (size_t) (i * 31 % 784)] = 99;
    }
    size_t size =
        pictures_idx(file, 0x803, 3, (uint32_t[]){(uint32_t) count, 28, 28}, pixels, elements);
    snprintf(name, sizeof name, "%s-images-idx3-ubyte%s", prefix, suffix);
    pictures_write(folder, name, file, size, gz);
    size = pictures_idx(file, 0x801, 1, (uint32_t[]){(uint32_t) count}, labels, (size_t) count);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte%s", prefix, suffix);
    pictures_write(folder, name, file, size, gz);
    free(pixels);
    free(labels);
    free(file);
}

void pictures_mnist_like(const char *folder, int train, int test, int classes, bool gz)
{
    write_split(folder, "train", train, classes, gz);
    write_split(folder, "t10k", test, classes, gz);
}

size_t pictures_npy(uint8_t *out, const char *text, const void *elements, size_t size)
{
    size_t length = strlen(text);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (uint8_t) (length & 0xff);
    out[9] = (uint8_t) (length >> 8);
    memcpy(out + 10, text, length);
    memcpy(out + 10 + length, elements, size);
    return 10 + length + size;
}

void pictures_npz(const char *path, const char *const *names, const uint8_t *const *members,
                  const size_t *sizes, int count)
{
    struct archive *archive = archive_write_new();
    archive_write_set_format_zip(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    for (int i = 0; i < count; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, names[i]);
        archive_entry_set_size(entry, (la_int64_t) sizes[i]);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(archive, members[i], sizes[i]), sizes[i]);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
}
