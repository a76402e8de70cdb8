/* Reads the file of nodes, and computes their places in the trees: in-order numbered binary trees
 * over the positions 1 … p of the p receiving nodes. Odd positions are leaves, even ones are inner
 * nodes. The second tree gives each node a position of the other parity: mirrored if p is even,
 * shifted by one if p is odd. */
#include <config.h>

#include "spank/stage/net/broadcast_team.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

#define MAX_HOST 255

/* "HOST", "HOST:PORT", "[ADDRESS]" or "[ADDRESS]:PORT"; modifies `line`. */
static bool read_line(char *line, int port, char **host, int *its_port)
{
    char *colon;
    long number = port;
    if (*line == '[') {
        char *end = strchr(++line, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        colon = end[1] == ':' ? end + 1 : NULL;
        *end = '\0';
    } else {
        colon = strrchr(line, ':');
    }
    if (colon != NULL) {
        *colon = '\0';
        if (!hpct_number_parse(colon + 1, 1, 65535, &number))
            return false;
    }
    if (*line == '\0' || strlen(line) > MAX_HOST || number == 0 || strpbrk(line, " \t") != NULL)
        return false;
    *its_port = (int) number;
    *host = strdup(line);
    return true;
}

static hpct_status add(hpct_stage_team *team, int *room, char *line, int port, const char *path)
{
    if (team->count == *room) {
        int more = *room == 0 ? 64 : 2 * *room;
        char **hosts = realloc(team->hosts, (size_t) more * sizeof *hosts);
        if (hosts != NULL)
            team->hosts = hosts;
        int *ports = realloc(team->ports, (size_t) more * sizeof *ports);
        if (ports != NULL)
            team->ports = ports;
        if (hosts == NULL || ports == NULL)
            return hpct_fail_memory((size_t) more * sizeof *hosts);
        *room = more;
    }
    if (team->count == HPCT_STAGE_MAX_TEAM)
        return hpct_fail(HPCT_ERR_USAGE, "%s has more than %d lines", path, HPCT_STAGE_MAX_TEAM);
    if (!read_line(line, port, &team->hosts[team->count], &team->ports[team->count]))
        return hpct_fail(HPCT_ERR_USAGE,
                         "%s, line %d: '%.100s' is not of the form HOST:PORT, or HOST with --port",
                         path, team->count + 1, line);
    if (team->hosts[team->count] == NULL)
        return hpct_fail_memory(0);
    team->count++;
    return HPCT_OK;
}

hpct_status hpct_stage_team_read(const char *path, int port, hpct_stage_team *team)
{
    hpct_status status = HPCT_OK;
    char *line = NULL;
    size_t size = 0;
    int room = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    for (ssize_t length; status == HPCT_OK && (length = getline(&line, &size, file)) >= 0;) {
        if (length > 0 && line[length - 1] == '\n')
            line[length - 1] = '\0';
        status = add(team, &room, line, port, path);
    }
    if (status == HPCT_OK && ferror(file))
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    if (status == HPCT_OK && team->count == 0)
        status = hpct_fail(HPCT_ERR_USAGE, "%s names no node", path);
    free(line);
    fclose(file);
    return status;
}

void hpct_stage_team_free(hpct_stage_team *team)
{
    for (int i = 0; i < team->count; i++)
        free(team->hosts[i]);
    free(team->hosts);
    free(team->ports);
    team->hosts = NULL;
    team->ports = NULL;
    team->count = 0;
}

/* ---- the trees ---- */

static int place_of(int tree, int p, int node)
{
    if (tree == 0)
        return node;
    if (p % 2 == 0)
        return p + 1 - node;
    return node == 1 ? p : node - 1;
}

static int node_of(int tree, int p, int place)
{
    if (tree == 0)
        return place;
    if (p % 2 == 0)
        return p + 1 - place;
    return place == p ? 1 : place + 1;
}

/* Root over the positions low … high: the one divisible by the largest power of two. 0: the range
 * is empty. */
static int root_of(int low, int high)
{
    int step = 1;
    if (low > high)
        return 0;
    while (step <= high / 2 && (low + 2 * step - 1) / (2 * step) * (2 * step) <= high)
        step *= 2;
    return (low + step - 1) / step * step;
}

int hpct_stage_tree_place(int tree, int count, int me, int *parent,
                          int children[HPCT_STAGE_MAX_CHILDREN])
{
    int p = count - 1, low = 1, high = p, above = 0, found = 0;
    *parent = -1;
    if (me == 0) {
        if (p > 0)
            children[found++] = node_of(tree, p, root_of(1, p));
        return found;
    }
    const int place = place_of(tree, p, me);
    int root = root_of(low, high);
    while (root != place) {
        above = root;
        if (place < root)
            high = root - 1;
        else
            low = root + 1;
        root = root_of(low, high);
    }
    *parent = above == 0 ? 0 : node_of(tree, p, above);
    const int below[HPCT_STAGE_MAX_CHILDREN] = {root_of(low, root - 1), root_of(root + 1, high)};
    for (int i = 0; i < HPCT_STAGE_MAX_CHILDREN; i++) {
        if (below[i] != 0)
            children[found++] = node_of(tree, p, below[i]);
    }
    return found;
}
