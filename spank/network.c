/* One row per variable. Sources of names and syntax: the libraries' code and manuals. */
#include "spank/network.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"

typedef enum form {
    FIRST,   /* the first interface */
    ALL,     /* all interfaces */
    EXACT,   /* all interfaces, not taken as prefixes; of an alias the device */
    ADDRESS, /* the address of the first */
    HOST,    /* whether torchrun's rendezvous is on this node */
} form;

enum {
    TF = HPCT_CLUSTER_FRAMEWORK_TF,
    TORCH = HPCT_CLUSTER_FRAMEWORK_TORCH,
    JAX = HPCT_CLUSTER_FRAMEWORK_JAX,
    MPI = HPCT_CLUSTER_FRAMEWORK_MPI,
    ANY = ~0,
};

static const struct variable {
    const char *name;
    unsigned change; /* set if the network changes this */
    int frameworks;
    form form;
} variables[] = {
    {"HPC_TRAIN_INTERFACE", HPCT_AGREE_NETWORK_ALL, ANY, FIRST},
    {"HPC_TRAIN_ADDRESS", HPCT_AGREE_NETWORK_ALL, ANY, ADDRESS},
    {"GLOO_SOCKET_IFNAME", HPCT_AGREE_NETWORK_GLOO, TORCH, FIRST},
    {"TP_SOCKET_IFNAME", HPCT_AGREE_NETWORK_GLOO, TORCH, FIRST},
    {"HOROVOD_GLOO_IFACE", HPCT_AGREE_NETWORK_GLOO, TF | TORCH, FIRST},
    {"PET_RDZV_CONF", HPCT_AGREE_NETWORK_ADDRESSES, TORCH, HOST},
    {"NCCL_SOCKET_IFNAME", HPCT_AGREE_NETWORK_NCCL, TF | TORCH | JAX, EXACT},
    {"OMPI_MCA_btl_tcp_if_include", HPCT_AGREE_NETWORK_MPI, MPI, ALL},
    {"FI_TCP_IFACE", HPCT_AGREE_NETWORK_MPI, MPI, FIRST},
};
enum { NUM_VARIABLES = sizeof variables / sizeof *variables };

/* ---- what the user and the administrator have chosen ----------------------------------------- */

/* NULL unless it is a regular file: a pipe would be waited for. */
static FILE *open_file(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(fd, "r") : NULL;
    if (file == NULL)
        hpct_fd_close(fd);
    return file;
}

