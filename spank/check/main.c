/* hpc-train-check: reports to an administrator, on a node, what keeps hpc-train from working there.
 * Uses the plugin's own code to parse its arguments and to check its folder. */
#include <config.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/check/elf.h"
#include "spank/check/plugstack.h"
#include "spank/check/slurm.h"
#include "spank/parent.h"
#include "spank/settings.h"
#include "spank/slurm_symbols.h"
#include "spank/spec/bytes.h"
#include "spank/spec/entry.h"

#define PLUGIN "spank_hpc_train.so"
#define LEAST_DISK (UINT64_C(1) << 30) /* smaller disks are probably a mistake */

static bool anything_wrong;

__attribute__((format(printf, 3, 4))) static void say(bool good, const char *what,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-6s %-10s ", good ? "ok" : "WRONG", what);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    anything_wrong = anything_wrong || !good;
}
#define right(...) say(true, __VA_ARGS__)
#define wrong(...) say(false, __VA_ARGS__)

/* For a file that root's or users' processes load or run: only root may be able to change it. */
static bool check_file(const char *what, const char *path, int mode, const char *mend)
{
    struct stat info;
    if (stat(path, &info) != 0)
        wrong(what, "%s: %s; %s", path, strerror(errno), mend);
    else if (!S_ISREG(info.st_mode) || ((int) info.st_mode & mode) != mode)
        wrong(what, "%s is not a file that everybody can %s; %s", path,
              mode & 0111 ? "run" : "read", mend);
    else if (info.st_uid != 0 || (info.st_mode & 022) != 0)
        wrong(what, "%s must belong to root and be writable by root alone: chown root, chmod go-w",
              path);
    else
        return true;
    return false;
}

/* Path of a file; a relative one is looked up in PluginDir. The caller frees it. */
static char *find_in_plugin_dirs(const char *written, const hpct_check_slurm_here *slurm)
{
    char *path = NULL, *rest = NULL, *dirs;
    if (written[0] == '/' || slurm->plugin_dirs[0] == '\0')
        return strdup(written);
    dirs = strdup(slurm->plugin_dirs);
    for (char *dir = dirs == NULL ? NULL : strtok_r(dirs, ":", &rest); dir != NULL;
         dir = strtok_r(NULL, ":", &rest)) {
        free(path);
        if (asprintf(&path, "%s/%s", dir, written) < 0)
            path = NULL;
        if (path != NULL && access(path, F_OK) == 0)
            break;
    }
    free(dirs);
    return path;
}

static bool check_plugin(const char *path, const hpct_check_slurm_here *slurm)
{
    uint32_t version = 0;
    if (!check_file("plugin", path, 0444, "install it, or mend plugstack.conf"))
        return false;
    if (hpct_check_elf_number(path, "plugin_version", &version) != HPCT_OK) {
        wrong("plugin", "%s", hpct_last_error());
        return false;
    }
    int major = (int) (version >> 16 & 0xff), minor = (int) (version >> 8 & 0xff);
    if (slurm->major == 0)
        wrong("slurm", "neither slurmd nor srun is found in PATH: no Slurm is installed here");
    else if (major != slurm->major || minor != slurm->minor)
        wrong("plugin",
              "%s is built for Slurm %d.%02d, but Slurm %d.%02d runs here and will not load it: "
              "build it with the headers of %d.%02d",
              path, major, minor, slurm->major, slurm->minor, slurm->major, slurm->minor);
    else
        right("plugin", "%s, for Slurm %d.%02d", path, major, minor);
    return major == slurm->major && minor == slurm->minor;
}

/* Symbols of Slurm's library that no public header guarantees. In a statically linked Slurm the
 * programs have them. */
static void check_symbols(const hpct_check_slurm_here *slurm)
{
    bool has = false, all = true;
    char *library = find_in_plugin_dirs("libslurmfull.so", slurm);
    if (library != NULL && access(library, F_OK) == 0) {
        for (const hpct_slurm_symbol *symbol = hpct_slurm_symbols; symbol->name != NULL; symbol++) {
            if (hpct_check_elf_exports(library, symbol->name, &has) != HPCT_OK)
                wrong("symbols", "%s", hpct_last_error());
            else if (!has)
                wrong("symbols", "%s has no %s: %s", library, symbol->name, symbol->without);
            all = all && has;
        }
        if (all)
            right("symbols", "%s has all that the plugin takes of it", library);
    }
    free(library);
}

