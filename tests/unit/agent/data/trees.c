/* Folders and archives of small pictures for the tests of data sets. */
#include "tests/unit/agent/data/trees.h"

#include "config.h"
#include "tests/unit/agent/data/pictures.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

uint8_t tree_seed[65536];

void tree_needs_pictures(void)
{
#if !defined(HAVE_LIBJPEG) || !defined(HAVE_LIBPNG)
    skip();
#endif
}

/* Pictures of a fresh folder. */
const char *tree_of(const char *const *names)
{
    tree_needs_pictures();
    const char *folder = pictures_folder();
    size_t size = pictures_seed("picture/png", tree_seed, sizeof tree_seed);
    for (; *names != NULL; names++)
        pictures_write(folder, *names, tree_seed, size, false);
    return folder;
}

void tree_put(const char *folder, const char *name, const char *from)
{
    size_t size = pictures_seed(from, tree_seed, sizeof tree_seed);
    pictures_write(folder, name, tree_seed, size, false);
}

char *tree_below(const char *folder, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void tree_empty_folder(const char *folder, const char *name)
{
    assert_int_equal(mkdir(tree_below(folder, name), 0755), 0);
}

hpct_dataset *tree_opened(const char *path, hpct_split split)
{
    hpct_dataset *dataset = NULL;
    if (hpct_dataset_open(&dataset, path, split) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    return dataset;
}

/* The split has so many pictures, of these classes (joined by ','), from PATH/FROM, and these words
 * in its notes ("": none). */
void tree_is_read(const char *path, hpct_split split, size_t pictures, const char *classes,
                  const char *from, const char *notes)
{
    char have[4096] = "";
    hpct_dataset *dataset = tree_opened(path, split);
    assert_int_equal(hpct_dataset_size(dataset), pictures);
    for (int i = 0; i < dataset->num_classes; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i > 0 ? "," : "",
                 dataset->classes[i]);
    assert_string_equal(have, classes);
    const char *source = hpct_dataset_source(dataset);
    assert_true(strncmp(source, path, strlen(path)) == 0);
    assert_string_equal(source + strlen(path) + (from[0] != '\0'), from);
    if (notes[0] == '\0' ? dataset->notes != NULL
                         : dataset->notes == NULL || strstr(dataset->notes, notes) == NULL)
        fail_msg("the notes are '%s', not '%s'", dataset->notes, notes);
    hpct_dataset_free(dataset);
}

void tree_refuses(const char *path, hpct_split split, hpct_status status, const char *file,
                  const char *why)
{
    hpct_dataset *dataset = NULL;
    assert_int_equal(hpct_dataset_open(&dataset, path, split), status);
    if (strstr(hpct_last_error(), file) == NULL || strstr(hpct_last_error(), why) == NULL)
        fail_msg("'%s' should name '%s' and say '%s'", hpct_last_error(), file, why);
}

void tree_is_refused(const char *path, hpct_split split, hpct_status status, const char *why)
{
    tree_refuses(path, split, status, "", why);
}

void tree_names_wrong(const char *path, const char *file, const char *why)
{
    tree_refuses(path, HPCT_TRAIN, HPCT_ERR_DATA, file, why);
}

void tree_is_wrong(const char *path, const char *why)
{
    tree_names_wrong(path, "", why);
}

void tree_has_labels(const char *path, hpct_split split, size_t count, const int32_t *labels)
{
    hpct_dataset *dataset = tree_opened(path, split);
    assert_int_equal(hpct_dataset_size(dataset), count);
    assert_memory_equal(dataset->labels, labels, count * sizeof *labels);
    hpct_dataset_free(dataset);
}

/* All that is in `from`, as it is, in an archive below `folder`. */
void tree_pack(const char *archive, const char *folder, const char *name)
{
    char command[16384];
    snprintf(command, sizeof command, "tar -C %s -czPf %s %s", folder, archive, name);
    assert_int_equal(system(command), 0);
}

/* The first digit of a name, else "1". */
static const char *digit(const char *name)
{
    const char *first = name + strcspn(name, "0123456789");
    return *first != '\0' ? first : "1";
}

/* TAR/NAME: one picture for each name; a .cls has the first digit of its name. */
size_t tree_tar(uint8_t *out, size_t room, const char *const *names)
{
    tree_needs_pictures();
    size_t size = pictures_seed("picture/png", tree_seed, sizeof tree_seed), used = 0;
    struct archive *archive = archive_write_new();
    archive_write_set_format_ustar(archive);
    archive_write_set_bytes_in_last_block(archive, 512);
    assert_int_equal(archive_write_open_memory(archive, out, room, &used), ARCHIVE_OK);
    for (; *names != NULL; names++) {
        bool label = strcasecmp(strrchr(*names, '.'), ".cls") == 0;
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, *names);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, label ? 1 : (la_int64_t) size);
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        archive_write_data(archive, label ? (const void *) digit(*names) : tree_seed,
                           label ? 1 : size);
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
    return used;
}

void tree_put_tar(const char *folder, const char *name, const char *const *names)
{
    static uint8_t bytes[65536];
    pictures_write(folder, name, bytes, tree_tar(bytes, sizeof bytes, names), false);
}
