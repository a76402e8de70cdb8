/* Names of pictures and folders, a line each: what is a split, what a class. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/data/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int split = HPCT_TRAIN; split <= HPCT_VALIDATION; split++) {
        hpct_listing listing = {0};
        for (size_t at = 0, end; at < size; at = end + 1) {
            end = at;
            while (end < size && data[end] != '\n' && data[end] != '\0')
                end++;
            char *name = strndup((const char *) data + at, end - at);
            if (name == NULL)
                abort();
            if (name[0] != '/' && strstr(name, "//") == NULL) /* as no archive's names are taken */
                hpct_listing_add(&listing, name, 0, 0);
            free(name);
        }
        if (hpct_listing_choose(&listing, (hpct_split) split, "input") == HPCT_OK) {
            for (size_t i = 0; i < listing.count; i++) {
                const hpct_entry *entry = &listing.entries[i];
                const char *class_name = entry->name + entry->class_name;
                if (entry->label < 0 || entry->label >= listing.num_classes)
                    abort();
                const char *text = listing.classes[entry->label];
                size_t length = strcspn(text, "\\"); /* \xf1, say, is what is no UTF-8 */
                if (text[0] == '\0' || strncmp(class_name, text, length) != 0 ||
                    (text[length] == '\0' && class_name[length] != '/'))
                    abort();
            }
        }
        hpct_listing_free(&listing);
    }
    return 0;
}
