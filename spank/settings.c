/* Parses key=value arguments. */
#include "spank/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "spank/spec/bytes.h"
#include "spank/spec/entry.h"

#ifndef HPCT_DEFAULT_TMPDIR
#define HPCT_DEFAULT_TMPDIR "/tmp/hpc-train"
#endif

/* An absolute path other than "/" without ".", ".." and empty components. */
static bool is_plain_path(const char *path)
{
    if (path[0] != '/' || path[1] == '\0')
        return false;
    while (*path == '/') {
        size_t size = strcspn(++path, "/");
        if (size == 0 || strncmp(path, ".", size) == 0 || strncmp(path, "..", size) == 0)
            return false;
        path += size;
    }
    return true;
}

static hpct_status copy_path(const char *value, char **path)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return hpct_fail_memory(0);
    hpct_spec_entry_strip(copy); /* a trailing '/' is allowed */
    if (!is_plain_path(copy)) {
        free(copy);
        return hpct_fail(HPCT_ERR_CONFIG,
                         "'%s' is not the path of a folder or file as it must be written: from / "
                         "on, without '.', '..' and '//'",
                         value);
    }
    free(*path);
    *path = copy;
    return HPCT_OK;
}

typedef struct setting {
    const char *name;
    hpct_status (*set)(const struct setting *key, const char *value, hpct_spank_settings *settings);
    size_t member;                 /* offset of what it sets */
    const char *one, *other, *yes; /* of two words, and which of them sets a bool */
    long low, high;                /* of seconds */
} setting;

static void *member_of(const setting *key, hpct_spank_settings *settings)
{
    return (char *) settings + key->member;
}

static hpct_status set_path(const setting *key, const char *value, hpct_spank_settings *settings)
{
    return copy_path(value, member_of(key, settings));
}

static hpct_status set_choice(const setting *key, const char *value, hpct_spank_settings *settings)
{
    bool *chosen = member_of(key, settings);
    if (strcmp(value, key->one) != 0 && strcmp(value, key->other) != 0)
        return hpct_fail(HPCT_ERR_CONFIG, "'%s' is neither %s nor %s", value, key->one, key->other);
    *chosen = strcmp(value, key->yes) == 0;
    return HPCT_OK;
}

static hpct_status set_seconds(const setting *key, const char *value, hpct_spank_settings *settings)
{
    int *seconds = member_of(key, settings);
    long number = 0;
    if (!hpct_number_parse(value, key->low, key->high, &number))
        return hpct_fail(HPCT_ERR_CONFIG, "'%s' is not a number of seconds from %ld to %ld", value,
                         key->low, key->high);
    *seconds = (int) number;
    return HPCT_OK;
}

static hpct_status set_ports(const setting *key, const char *value, hpct_spank_settings *settings)
{
    (void) key;
    if (hpct_cluster_port_range_parse(value, &settings->ports) != HPCT_OK || settings->ports.single)
        return hpct_fail(HPCT_ERR_CONFIG, "'%s' is not a range of ports such as 20000-29999",
                         value);
    settings->has_ports = true;
    return HPCT_OK;
}

static hpct_status set_stage_max(const setting *key, const char *value,
                                 hpct_spank_settings *settings)
{
    (void) key;
    if (!hpct_spec_bytes_parse(value, &settings->stage_max) || settings->stage_max == 0)
        return hpct_fail(HPCT_ERR_CONFIG, "'%s' is not a size such as 500G", value);
    return HPCT_OK;
}

/* Prefixes separated by commas. */
static hpct_status set_stage_src(const setting *key, const char *value,
                                 hpct_spank_settings *settings)
{
    hpct_status status = HPCT_OK;
    char *copy = strdup(value), *rest = NULL;
    (void) key;
    if (copy == NULL)
        return hpct_fail_memory(0);
    for (char *part = strtok_r(copy, ",", &rest); part != NULL && status == HPCT_OK;
         part = strtok_r(NULL, ",", &rest)) {
        if (settings->num_stage_src == HPCT_SPANK_MAX_STAGE_SRC)
            status = hpct_fail(HPCT_ERR_CONFIG, "more than %d prefixes", HPCT_SPANK_MAX_STAGE_SRC);
        else
            status = copy_path(part, &settings->stage_src[settings->num_stage_src]);
        settings->num_stage_src += status == HPCT_OK;
    }
    free(copy);
    if (status == HPCT_OK && settings->num_stage_src == 0)
        status = hpct_fail(HPCT_ERR_CONFIG, "no prefix is given");
    return status;
}

