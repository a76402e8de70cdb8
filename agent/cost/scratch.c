/* Writes in pieces, each synced: their median is neither the rate of the page cache nor spoilt by
 * one stall. */
#include "agent/cost/scratch.h"

#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/sort.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t) 4 << 20)
#define MOST_PIECES 16
#define MOST_SECONDS 1.0
#define PAUSE_NANOSECONDS 10000000

const char *hpct_cost_scratch_folder(void)
{
    static const char *const names[] = {"SLURM_TMPDIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *folder = getenv(names[i]);
        if (folder != NULL && *folder != '\0')
            return folder;
    }
    return "/tmp";
}

/* A file that is gone when it is closed. */
static int open_unnamed(const char *folder)
{
    char path[4200];
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if (snprintf(path, sizeof path, "%s/.hpc-train-check-XXXXXX", folder) >= (int) sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Seconds of a piece. */
static hpct_status write_piece(int fd, const char *piece, const char *folder, double *seconds)
{
    double began = hpct_process_clock();
    HPCT_TRY(hpct_file_write_all(fd, piece, PIECE, folder));
    if (fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) /* which say: nothing to sync */
        return hpct_file_failed("syncing a file in it", folder);
    hpct_count_progress();
    *seconds = hpct_process_clock() - began;
    return HPCT_OK;
}

/* The median of the pieces. Pauses between them: in memory (tmpfs) all would take some
 * milliseconds, in which another process on the core counts for more than the folder. */
static hpct_status write_pieces(int fd, const char *piece, const char *folder, double *seconds)
{
    double all[MOST_PIECES], began = hpct_process_clock();
    int num = 0;
    while (num < MOST_PIECES && hpct_process_clock() - began < MOST_SECONDS) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
        HPCT_TRY(write_piece(fd, piece, folder, &all[num++]));
    }
    hpct_sort_numbers(all, (size_t) num);
    *seconds = all[num / 2];
    return HPCT_OK;
}

double hpct_cost_scratch_measure(const char *folder, char *why, size_t bytes)
{
    double seconds = 0;
    char *piece = malloc(PIECE);
    int fd = open_unnamed(folder);
    hpct_status status = HPCT_OK;
    why[0] = '\0';
    if (fd < 0)
        status = hpct_file_failed("making a file in it", folder);
    else if (piece == NULL)
        status = hpct_fail_memory(PIECE);
    if (status == HPCT_OK) {
        memset(piece, 0x5a, PIECE);
        status = write_pieces(fd, piece, folder, &seconds);
    }
    if (status != HPCT_OK)
        snprintf(why, bytes, "%s", hpct_last_error());
    if (fd >= 0)
        close(fd);
    free(piece);
    return status == HPCT_OK ? (double) PIECE / seconds : 0;
}
