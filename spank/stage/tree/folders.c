/* A cache of open folders with a few slots, replaced by least recent use. */
#include <config.h>

#include "spank/stage/tree/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#include "spank/stage/tree/item.h"

/* ---- paths ---- */

static bool is_dots(const char *part, size_t size)
{
    return (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.');
}

bool hpct_stage_item_path_ok(const char *path)
{
    const char *p = path;
    if (*path == '\0')
        return true;
    for (int depth = 1; depth <= HPCT_STAGE_ITEM_DEPTH; depth++) {
        size_t size = strcspn(p, "/");
        if (size == 0 || size > NAME_MAX || is_dots(p, size))
            return false;
        p += size;
        if (*p++ == '\0')
            return p - path <= PATH_MAX;
    }
    return false;
}

bool hpct_stage_item_link_stays(const char *path, const char *text)
{
    int depth = 0;
    bool names = false; /* a name before ".." may be a link, and ".." leave its target */
    if (*text == '\0' || *text == '/' || strlen(text) >= PATH_MAX || *path == '\0')
        return false;
    for (const char *p = path; *p != '\0'; p++)
        depth += *p == '/';
    for (const char *p = text; *p != '\0';) {
        size_t size = strcspn(p, "/");
        if (size == 2 && p[0] == '.' && p[1] == '.') {
            if (names || --depth < 0)
                return false;
        } else if (!is_dots(p, size)) {
            names = true;
        }
        p += size;
        p += strspn(p, "/");
    }
    return true;
}

/* ---- opening ---- */

#define SLOTS 24

typedef struct slot {
    char *path; /* NULL: free */
    size_t size;
    int fd, users;
    unsigned long used; /* clock of the last use */
} slot;

struct hpct_stage_folders {
    int root;
    bool make, follow;
    pthread_mutex_t mutex;
    unsigned long clock;
    slot slots[SLOTS];
};

hpct_stage_folders *hpct_stage_folders_new(int root, bool make, bool follow)
{
    hpct_stage_folders *folders = calloc(1, sizeof *folders);
    if (folders == NULL)
        return NULL;
    folders->root = root;
    folders->make = make;
    folders->follow = follow;
    pthread_mutex_init(&folders->mutex, NULL);
    return folders;
}

static void drop(slot *s)
{
    close(s->fd);
    free(s->path);
    *s = (slot){0};
}

void hpct_stage_folders_free(hpct_stage_folders *folders)
{
    if (folders == NULL)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (folders->slots[i].path != NULL)
            drop(&folders->slots[i]);
    }
    pthread_mutex_destroy(&folders->mutex);
    free(folders);
}

/* Opens the folder component by component from the root. */
static int descend(const hpct_stage_folders *folders, const char *path, size_t size)
{
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (folders->follow ? 0 : O_NOFOLLOW);
    int at = folders->root;
    char part[NAME_MAX + 1];
    for (size_t begin = 0; begin < size;) {
        size_t length = strcspn(path + begin, "/");
        int next = -1;
        if (length > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(part, path + begin, length);
            part[length] = '\0';
            next = openat(at, part, flags);
            if (next < 0 && errno == ENOENT && folders->make &&
                (mkdirat(at, part, 0700) == 0 || errno == EEXIST))
                next = openat(at, part, flags);
        }
        if (at != folders->root)
            hpct_fd_close(at);
        if (next < 0)
            return -1;
        at = next;
        begin += length + 1;
    }
    return at;
}

/* The slot of the folder, opened if necessary. NULL with errno set: it cannot be opened, or all
 * slots are in use (EMFILE). */
static slot *find(hpct_stage_folders *folders, const char *path, size_t size)
{
    slot *oldest = NULL;
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &folders->slots[i];
        if (s->path != NULL && s->size == size && memcmp(s->path, path, size) == 0)
            return s;
        if (s->users == 0 && (oldest == NULL || s->used < oldest->used))
            oldest = s;
    }
    if (oldest == NULL) {
        errno = EMFILE;
        return NULL;
    }
    slot opened = {.path = strndup(path, size), .size = size};
    opened.fd = opened.path == NULL ? -1 : descend(folders, path, size);
    if (opened.fd < 0) {
        free(opened.path);
        return NULL;
    }
    if (oldest->path != NULL)
        drop(oldest);
    *oldest = opened;
    return oldest;
}

int hpct_stage_folders_get(hpct_stage_folders *folders, const char *path, const char **last)
{
    const char *slash = strrchr(path, '/');
    *last = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        return folders->root;
    pthread_mutex_lock(&folders->mutex);
    slot *s = find(folders, path, (size_t) (slash - path));
    int fd = -1;
    if (s != NULL) {
        s->users++;
        s->used = ++folders->clock;
        fd = s->fd;
    }
    pthread_mutex_unlock(&folders->mutex);
    return fd;
}

void hpct_stage_folders_put(hpct_stage_folders *folders, int fd)
{
    if (fd == folders->root)
        return;
    pthread_mutex_lock(&folders->mutex);
    for (int i = 0; i < SLOTS; i++) {
        if (folders->slots[i].path != NULL && folders->slots[i].fd == fd)
            folders->slots[i].users--;
    }
    pthread_mutex_unlock(&folders->mutex);
}

/* ---- removing ---- */

static bool remove_until(int parent, const char *name, int64_t end, hpct_stage_report *report)
{
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
        return true;
    if (end > 0 && hpct_now_ms() > end)
        return false;
    fchmodat(parent, name, 0700, 0);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    bool done = true;
    if (folder == NULL) {
        hpct_fd_close(fd);
        return true;
    }
    long count = 0;
    for (struct dirent *found; done && (found = readdir(folder)) != NULL;) {
        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            done = remove_until(fd, found->d_name, end, report);
        if (++count % 256 == 0 && end > 0 && hpct_now_ms() > end)
            done = false;
        if (count % 256 == 0 && report != NULL)
            hpct_stage_report_alive(report);
    }
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
    return done;
}

void hpct_stage_tree_remove(int parent, const char *name, hpct_stage_report *report)
{
    remove_until(parent, name, 0, report);
}

bool hpct_stage_tree_remove_within(int parent, const char *name, double seconds)
{
    return remove_until(parent, name, hpct_now_ms() + (int64_t) (seconds * 1000), NULL);
}
