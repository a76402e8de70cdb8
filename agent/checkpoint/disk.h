/* agent/checkpoint/disk.h - atomic files, also on NFS and after power failures: written under a
 * temporary name of their folder, synced, closed, given their name, the folder synced. All paths
 * are joined from a folder and a name in it. */
#ifndef HPCT_AGENT_CHECKPOINT_DISK_H
#define HPCT_AGENT_CHECKPOINT_DISK_H

#include "agent/checkpoint/store.h"
#include "base/digest.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_CKPT_DISK_TOKEN 17          /* 16 random hexadecimal digits and the final zero */
#define HPCT_CKPT_DISK_TEMPORARY ".tmp-" /* in the names of unfinished files, before a token */

/* Random digits, different for all processes of all nodes. */
void hpct_ckpt_disk_token(char token[HPCT_CKPT_DISK_TOKEN]);

/* "FOLDER/NAME"; the caller frees *out. */
hpct_status hpct_ckpt_disk_join(char **out, const char *folder, const char *name);

typedef struct hpct_ckpt_disk_file {
    int fd;
    const char *folder; /* the caller's */
    char *temporary;    /* path; NULL: it has its name */
    hpct_digest *digest;
    uint64_t bytes;
} hpct_ckpt_disk_file;

/* Creates a file whose name begins with `name`. HPCT_ERR_IO as all below. */
hpct_status hpct_ckpt_disk_create(hpct_ckpt_disk_file *file, const char *folder, const char *name);
hpct_status hpct_ckpt_disk_write(hpct_ckpt_disk_file *file, const void *data, size_t bytes);
/* Syncs and closes it and gives it its name. Nothing is replaced: if "STEM.EXTENSION" exists, the
 * name is "STEM.2.EXTENSION" and so on. *written gets name, bytes and hash. */
hpct_status hpct_ckpt_disk_place(hpct_ckpt_disk_file *file, const char *stem, const char *extension,
                                 hpct_ckpt_store_file *written);
/* Releases it, and removes it unless it has its name. */
void hpct_ckpt_disk_discard(hpct_ckpt_disk_file *file);

/* Gives a closed file the name `to` if nothing has it, which is atomic between nodes. 1: done; 0:
 * something has it; -1: errno. */
int hpct_ckpt_disk_link(const char *from, const char *to);

/* Text as a whole file, replacing what has the name. */
hpct_status hpct_ckpt_disk_put(const char *folder, const char *name, const char *text);

/* Removes a file; one that does not exist is not an error. */
hpct_status hpct_ckpt_disk_remove(const char *folder, const char *name);

/* Calls `each` with the names in a folder until it does not return HPCT_OK. HPCT_ERR_NO_INPUT if
 * the folder cannot be opened. */
hpct_status hpct_ckpt_disk_each(const char *folder,
                                hpct_status (*each)(void *context, const char *folder,
                                                    const char *name),
                                void *context);

#endif
