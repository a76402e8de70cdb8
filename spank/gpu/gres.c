/* Parses gres.conf: one device type per line, key=value, case-insensitive keys, '#' comments, '\'
 * continues a line. */
#include "spank/gpu/gres.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cluster/nodelist.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_GPUS 1024
#define MAX_NUMBER 1000000

typedef struct line {
    char *name, *node, *file, *cores, *count; /* pointers into the line's text */
} line;

/* Splits a line into its fields; of repeated keys the last wins. */
static line read_line(char *text)
{
    line words = {0};
    char *rest = NULL;
    text[strcspn(text, "#\n")] = '\0';
    for (char *word = strtok_r(text, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        const struct {
            const char *key;
            char **value;
        } keys[] = {{"Name=", &words.name},   {"NodeName=", &words.node}, {"File=", &words.file},
                    {"Cores=", &words.cores}, {"CPUs=", &words.cores},    {"Count=", &words.count}};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            if (strncasecmp(word, keys[i].key, strlen(keys[i].key)) == 0)
                *keys[i].value = word + strlen(keys[i].key);
        }
    }
    return words;
}

static bool is_of(const char *nodes, const char *node)
{
    char **names;
    int count;
    bool found = false;
    if (nodes == NULL || node == NULL)
        return true;
    if (hpct_cluster_nodelist_expand(nodes, &names, &count) != HPCT_OK)
        return false;
    for (int i = 0; i < count && !found; i++)
        found = strcmp(names[i], node) == 0;
    hpct_cluster_names_free(names, count);
    return found;
}

static hpct_status add(hpct_gpus_gres *gres, const char *file, const char *cores)
{
    hpct_gpus_gres_gpu gpu = {.number = gres->count};
    if (gres->count == MAX_GPUS)
        return hpct_fail(HPCT_ERR_CONFIG, "gres.conf: more than %d GPUs of one node", MAX_GPUS);
    if (file != NULL) {
        const char *digits = file + strlen(file);
        long number;
        while (digits > file && isdigit((unsigned char) digits[-1]))
            digits--;
        if (hpct_number_parse(digits, 0, MAX_NUMBER, &number))
            gpu.number = (int) number;
        gpu.file = strdup(file);
    }
    if (cores != NULL)
        gpu.cores = strdup(cores);
    hpct_gpus_gres_gpu *grown = realloc(gres->gpus, (size_t) (gres->count + 1) * sizeof *grown);
    if (grown != NULL)
        gres->gpus = grown;
    if (grown == NULL || (file != NULL && gpu.file == NULL) ||
        (cores != NULL && gpu.cores == NULL)) {
        free(gpu.file);
        free(gpu.cores);
        return hpct_fail_memory(0);
    }
    gres->gpus[gres->count++] = gpu;
    return HPCT_OK;
}

/* One entry of File=, such as "/dev/nvidia[0-3]", whose last component has the syntax of a host
 * list. */
static hpct_status add_files(hpct_gpus_gres *gres, const char *entry, const char *cores)
{
    size_t folder = strcspn(entry, "[");
    char **names = NULL, *path = malloc(strlen(entry) + 64);
    int count = 0;
    while (folder > 0 && entry[folder - 1] != '/')
        folder--;
    if (path == NULL)
        return hpct_fail_memory(0);
    hpct_status status = hpct_cluster_nodelist_expand(entry + folder, &names, &count);
    for (int i = 0; status == HPCT_OK && i < count; i++) {
        snprintf(path, strlen(entry) + 64, "%.*s%s", (int) folder, entry, names[i]);
        status = add(gres, path, cores);
    }
    hpct_cluster_names_free(names, count);
    free(path);
    return status;
}

