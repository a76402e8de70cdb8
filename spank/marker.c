/* .out-JOB        the user's uid, gid and supplementary groups
 * .step-JOB-STEP  empty
 * Only root can create, read or remove them: the parent is root's, and they have mode 0600. */
#include <config.h>

#include "spank/marker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/status.h"
#include "spank/folder.h"
#include "spank/parent.h"

#define OUT ".out-"
#define STEP ".step-"
#define MAX_GROUPS 65536 /* NGROUPS_MAX */

static hpct_status fail_write(const char *parent, const char *name)
{
    return hpct_fail(HPCT_ERR_IO, "%s/%s cannot be written: %s", parent, name, strerror(errno));
}

/* ---- results --------------------------------------------------------------------------------- */

static bool print(FILE *file, const hpct_spank_person *person)
{
    fprintf(file, "%" PRIu32 " %" PRIu32, (uint32_t) person->uid, (uint32_t) person->gid);
    for (size_t i = 0; i < person->num_groups; i++)
        fprintf(file, " %" PRIu32, (uint32_t) person->groups[i]);
    fprintf(file, " end\n");
    return fflush(file) == 0 && ferror(file) == 0;
}

hpct_status hpct_spank_marker_out(const char *parent, uint32_t job, const hpct_spank_person *person)
{
    char name[32], fresh[64];
    int at = -1;
    HPCT_TRY(hpct_spank_parent_open(parent, true, &at));
    hpct_status status = HPCT_OK;
    snprintf(name, sizeof name, OUT "%" PRIu32, job);
    snprintf(fresh, sizeof fresh, OUT "%" PRIu32 "-%d", job, (int) getpid());
    int fd = openat(at, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = file != NULL && print(file, person);
    if (file != NULL)
        written = fclose(file) == 0 && written;
    else
        hpct_fd_close(fd);
    if (!written || renameat(at, fresh, at, name) != 0) {
        status = fail_write(parent, name);
        unlinkat(at, fresh, 0);
    }
    close(at);
    return status;
}

static bool read_numbers(FILE *file, hpct_spank_person *person)
{
    uint32_t uid = 0, gid = 0;
    char word[16];
    if (fscanf(file, "%" SCNu32 " %" SCNu32, &uid, &gid) != 2)
        return false;
    *person =
        (hpct_spank_person){.uid = uid, .gid = gid, .groups = calloc(MAX_GROUPS, sizeof(gid_t))};
    while (person->groups != NULL && fscanf(file, " %15s", word) == 1) {
        long group = 0;
        if (strcmp(word, "end") == 0)
            return true;
        if (person->num_groups == MAX_GROUPS || !hpct_number_parse(word, 0, UINT32_MAX, &group))
            break;
        person->groups[person->num_groups++] = (gid_t) group;
    }
    hpct_spank_person_free(person);
    return false;
}

bool hpct_spank_marker_find_out(const char *parent, uint32_t job, hpct_spank_person *person)
{
    char name[32];
    int at = -1;
    if (hpct_spank_parent_open(parent, false, &at) != HPCT_OK || at < 0)
        return false;
    snprintf(name, sizeof name, OUT "%" PRIu32, job);
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    close(at);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    bool found = file != NULL && read_numbers(file, person);
    if (file != NULL)
        fclose(file);
    else
        hpct_fd_close(fd);
    return found;
}

void hpct_spank_person_free(hpct_spank_person *person)
{
    free(person->groups);
    *person = (hpct_spank_person){0};
}

/* ---- steps ----------------------------------------------------------------------------------- */

hpct_status hpct_spank_marker_step(const char *parent, uint32_t job, uint32_t step, bool runs)
{
    char name[48];
    int at = -1;
    hpct_status status = hpct_spank_parent_open(parent, runs, &at);
    if (status != HPCT_OK || at < 0)
        return status;
    snprintf(name, sizeof name, STEP "%" PRIu32 "-%" PRIu32, job, step);
    if (runs) {
        int fd = openat(at, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            status = fail_write(parent, name);
        else
            close(fd);
    } else if (unlinkat(at, name, 0) != 0 && errno != ENOENT) {
        status =
            hpct_fail(HPCT_ERR_IO, "%s/%s cannot be removed: %s", parent, name, strerror(errno));
    }
    close(at);
    return status;
}

/* Job number in the name of a marker; 0: not a marker. */
static uint32_t job_of(const char *name, bool *is_step)
{
    long job = 0;
    *is_step = strncmp(name, STEP, strlen(STEP)) == 0;
    if (!*is_step && strncmp(name, OUT, strlen(OUT)) != 0)
        return 0;
    name += *is_step ? strlen(STEP) : strlen(OUT);
    return hpct_number_scan(&name, UINT32_MAX, &job) ? (uint32_t) job : 0;
}

static DIR *list(const char *parent)
{
    int at = -1;
    if (hpct_spank_parent_open(parent, false, &at) != HPCT_OK || at < 0)
        return NULL;
    DIR *entries = fdopendir(at);
    if (entries == NULL)
        close(at);
    return entries;
}

bool hpct_spank_marker_find_step(const char *parent, uint32_t job)
{
    bool found = false;
    DIR *entries = list(parent);
    for (struct dirent *entry; entries != NULL && !found && (entry = readdir(entries)) != NULL;) {
        bool is_step;
        found = job_of(entry->d_name, &is_step) == job && is_step;
    }
    if (entries != NULL)
        closedir(entries);
    return found;
}

/* Whether no job directory has this name. A user's file system may be mounted there: it is not
 * accessed. */
static bool is_free(int at, const char *name)
{
    int fd = hpct_spank_folder_open(at, name);
    hpct_fd_close(fd);
    return fd < 0 && errno == ENOENT;
}

void hpct_spank_marker_remove(const char *parent, uint32_t job)
{
    DIR *entries = list(parent);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        bool is_step;
        char name[16];
        uint32_t whose = job_of(entry->d_name, &is_step);
        snprintf(name, sizeof name, "%" PRIu32, whose);
        if (whose != 0 && (job != 0 ? whose == job : is_free(dirfd(entries), name)))
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL)
        closedir(entries);
}
