/* agent/data/tar.h - reads pictures from a tar archive that libarchive has open. */
#ifndef HPCT_AGENT_DATA_TAR_H
#define HPCT_AGENT_DATA_TAR_H

#include "agent/data/listing.h"

#include <archive.h>

/* Pictures of one or more archives that are read one after the other. */
typedef struct hpct_data_tar {
    hpct_data_listing pictures;
    uint8_t *bytes;
    size_t num_bytes, room;
    size_t memory;      /* limit in bytes */
    bool web_dataset;   /* there was a .cls: then every picture needs one */
    bool described;     /* there was a .json or .txt of a picture */
    size_t labelled;    /* pictures[0 … labelled) have labels */
    bool loose;         /* the last label's name agrees with its picture up to the first dot only */
    size_t links;       /* hard and symbolic links, which are ignored … */
    char *link;         /* … and the name of the first */
    const char *prefix; /* prepended to all names, as a folder: "train/"; NULL: none */
    bool names_only;    /* list pictures without reading them */
} hpct_data_tar;

/* Adds the contents of the archive: KEY.jpg with KEY.cls (WebDataset), or CLASS/x.jpg; other files
 * are ignored. Concatenated archives are read to the last; one without its end is damaged. `path`
 * is for messages, such as "PATH/MEMBER: …". HPCT_ERR_DATA for a damaged archive, or a WebDataset
 * sample without picture or class; HPCT_ERR_CONFIG if it exceeds the memory. */
hpct_status hpct_data_tar_read(hpct_data_tar *tar, struct archive *archive, const char *path);
/* The same of a file. */
hpct_status hpct_data_tar_read_file(hpct_data_tar *tar, const char *path);
void hpct_data_tar_free(hpct_data_tar *tar);

#endif
