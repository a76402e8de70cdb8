/* tests/peers/peers.h - what the programs that peers are compared with share: they end at the first
 * failure, and exchange files with the peer in one folder. */
#ifndef HPCT_TESTS_PEERS_PEERS_H
#define HPCT_TESTS_PEERS_PEERS_H

#include <hpctrain/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder; /* set it first */

static inline void must(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "%s\n", hpct_last_error());
    exit((int) status);
}

/* Valid until the next call. */
static inline const char *in_folder(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline FILE *open_file(const char *name, const char *mode)
{
    FILE *file = fopen(in_folder(name), mode);
    if (file == NULL) {
        perror(in_folder(name));
        exit(HPCT_ERR_IO);
    }
    return file;
}

static inline void read_next(FILE *file, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, file) != bytes) {
        fprintf(stderr, "a file in %s is too short\n", folder);
        exit(HPCT_ERR_DATA);
    }
}

static inline void write_file(const char *name, const void *from, size_t bytes)
{
    FILE *file = open_file(name, "wb");
    if (fwrite(from, 1, bytes, file) != bytes || fclose(file) != 0) {
        perror(in_folder(name));
        exit(HPCT_ERR_IO);
    }
}

#endif
