/* The version is that of `slurmd -V`, which loads the plugin on a node, or of `srun -V` on a login
 * node. */
#include "spank/check/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

static int end(FILE *pipe)
{
    int state = pclose(pipe);
    return state >= 0 && WIFEXITED(state) ? WEXITSTATUS(state) : 127;
}

int hpct_check_first_line(const char *command, char *line, size_t size)
{
    char rest[256];
    FILE *pipe = popen(command, "re");
    line[0] = '\0';
    if (pipe == NULL)
        return 127;
    if (fgets(line, (int) size, pipe) != NULL)
        line[strcspn(line, "\n")] = '\0';
    while (fgets(rest, sizeof rest, pipe) != NULL)
        ;
    return end(pipe);
}

/* "slurm-wlm 22.05.8", "slurm 23.11.4-1" */
static bool read_version(const char *command, hpct_check_slurm_here *out)
{
    char line[256];
    return hpct_check_first_line(command, line, sizeof line) == 0 &&
           sscanf(line, "%*s %d.%d", &out->major, &out->minor) == 2;
}

static void read_value(const char *line, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || (line[length] != ' ' && line[length] != '='))
        return;
    line += length;
    line += strspn(line, " =");
    if (strncmp(line, "(null)", 6) != 0) /* not set in slurm.conf */
        snprintf(value, size, "%.*s", (int) strcspn(line, "\n"), line);
}

/* Slurm's default: the file in the directory of slurm.conf. */
static void put_beside(const char *slurm_conf, const char *name, char *path, size_t size)
{
    const char *slash = strrchr(slurm_conf, '/');
    path[0] = '\0';
    if (slash != NULL)
        snprintf(path, size, "%.*s/%s", (int) (slash - slurm_conf), slurm_conf, name);
}

/* Appends the directories named by a line, each preceded by a comma: "BasePath=/nvme Dirs=/a,/b" of
 * job_container.conf; in namespace.yaml "dirs: "/a,/b"", or further lines after "dirs:", such as "-
 * /a", or after "dir_confs:", such as "- path: /a". `key` is the last key before a value, kept
 * between lines. */
static void add_dirs(const char *line, char *key, size_t key_size, char *dirs, size_t size)
{
    static const char between[] = " \t\n,=:\"'[]{}#";
    for (const char *p = line; *p != '\0' && *p != '#';) {
        size_t length = strcspn(p, between), used = strlen(dirs);
        const char *next = p + length + strspn(p + length, " \t\"'");
        if (length > 0 && (*next == '=' || *next == ':'))
            snprintf(key, key_size, "%.*s", (int) length, p);
        else if (*p == '/' && (strcasecmp(key, "dirs") == 0 || strcmp(key, "path") == 0))
            snprintf(dirs + used, size - used, ",%.*s", (int) length, p);
        p += length > 0 ? length : 1;
    }
}

/* The directories private to each job, from the file beside slurm.conf or Slurm's default. */
static void find_own_dirs(hpct_check_slurm_here *out, const char *slurm_conf)
{
    static const char *const files[] = {"job_container.conf", "namespace.yaml"};
    char path[4096], line[4096], key[64] = "";
    bool linux_type = strcmp(out->job_container, "namespace/linux") == 0;
    if (!linux_type && strstr(out->job_container, "/tmpfs") == NULL)
        return;
    put_beside(slurm_conf, files[linux_type], path, sizeof path);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        add_dirs(line, key, sizeof key, out->own_dirs, sizeof out->own_dirs);
    if (file != NULL)
        fclose(file);
    if (out->own_dirs[0] == '\0')
        snprintf(out->own_dirs, sizeof out->own_dirs, "/tmp,/dev/shm");
    else
        memmove(out->own_dirs, out->own_dirs + 1, strlen(out->own_dirs)); /* the first comma */
}

/* The slurm.conf of this node: SLURM_CONF, else /etc/slurm/slurm.conf, else the copy that slurmd or
 * sackd keeps on a configless cluster. False if there is none: then each command fetches
 * slurmctld's. */
static bool find_slurm_conf(char *slurm_conf, size_t size)
{
    const char configless[] = "/run/slurm/conf/slurm.conf", *variable = getenv("SLURM_CONF");
    if (variable != NULL && *variable != '\0')
        snprintf(slurm_conf, size, "%s", variable);
    if (slurm_conf[0] == '\0')
        snprintf(slurm_conf, size, "/etc/slurm/slurm.conf");
    if (access(slurm_conf, F_OK) != 0 && access(configless, F_OK) == 0)
        snprintf(slurm_conf, size, "%s", configless);
    return access(slurm_conf, F_OK) == 0;
}

void hpct_check_slurm_here_ask(hpct_check_slurm_here *out)
{
    char line[8192], slurm_conf[4096] = "";
    memset(out, 0, sizeof *out);
    if (!read_version("slurmd -V 2>/dev/null", out) && !read_version("srun -V 2>/dev/null", out))
        out->major = out->minor = 0;
    FILE *pipe = popen("timeout 10 scontrol show config 2>/dev/null", "re");
    while (pipe != NULL && fgets(line, sizeof line, pipe) != NULL) {
        read_value(line, "PlugStackConfig", out->plug_stack, sizeof out->plug_stack);
        read_value(line, "PluginDir", out->plugin_dirs, sizeof out->plugin_dirs);
        read_value(line, "SLURM_CONF", slurm_conf, sizeof slurm_conf);
        read_value(line, "JobContainerType", out->job_container, sizeof out->job_container);
        read_value(line, "NamespaceType", out->job_container, sizeof out->job_container);
    }
    out->controller_answers = pipe != NULL && end(pipe) == 0;
    out->fetches = !find_slurm_conf(slurm_conf, sizeof slurm_conf) && out->controller_answers &&
                   out->plug_stack[0] == '\0';
    if (out->plug_stack[0] == '\0')
        put_beside(slurm_conf, "plugstack.conf", out->plug_stack, sizeof out->plug_stack);
    find_own_dirs(out, slurm_conf);
}