/* Whether a line of the file sets the variable: "NAME = value". */
static bool file_sets(const char *path, const char *name)
{
    const size_t size = strlen(name);
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *file = open_file(path);
    while (file != NULL && !found && getline(&line, &room, file) > 0) {
        const char *at = line + strspn(line, " \t");
        found = strncmp(at, name, size) == 0 && strchr(" \t=", at[size]) != NULL;
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

static bool file_below_sets(const char *folder, const char *file, const char *name)
{
    char path[4096];
    return folder != NULL &&
           (size_t) snprintf(path, sizeof path, "%s/%s", folder, file) < sizeof path &&
           file_sets(path, name);
}

static bool nccl_is_told(const hpct_cluster_environment *environment)
{
    static const char name[] = "NCCL_SOCKET_IFNAME";
    const char *file = hpct_cluster_environment_get(environment, "NCCL_CONF_FILE");
    return (file != NULL ? file_sets(file, name)
                         : file_below_sets(hpct_cluster_environment_get(environment, "HOME"),
                                           ".nccl.conf", name)) ||
           file_sets("/etc/nccl.conf", name);
}

/* The installation of the mpirun that PATH leads to, freed by the caller; NULL: none. */
static char *find_mpi_prefix(const hpct_cluster_environment *environment)
{
    const char *path = hpct_cluster_environment_get(environment, "PATH");
    char *copy = path == NULL ? NULL : strdup(path), *rest = copy, *folder, *found = NULL;
    while (found == NULL && rest != NULL && (folder = strsep(&rest, ":")) != NULL) {
        char program[4096];
        if ((size_t) snprintf(program, sizeof program, "%s/mpirun", folder) < sizeof program &&
            access(program, X_OK) == 0)
            found = realpath(program, NULL);
    }
    free(copy);
    for (int up = 0; up < 2 && found != NULL; up++) { /* PREFIX/bin/mpirun */
        char *slash = strrchr(found, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    return found;
}

/* With an exclude from anywhere, an include makes Open MPI's TCP fail. */
static bool open_mpi_is_told(const hpct_cluster_environment *environment)
{
    static const char file[] = "openmpi-mca-params.conf";
    static const char *const names[] = {"btl_tcp_if_include", "btl_tcp_if_exclude"};
    char *prefix = find_mpi_prefix(environment);
    bool told = hpct_cluster_environment_get(environment, "OMPI_MCA_btl_tcp_if_exclude") != NULL;
    for (size_t i = 0; i < 2 && !told; i++)
        told = file_below_sets(hpct_cluster_environment_get(environment, "HOME"),
                               ".openmpi/mca-params.conf", names[i]) ||
               file_below_sets("/etc/openmpi", file, names[i]) ||
               file_below_sets(prefix, "etc/openmpi-mca-params.conf", names[i]);
    free(prefix);
    return told;
}

static bool is_told(const struct variable *v, const hpct_cluster_environment *environment)
{
    if (hpct_cluster_environment_get(environment, v->name) != NULL)
        return true;
    if (strcmp(v->name, "NCCL_SOCKET_IFNAME") == 0)
        return nccl_is_told(environment);
    if (strcmp(v->name, "OMPI_MCA_btl_tcp_if_include") == 0)
        return open_mpi_is_told(environment);
    return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* "=hsn0,hsn1"; of an alias "eth0:1" the device, as NCCL cuts names at the colon. */
static void write_exact(const char *interfaces, char *text, size_t size)
{
    size_t used = 0;
    bool in_alias = false;
    text[used++] = '=';
    for (; *interfaces != '\0' && used + 1 < size; interfaces++) {
        in_alias = *interfaces == ':' || (in_alias && *interfaces != ',');
        if (!in_alias)
            text[used++] = *interfaces;
    }
    text[used] = '\0';
}

static void write_value(const struct variable *v, const hpct_agree_network *network, bool first,
                        char *text, size_t size)
{
    const char *interfaces = network->part.interfaces;
    switch (v->form) {
    case FIRST:
        snprintf(text, size, "%.*s", (int) strcspn(interfaces, ","), interfaces);
        break;
    case ALL:
        snprintf(text, size, "%s", interfaces);
        break;
    case EXACT:
        write_exact(interfaces, text, size);
        break;
    case ADDRESS:
        snprintf(text, size, "%s", network->part.address);
        break;
    case HOST:
        snprintf(text, size, "is_host=%d", first);
        break;
    }
}

/* Whether "NAME=VALUE NAME=VALUE" has this one. */
static bool was_set(const char *list, const char *name, const char *value)
{
    const size_t name_size = strlen(name), value_size = strlen(value);
    for (; *list != '\0'; list += strcspn(list, " "), list += *list == ' ') {
        if (strncmp(list, name, name_size) == 0 && list[name_size] == '=' &&
            strcspn(list, " ") == name_size + 1 + value_size &&
            strncmp(list + name_size + 1, value, value_size) == 0)
            return true;
    }
    return false;
}

hpct_status hpct_spank_network_forget(const hpct_cluster_environment *environment,
                                      hpct_cluster_variable_sink set, void *context)
{
    const char *outer = hpct_cluster_environment_get(environment, HPCT_SPANK_NETWORK_SET);
    char *list = outer == NULL ? NULL : strdup(outer); /* the next call of `get` may move it */
    hpct_status status = outer != NULL && list == NULL ? hpct_fail_memory(0) : HPCT_OK;
    for (int i = 0; list != NULL && status == HPCT_OK && i < NUM_VARIABLES; i++) {
        const char *value = hpct_cluster_environment_get(environment, variables[i].name);
        if (value != NULL && was_set(list, variables[i].name, value))
            status = set(context, variables[i].name, NULL);
    }
    if (list != NULL && status == HPCT_OK)
        status = set(context, HPCT_SPANK_NETWORK_SET, NULL);
    free(list);
    return status;
}

hpct_status hpct_spank_network_emit(const hpct_agree_network *network, unsigned frameworks,
                                    bool first, const hpct_cluster_environment *environment,
                                    hpct_cluster_variable_sink set, void *context)
{
    char done[2048] = "", value[HPCT_NET_FRAME_TEXT];
    HPCT_TRY(hpct_spank_network_forget(environment, set, context));
    for (int i = 0; i < NUM_VARIABLES; i++) {
        const struct variable *v = &variables[i];
        if ((v->change & network->changes) == 0 ||
            (v->frameworks != ANY && (v->frameworks & (int) frameworks) == 0) ||
            is_told(v, environment))
            continue;
        write_value(v, network, first, value, sizeof value);
        HPCT_TRY(set(context, v->name, value));
        const size_t used = strlen(done);
        snprintf(done + used, sizeof done - used, "%s%s=%s", used > 0 ? " " : "", v->name, value);
    }
    return done[0] == '\0' ? HPCT_OK : set(context, HPCT_SPANK_NETWORK_SET, done);
}