static hpct_status add_line(hpct_gpus_gres *gres, line *words)
{
    char *entry = words->file;
    long number = 1;
    hpct_status status = HPCT_OK;
    if (words->file == NULL) {
        if (words->count != NULL && !hpct_number_parse(words->count, 0, MAX_GPUS, &number))
            return hpct_fail(HPCT_ERR_CONFIG, "gres.conf: Count=%.100s is not a number of GPUs",
                             words->count);
        for (; number > 0 && status == HPCT_OK; number--)
            status = add(gres, NULL, words->cores);
        return status;
    }
    while (entry != NULL && status == HPCT_OK) { /* split at commas outside of brackets */
        char *end = entry;
        for (bool inside = false; *end != '\0' && (inside || *end != ','); end++)
            inside = *end == '[' || (inside && *end != ']');
        char *next = *end == '\0' ? NULL : end + 1;
        *end = '\0';
        status = add_files(gres, entry, words->cores);
        if (status == HPCT_ERR_CONFIG)
            status = hpct_fail_within(status, "gres.conf: File=");
        entry = next;
    }
    return status;
}

static int by_number(const void *a, const void *b)
{
    const hpct_gpus_gres_gpu *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Like getline, but joins lines that end in '\'. */
static bool next_line(FILE *file, char **text, size_t *room)
{
    char *more = NULL;
    size_t more_room = 0;
    ssize_t size = getline(text, room, file);
    if (size < 0)
        return false;
    while (size >= 2 && strcmp(*text + size - 2, "\\\n") == 0) {
        ssize_t got = getline(&more, &more_room, file);
        char *grown = got < 0 ? NULL : realloc(*text, (size_t) (size + got));
        if (grown == NULL)
            break;
        memcpy(grown + size - 2, more, (size_t) got + 1);
        *text = grown;
        *room = (size_t) (size + got);
        size += got - 2;
    }
    free(more);
    return true;
}

hpct_status hpct_gpus_gres_read(const char *path, const char *node, hpct_gpus_gres *out)
{
    hpct_gpus_gres gres = {0};
    hpct_status status = HPCT_OK;
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    while (status == HPCT_OK && next_line(file, &text, &room)) {
        line words = read_line(text);
        if (words.name != NULL && strcasecmp(words.name, "gpu") == 0 && is_of(words.node, node))
            status = add_line(&gres, &words);
    }
    free(text);
    fclose(file);
    if (status == HPCT_OK && gres.count == 0)
        status = hpct_fail(HPCT_ERR_CONFIG, "%s gives this node no GPU", path);
    if (status != HPCT_OK) {
        hpct_gpus_gres_free(&gres);
        return status;
    }
    qsort(gres.gpus, (size_t) gres.count, sizeof *gres.gpus, by_number);
    *out = gres;
    return HPCT_OK;
}

void hpct_gpus_gres_free(hpct_gpus_gres *gres)
{
    for (int i = 0; i < gres->count; i++) {
        free(gres->gpus[i].file);
        free(gres->gpus[i].cores);
    }
    free(gres->gpus);
    *gres = (hpct_gpus_gres){0};
}

static bool may_open(const hpct_gpus_gres_gpu *gpu)
{
    return gpu->file == NULL || access(gpu->file, R_OK | W_OK) == 0 ||
           (errno != EACCES && errno != EPERM);
}

hpct_status hpct_gpus_gres_locate(const hpct_gpus_gres *gres, const char *name, const char **cores)
{
    const hpct_gpus_gres_gpu *found = NULL;
    long number;
    int open = 0;
    if (!hpct_number_parse(name, 0, MAX_NUMBER, &number))
        return hpct_fail(HPCT_ERR_CONFIG, "gres.conf knows no GPU by a name such as '%.100s'",
                         name);
    for (int i = 0; i < gres->count; i++)
        open += may_open(&gres->gpus[i]);
    for (int i = 0, place = 0; i < gres->count && found == NULL; i++) {
        const hpct_gpus_gres_gpu *gpu = &gres->gpus[i];
        bool renumbered = open < gres->count;
        if (renumbered && !may_open(gpu))
            continue;
        if ((renumbered ? place : gpu->number) == number)
            found = gpu;
        place++;
    }
    if (found == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "gres.conf has no GPU %ld", number);
    if (found->cores == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "gres.conf has no Cores= for GPU %ld", number);
    *cores = found->cores;
    return HPCT_OK;
}
