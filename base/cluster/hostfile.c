/* Reads host files: lenient about the form and strict about the contents, like Slurm. */
#include "base/cluster/hostfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cluster/names.h"
#include "base/cluster/nodelist.h"
#include "base/cluster/tasks.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_FILE (64L << 20)

typedef struct placing {
    const char *path;
    hpct_cluster_names_index index;
    int size;
    int *placed;
    int done;
} placing;

static hpct_status add_hosts(placing *p, char *entry)
{
    hpct_status status = HPCT_OK;
    long factor = 1;
    char *star = strchr(entry, '*');
    if (star != NULL) {
        *star = '\0';
        if (!hpct_number_parse(star + 1, 1, HPCT_CLUSTER_MAX_TASKS, &factor))
            return hpct_fail(HPCT_ERR_CONFIG, "%s: factor '%.40s' is not a count", p->path,
                             star + 1);
    }
    char **hosts = NULL;
    int count = 0;
    status = hpct_cluster_nodelist_expand(entry, &hosts, &count);
    if (status != HPCT_OK)
        return hpct_fail_within(status, p->path);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        int node = hpct_cluster_names_find(&p->index, hosts[i]);
        if (node < 0)
            status = hpct_fail(HPCT_ERR_CONFIG, "%s: host '%s' is not part of the step", p->path,
                               hosts[i]);
        for (long n = 0; n < factor && p->done < p->size && status == HPCT_OK; n++)
            p->placed[p->done++] = node;
    }
    hpct_cluster_names_free(hosts, count);
    return status;
}

static hpct_status check_count(const placing *p)
{
    if (p->done == p->size)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG, "%s names %d hosts, the step has %d tasks", p->path, p->done,
                     p->size);
}

hpct_status hpct_cluster_hostlist_read(const char *list, const char *what, char *const *names,
                                       int num_nodes, int size, int **placed)
{
    placing p = {.path = what, .size = size};
    char *copy = strdup(list);
    p.placed = calloc((size_t) size + 1, sizeof *p.placed);
    hpct_status status = copy != NULL && p.placed != NULL &&
                                 hpct_cluster_names_index_make(names, num_nodes, &p.index)
                             ? add_hosts(&p, copy)
                             : hpct_fail_memory((size_t) size * sizeof *p.placed);
    if (status == HPCT_OK)
        status = check_count(&p);
    hpct_cluster_names_index_free(&p.index);
    free(copy);
    if (status == HPCT_OK)
        *placed = p.placed;
    else
        free(p.placed);
    return status;
}

hpct_status hpct_cluster_hostfile_read(const char *path, char *const *names, int num_nodes,
                                       int size, int **placed)
{
    hpct_status status = HPCT_OK;
    placing p = {.path = path, .size = size};
    char *line = NULL;
    size_t capacity = 0;
    struct stat info;
    /* O_NONBLOCK: opening a FIFO of that name must not block the step. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file == NULL || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size > MAX_FILE) {
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "SLURM_HOSTFILE '%s' cannot be read on this node (%s): put it where all "
                           "nodes see it, or use --distribution=block",
                           path, file == NULL ? strerror(errno) : "not a plain file");
        goto end;
    }
    p.placed = calloc((size_t) size + 1, sizeof *p.placed);
    if (p.placed == NULL || !hpct_cluster_names_index_make(names, num_nodes, &p.index)) {
        status = hpct_fail_memory((size_t) size * sizeof *p.placed);
        goto end;
    }
    while (p.done < size && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "#\n")] = '\0';
        char *rest = NULL;
        for (char *entry = strtok_r(line, " \t\r", &rest); entry != NULL && status == HPCT_OK;
             entry = strtok_r(NULL, " \t\r", &rest))
            status = add_hosts(&p, entry);
        if (status != HPCT_OK)
            goto end;
    }
    status = check_count(&p);
end:
    hpct_cluster_names_index_free(&p.index);
    free(line);
    if (file != NULL)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    if (status == HPCT_OK)
        *placed = p.placed;
    else
        free(p.placed);
    return status;
}
