/* Mount of an open file (/proc/self/fdinfo), and its root and source (/proc/self/mountinfo). */
#include <config.h>

#include "spank/stage/tree/identity.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "spank/stage/tree/hash.h"

typedef struct mount {
    char *root, *point, *source; /* root: mounted directory within the file system; point: mount
                                    point; source: device or server */
} mount;

static void mount_free(mount *m)
{
    free(m->root);
    free(m->point);
    free(m->source);
    *m = (mount){0};
}

/* "36 35 0:98 ROOT POINT opts … - TYPE SOURCE opts" */
static bool read_mount(const char *line, int id, mount *m)
{
    int found = -1;
    const char *rest = strstr(line, " - ");
    return rest != NULL && sscanf(line, "%d %*d %*s %ms %ms", &found, &m->root, &m->point) == 3 &&
           found == id && sscanf(rest, " - %*s %ms", &m->source) == 1;
}

static bool find_mount(int id, mount *m)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file != NULL && !found && getline(&line, &room, file) >= 0) {
        found = read_mount(line, id, m);
        if (!found)
            mount_free(m);
    }
    if (file != NULL)
        fclose(file);
    free(line);
    return found;
}

/* Decodes octal escapes: blanks and the like are a backslash and three digits. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; to++) {
        char digits[4] = "", *end;
        if (*p == '\\')
            memcpy(digits, p + 1, strnlen(p + 1, 3));
        long value = strtol(digits, &end, 8);
        bool escaped = end == digits + 3;
        *to = escaped ? (char) value : *p;
        p += escaped ? 4 : 1;
    }
    *to = '\0';
}

bool hpct_stage_origin_is_remote(const char *source)
{
    static const char *const here[] = {"localhost", "127.", "[::1]", "::1"};
    const char *server = strncmp(source, "//", 2) == 0 ? source + 2 : source;
    const char *user = strchr(server, '@'); /* sshfs: USER@HOST; Lustre: ADDRESS@NETWORK */
    size_t size = strcspn(server, "/");
    if (server == source && memchr(source, ':', size) == NULL)
        return false;
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        if (strncmp(server, here[i], strlen(here[i])) == 0 ||
            (user != NULL && strncmp(user + 1, here[i], strlen(here[i])) == 0))
            return false;
    }
    return size > 0 && *server != ':';
}

/* Equal on all nodes that mount the file from one server. */
static uint64_t find_origin(int fd)
{
    char link[64], path[PATH_MAX], *whole = NULL;
    mount m = {0};
    uint64_t origin = 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0 || !find_mount(hpct_fd_mount(fd), &m) || !hpct_stage_origin_is_remote(m.source))
        goto end;
    path[size] = '\0';
    unescape(m.point);
    size_t above = strcmp(m.point, "/") == 0 ? 0 : strlen(m.point);
    if (strncmp(path, m.point, above) != 0)
        goto end;
    int length = asprintf(&whole, "%s\n%s\n%s", m.source, m.root, path + above);
    origin = length < 0 ? 0 : hpct_stage_hash(whole, (size_t) length);
end:
    free(whole);
    mount_free(&m);
    return origin;
}

void hpct_stage_identity_set(hpct_stage_identity *identity, const struct stat *info,
                             uint64_t origin)
{
    *identity = (hpct_stage_identity){
        .inode = {(uint64_t) info->st_ino, (uint64_t) info->st_size,
                  (uint64_t) info->st_mtim.tv_sec, (uint64_t) info->st_mtim.tv_nsec,
                  (uint64_t) info->st_ctim.tv_sec, (uint64_t) info->st_ctim.tv_nsec},
        .origin = origin,
    };
}

bool hpct_stage_identity_read(hpct_stage_identity *identity, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false;
    hpct_stage_identity_set(identity, &info, find_origin(fd));
    return true;
}

bool hpct_stage_identity_same(const hpct_stage_identity *one, const hpct_stage_identity *other)
{
    if (one->origin != 0 && one->origin == other->origin) /* size and modification time only */
        return memcmp(one->inode + 1, other->inode + 1, 3 * sizeof *one->inode) == 0;
    return memcmp(one->inode, other->inode, sizeof one->inode) == 0;
}