/* A running slurmd must have the plugin loaded; otherwise prolog and epilog are not called. */
static void check_daemon(const char *plugin)
{
    char path[300], text[4096], own[64] = "", other[64];
    struct dirent *entry;
    struct stat info;
    DIR *processes = opendir("/proc");
    if (readlink("/proc/self/ns/mnt", own, sizeof own - 1) < 0)
        own[0] = '\0';
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        bool loaded = false;
        if (!isdigit((unsigned char) entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%.20s", entry->d_name);
        if (stat(path, &info) != 0 || info.st_uid != 0)
            continue; /* anybody may give a process this name */
        snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        bool is_slurmd = file != NULL && fgets(text, sizeof text, file) != NULL &&
                         strncmp(text, "slurmd", 6) == 0;
        if (file != NULL)
            fclose(file);
        memset(other, 0, sizeof other);
        snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", entry->d_name);
        if (!is_slurmd || readlink(path, other, sizeof other - 1) < 0 || strcmp(own, other) != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%.20s/maps", entry->d_name);
        file = fopen(path, "re");
        if (file == NULL)
            continue;
        while (!loaded && fgets(text, sizeof text, file) != NULL)
            loaded = strstr(text, PLUGIN) != NULL;
        fclose(file);
        if (loaded)
            right("slurmd", "pid %.20s has loaded the plugin", entry->d_name);
        else
            wrong("slurmd",
                  "pid %.20s was started without %s: restart slurmd, or job directories are not "
                  "removed",
                  entry->d_name, plugin);
    }
    if (processes != NULL)
        closedir(processes);
}

/* Whether Slurm's job_container or namespace plugin hides the folder from jobs. */
static bool is_hidden(const char *tmpdir, const hpct_check_slurm_here *slurm)
{
    bool hidden = false;
    char *dirs = strdup(slurm->own_dirs), *rest = NULL;
    for (char *dir = dirs == NULL ? NULL : strtok_r(dirs, ",", &rest); dir != NULL && !hidden;
         dir = strtok_r(NULL, ",", &rest)) {
        hpct_spec_entry_strip(dir);
        hidden = hpct_spec_entry_is_within(tmpdir, dir);
    }
    free(dirs);
    return hidden;
}

static void check_folder(const hpct_spank_settings *settings, const hpct_check_slurm_here *slurm)
{
    struct statvfs disk;
    char *path = strdup(settings->tmpdir), least[32], size[32], left[32];
    int fd = -1;
    hpct_status status = hpct_spank_parent_open(settings->tmpdir, false, &fd);
    if (status != HPCT_OK)
        wrong("directory", "%s", hpct_last_error());
    else if (is_hidden(settings->tmpdir, slurm))
        wrong("directory",
              "%s is hidden from the tasks, as %s gives each job folders of its own at %s: give "
              "tmpdir= elsewhere",
              settings->tmpdir, slurm->job_container, slurm->own_dirs);
    else
        right("directory", "%s%s", settings->tmpdir,
              fd < 0 ? ", which slurmd makes when it starts" : "");
    hpct_fd_close(fd);
    while (path != NULL && statvfs(path, &disk) != 0 && strlen(path) > 1) {
        char *slash = strrchr(path, '/');
        slash[slash == path ? 1 : 0] = '\0';
    }
    if (path != NULL && statvfs(path, &disk) == 0) {
        uint64_t bytes = (uint64_t) disk.f_blocks * disk.f_frsize;
        uint64_t need = settings->stage_max > LEAST_DISK ? settings->stage_max : LEAST_DISK;
        hpct_spec_bytes_show(bytes, size, sizeof size);
        hpct_spec_bytes_show((uint64_t) disk.f_bavail * disk.f_frsize, left, sizeof left);
        if (bytes < need)
            wrong("disk", "%s has %s in all, less than %s%s: give tmpdir= on a larger disk", path,
                  size, hpct_spec_bytes_show(need, least, sizeof least),
                  need == settings->stage_max ? " (stage_max=)" : "");
        else
            right("disk", "%s: %s in all, %s free", path, size, left);
    }
    free(path);
}

static void check_ports(const hpct_spank_settings *settings)
{
    int low = 0, high = 0;
    hpct_cluster_port_range ports =
        settings->has_ports ? settings->ports : hpct_cluster_port_range_default();
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file == NULL || fscanf(file, "%d %d", &low, &high) != 2)
        low = high = 0;
    if (file != NULL)
        fclose(file);
    if (low > 0 && ports.low <= high && ports.high >= low)
        wrong("ports",
              "%d-%d meet the kernel's ports of outgoing connections, %d-%d "
              "(net.ipv4.ip_local_port_range): give ports= below or above them",
              ports.low, ports.high, low, high);
    else
        right("ports", "%d-%d", ports.low, ports.high);
}

static void check_settings(const hpct_check_plugstack_line *line,
                           const hpct_check_slurm_here *slurm)
{
    hpct_spank_settings settings;
    if (hpct_spank_settings_read(line->count, line->arguments, &settings) != HPCT_OK) {
        wrong("arguments", "%s", hpct_last_error());
        hpct_spank_settings_free(&settings);
        return;
    }
    right("arguments", "%d given", line->count);
    if (check_file("helper", settings.helper, 0555, "install hpc-train-stage, or set helper="))
        right("helper", "%s", settings.helper);
    if (check_file("gpu_helper", settings.gpu_helper, 0555,
                   "install hpc-train-gpus, or set gpu_helper="))
        right("gpu_helper", "%s", settings.gpu_helper);
    check_folder(&settings, slurm);
    check_ports(&settings);
    hpct_spank_settings_free(&settings);
}

/* On a login node of a configless cluster without sackd there is no configuration file. */
static void check_fetched(void)
{
    char line[256];
    if (hpct_check_first_line("srun --help 2>/dev/null | grep -e --hpc-train", line, sizeof line) ==
        0)
        right("plugstack", "slurmctld's, which each command fetches, and srun has --hpc-train");
    else
        wrong("plugstack", "slurmctld's, which each command fetches, brings srun no --hpc-train: "
                           "add a line `optional /path/to/" PLUGIN "` to it, and install " PLUGIN
                           " at that path here");
}

int main(int argc, char **argv)
{
    hpct_check_slurm_here slurm;
    hpct_check_plugstack_line line;
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("hpc-train-check %s\n", PACKAGE_VERSION);
        return HPCT_OK;
    }
    if (argc > 1) {
        bool help = strcmp(argv[1], "--help") == 0;
        fprintf(help ? stdout : stderr,
                "Usage: hpc-train-check\n"
                "Says what is wrong with this node's installation of hpc-train's Slurm plugin.\n"
                "Ends with 0 when nothing is, else with 78. As root it sees most.\n");
        return help ? HPCT_OK : HPCT_ERR_USAGE;
    }
    hpct_check_slurm_here_ask(&slurm);
    if (!slurm.controller_answers)
        wrong("slurm", "`scontrol show config` fails: start slurmctld, or mend slurm.conf");
    if (slurm.fetches) {
        check_fetched();
    } else if (hpct_check_plugstack_find(slurm.plug_stack, PLUGIN, &line) != HPCT_OK) {
        wrong("plugstack", "%s: add a line `optional /path/to/" PLUGIN "`", hpct_last_error());
    } else {
        char *plugin = find_in_plugin_dirs(line.plugin, &slurm);
        right("plugstack", "%s, line %d (%s)", line.file, line.line,
              line.required ? "required" : "optional");
        if (plugin != NULL && check_plugin(plugin, &slurm))
            check_daemon(plugin);
        check_symbols(&slurm);
        check_settings(&line, &slurm);
        free(plugin);
        hpct_check_plugstack_line_free(&line);
    }
    return anything_wrong ? HPCT_ERR_CONFIG : HPCT_OK;
}
