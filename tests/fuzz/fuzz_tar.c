/* Tar archives of pictures, read from memory, and the classes in their names. */
#include "agent/data/archive.h"
#include "agent/data/tar.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_data_tar tar = {.memory = 1 << 22};
    volatile int sum = 0;
    struct archive *archive = hpct_data_archive_reader();
    must(archive != NULL);
    if (archive_read_open_memory(archive, data, size) == ARCHIVE_OK &&
        hpct_data_tar_read(&tar, archive, "input") == HPCT_OK &&
        (tar.web_dataset ||
         hpct_data_listing_choose(&tar.pictures, (hpct_split) (size % 3), "input") == HPCT_OK)) {
        for (size_t i = 0; i < tar.pictures.count; i++) {
            const hpct_data_entry *entry = &tar.pictures.entries[i];
            if (entry->label < 0 || (!tar.web_dataset && entry->label >= tar.pictures.num_classes))
                abort();
            for (size_t j = 0; j < entry->bytes; j++)
                sum += tar.bytes[entry->at + j];
        }
    }
    hpct_data_tar_free(&tar);
    archive_read_free(archive);
    (void) sum; /* each byte was read */
    return 0;
}