static hpct_status set_network(const setting *key, const char *value, hpct_spank_settings *settings)
{
    (void) key;
    return hpct_spec_network_parse(value, &settings->network) == HPCT_OK ? HPCT_OK
                                                                         : HPCT_ERR_CONFIG;
}

#define MEMBER(name) .member = offsetof(hpct_spank_settings, name)
static const setting keys[] = {
    {"tmpdir", set_path, MEMBER(tmpdir)},
    {"ports", set_ports, MEMBER(ports)},
    {"default", set_choice, MEMBER(on_by_default), .one = "on", .other = "off", .yes = "on"},
    {"stage_max", set_stage_max, MEMBER(stage_max)},
    {"stage_src", set_stage_src, MEMBER(stage_src)},
    {"helper", set_path, MEMBER(helper)},
    {"gpu_helper", set_path, MEMBER(gpu_helper)},
    {"log", set_choice, MEMBER(verbose), .one = "error", .other = "info", .yes = "info"},
    {"stage_last_try", set_seconds, MEMBER(last_try), .low = 0, .high = 3600},
    {"stage_links", set_choice, MEMBER(stage_follow), .one = "refuse", .other = "follow",
     .yes = "follow"},
    {"wait", set_seconds, MEMBER(wait), .low = 1, .high = 86400},
    {"network", set_network, MEMBER(network)},
};
enum { NUM_KEYS = sizeof keys / sizeof *keys };

static hpct_status read_argument(const char *argument, bool *seen, hpct_spank_settings *settings)
{
    size_t size = strcspn(argument, "=");
    for (size_t i = 0; i < NUM_KEYS; i++) {
        if (strlen(keys[i].name) != size || strncmp(keys[i].name, argument, size) != 0)
            continue;
        if (argument[size] != '=' || argument[size + 1] == '\0')
            return hpct_fail(HPCT_ERR_CONFIG, "plugstack.conf: '%s' needs a value", argument);
        if (seen[i])
            return hpct_fail(HPCT_ERR_CONFIG, "plugstack.conf: %s= is given twice", keys[i].name);
        seen[i] = true;
        hpct_status status = keys[i].set(&keys[i], argument + size + 1, settings);
        char prefix[64];
        snprintf(prefix, sizeof prefix, "plugstack.conf: %s=", keys[i].name);
        return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, prefix);
    }
    return hpct_fail(HPCT_ERR_CONFIG,
                     "plugstack.conf: argument '%s' is not known: tmpdir=, ports=, default=, "
                     "stage_max=, stage_src=, stage_links=, stage_last_try=, wait=, network=, "
                     "helper=, gpu_helper= and log= are",
                     argument);
}

hpct_status hpct_spank_settings_read(int count, char *const *arguments, hpct_spank_settings *out)
{
    bool seen[NUM_KEYS] = {false};
    *out = (hpct_spank_settings){
        .tmpdir = strdup(HPCT_DEFAULT_TMPDIR),
        .helper = strdup(HPCT_DEFAULT_HELPER),
        .last_try = 60,
        .wait = 300,
        .gpu_helper = strdup(HPCT_DEFAULT_GPU_HELPER),
    };
    if (out->tmpdir == NULL || out->helper == NULL || out->gpu_helper == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < count; i++) {
        HPCT_TRY(read_argument(arguments[i], seen, out));
    }
    return HPCT_OK;
}

void hpct_spank_settings_free(hpct_spank_settings *settings)
{
    for (int i = 0; i < settings->num_stage_src; i++)
        free(settings->stage_src[i]);
    free(settings->tmpdir);
    free(settings->helper);
    free(settings->gpu_helper);
    *settings = (hpct_spank_settings){0};
}
