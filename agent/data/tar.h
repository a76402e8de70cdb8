/* agent/data/tar.h - pictures in a tar archive that libarchive has open. */
#ifndef HPCT_DATA_TAR_H
#define HPCT_DATA_TAR_H

#include "agent/data/listing.h"

#include <archive.h>

/* Pictures of one or more archives, as they are read one after the other. */
typedef struct hpct_tar {
    hpct_listing pictures;
    uint8_t *bytes;
    size_t num_bytes, room;
    size_t memory;      /* more than this is refused */
    bool web_dataset;   /* a .cls was seen: then every picture needs one */
    size_t labelled;    /* pictures[0 … labelled) have their label */
    const char *prefix; /* put before all names, as a folder: "train/"; NULL: none */
    bool names_only;    /* pictures are listed, but not read */
} hpct_tar;

/* Adds what is in the archive: KEY.jpg with KEY.cls (WebDataset), or CLASS/x.jpg; files of other
 * names are passed over. Archives joined into one are read to the last; one without its end is
 * damaged. `path` is for messages, which read "PATH/MEMBER: …". HPCT_ERR_DATA for a
 * damaged archive, or a WebDataset sample without picture or class; HPCT_ERR_CONFIG when it does
 * not fit the memory. */
hpct_status hpct_tar_read(hpct_tar *tar, struct archive *archive, const char *path);
void hpct_tar_free(hpct_tar *tar);

/* A reader for what can be read, to be opened by the caller; NULL when out of memory. */
struct archive *hpct_tar_new_reader(void);

/* Whether a file's name ends like that of an archive that it reads. */
bool hpct_is_tar_name(const char *name);

#endif
