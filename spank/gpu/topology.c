/* hwloc: compiled against its types only; its functions are looked up in libhwloc.so.15 (hwloc 2),
 * so that programs also start on a node without it. */
#include "spank/gpu/topology.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <hwloc/distances.h>
#include <stdlib.h>

#include "base/status.h"

#define LIBRARY "libhwloc.so.15"
#define SAME_PACKAGE 15
#define OTHER_PACKAGE 21

/* Every function used, as hwloc's header declares it. */
#define FUNCTIONS(USE)                                                                             \
    USE(get_api_version)                                                                           \
    USE(topology_init)                                                                             \
    USE(topology_destroy)                                                                          \
    USE(topology_set_components)                                                                   \
    USE(topology_set_flags)                                                                        \
    USE(topology_set_all_types_filter)                                                             \
    USE(topology_set_type_filter)                                                                  \
    USE(topology_load)                                                                             \
    USE(get_type_depth)                                                                            \
    USE(get_nbobjs_by_depth)                                                                       \
    USE(get_obj_by_depth)                                                                          \
    USE(topology_get_complete_cpuset)                                                              \
    USE(distances_get_by_type)                                                                     \
    USE(distances_release)                                                                         \
    USE(bitmap_alloc)                                                                              \
    USE(bitmap_free)                                                                               \
    USE(bitmap_or)                                                                                 \
    USE(bitmap_list_sscanf)                                                                        \
    USE(bitmap_isset)                                                                              \
    USE(bitmap_intersects)                                                                         \
    USE(bitmap_next)                                                                               \
    USE(bitmap_last)

struct hpct_gpus_topology {
    void *library;
    hwloc_topology_t machine;
    int cpus;
    struct hwloc_distances_s *nodes; /* between NUMA nodes; NULL if the firmware has none */
#define MEMBER(name) __typeof__(&hwloc_##name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

static hpct_status load_library(hpct_gpus_topology *t)
{
    t->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (t->library == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "hwloc 2 (" LIBRARY ") is not installed");
#define LOOK_UP(name)                                                                              \
    *(void **) &t->name = dlsym(t->library, "hwloc_" #name);                                       \
    if (t->name == NULL)                                                                           \
        return hpct_fail(HPCT_ERR_CONFIG, LIBRARY " has no hwloc_" #name);
    FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (t->get_api_version() >> 16 != HWLOC_API_VERSION >> 16)
        return hpct_fail(HPCT_ERR_CONFIG, LIBRARY " is of another major version of hwloc");
    return HPCT_OK;
}

/* Discovers only what is needed (a group has the devices attached to one of a package's NUMA
 * nodes): no caches, none of hwloc's plugins (they would load OpenCL and X11), and no x86 discovery
 * from within each CPU: each of these takes milliseconds or more. */
static hpct_status read_machine(hpct_gpus_topology *t, bool devices)
{
    unsigned count = 1;
    setenv("HWLOC_PLUGINS_PATH", "/var/empty", 0);
    if (t->topology_init(&t->machine) != 0)
        return hpct_fail_memory(0);
    enum hwloc_type_filter_e io =
        devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE;
    if (t->topology_set_components(t->machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86") !=
            0 ||
        t->topology_set_flags(t->machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        t->topology_set_all_types_filter(t->machine, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
        t->topology_set_type_filter(t->machine, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) !=
            0 ||
        t->topology_set_type_filter(t->machine, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        t->topology_set_type_filter(t->machine, HWLOC_OBJ_GROUP,
                                    HWLOC_TYPE_FILTER_KEEP_STRUCTURE) != 0 ||
        t->topology_set_type_filter(t->machine, HWLOC_OBJ_BRIDGE, io) != 0 ||
        t->topology_set_type_filter(t->machine, HWLOC_OBJ_PCI_DEVICE, io) != 0 ||
        t->topology_load(t->machine) != 0)
        return hpct_fail(HPCT_ERR_CONFIG, "hwloc cannot read this machine");
    t->cpus = t->bitmap_last(t->topology_get_complete_cpuset(t->machine)) + 1;
    if (t->cpus < 1)
        return hpct_fail(HPCT_ERR_CONFIG, "hwloc finds no CPU in this machine");
    if (t->distances_get_by_type(t->machine, HWLOC_OBJ_NUMANODE, &count, &t->nodes,
                                 HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
        count == 0)
        t->nodes = NULL;
    return HPCT_OK;
}

hpct_status hpct_gpus_topology_open(bool devices, hpct_gpus_topology **out)
{
    hpct_gpus_topology *t = calloc(1, sizeof *t);
    if (t == NULL)
        return hpct_fail_memory(sizeof *t);
    hpct_status status = load_library(t);
    if (status == HPCT_OK)
        status = read_machine(t, devices);
    if (status != HPCT_OK) {
        hpct_gpus_topology_close(t);
        return status;
    }
    *out = t;
    return HPCT_OK;
}

void hpct_gpus_topology_close(hpct_gpus_topology *t)
{
    if (t == NULL)
        return;
    if (t->nodes != NULL)
        t->distances_release(t->machine, t->nodes);
    if (t->machine != NULL)
        t->topology_destroy(t->machine);
    if (t->library != NULL)
        dlclose(t->library);
    free(t);
}

int hpct_gpus_topology_cpus(const hpct_gpus_topology *t)
{
    return t->cpus;
}

/* The n-th object of a type, NULL if there is none. */
static hwloc_obj_t object(const hpct_gpus_topology *t, hwloc_obj_type_t type, unsigned n)
{
    int depth = t->get_type_depth(t->machine, type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE)
        return NULL;
    return t->get_obj_by_depth(t->machine, depth, n);
}

/* The first package or NUMA node that contains this CPU. */
static hwloc_obj_t holder(const hpct_gpus_topology *t, hwloc_obj_type_t type, int cpu)
{
    for (unsigned n = 0;; n++) {
        hwloc_obj_t one = object(t, type, n);
        if (one == NULL || t->bitmap_isset(one->cpuset, (unsigned) cpu))
            return one;
    }
}

/* Table distance from a NUMA node to the nearest one that intersects `local`; 0: unknown. */
static int table_distance(const hpct_gpus_topology *t, hwloc_obj_t node, hwloc_const_cpuset_t local)
{
    unsigned n = t->nodes == NULL ? 0 : t->nodes->nbobjs, from = 0;
    hwloc_uint64_t best = 0;
    while (from < n && t->nodes->objs[from] != node)
        from++;
    for (unsigned to = 0; from < n && to < n; to++) {
        hwloc_uint64_t one = t->nodes->values[from * n + to];
        hwloc_obj_t there = t->nodes->objs[to];
        if (there != NULL && t->bitmap_intersects(there->cpuset, local) && one > 0 && one < 256 &&
            (best == 0 || one < best))
            best = one;
    }
    return (int) best;
}

static void measure(const hpct_gpus_topology *t, hwloc_const_cpuset_t local, int *distance)
{
    hwloc_const_cpuset_t all = t->topology_get_complete_cpuset(t->machine);
    for (int cpu = 0; cpu < t->cpus; cpu++) {
        distance[cpu] = 0;
        if (!t->bitmap_isset(all, (unsigned) cpu))
            continue;
        distance[cpu] = HPCT_GPUS_DISTANCE_LOCAL;
        if (t->bitmap_isset(local, (unsigned) cpu))
            continue;
        hwloc_obj_t node = holder(t, HWLOC_OBJ_NUMANODE, cpu);
        hwloc_obj_t package = holder(t, HWLOC_OBJ_PACKAGE, cpu);
        distance[cpu] = node == NULL ? 0 : table_distance(t, node, local);
        if (distance[cpu] == 0)
            distance[cpu] = package != NULL && t->bitmap_intersects(package->cpuset, local)
                                ? SAME_PACKAGE
                                : OTHER_PACKAGE;
    }
}

hpct_status hpct_gpus_topology_from_pci(hpct_gpus_topology *t, hpct_gpus_pci pci, int *distance)
{
    hwloc_obj_t one;
    for (unsigned n = 0; (one = object(t, HWLOC_OBJ_PCI_DEVICE, n)) != NULL; n++) {
        const struct hwloc_pcidev_attr_s *at = &one->attr->pcidev;
        if (at->domain == pci.domain && at->bus == pci.bus && at->dev == pci.device &&
            at->func == pci.function)
            break;
    }
    if (one == NULL)
        return hpct_fail(HPCT_ERR_CONFIG, "hwloc knows no PCI device %04x:%02x:%02x.%x", pci.domain,
                         pci.bus, pci.device, pci.function);
    while (one->cpuset == NULL) /* parents of bridges have a cpuset, devices have none */
        one = one->parent;
    measure(t, one->cpuset, distance);
    return HPCT_OK;
}

hpct_status hpct_gpus_topology_from_cores(hpct_gpus_topology *t, const char *cores, int *distance)
{
    hwloc_bitmap_t list = t->bitmap_alloc(), local = t->bitmap_alloc();
    hpct_status status = HPCT_OK;
    bool found = false;
    if (list == NULL || local == NULL) {
        status = hpct_fail_memory(0);
        goto end;
    }
    if (t->bitmap_list_sscanf(list, cores) != 0 || t->bitmap_last(list) < 0) {
        status = hpct_fail(HPCT_ERR_CONFIG, "Cores=%.100s is not a list of cores", cores);
        goto end;
    }
    for (int n = t->bitmap_next(list, -1); n >= 0; n = t->bitmap_next(list, n)) {
        hwloc_obj_t core = object(t, HWLOC_OBJ_CORE, (unsigned) n);
        found = found || core != NULL;
        if (core != NULL)
            t->bitmap_or(local, local, core->cpuset);
    }
    if (found)
        measure(t, local, distance);
    else
        status = hpct_fail(HPCT_ERR_CONFIG, "Cores=%.100s: this machine has none of them", cores);
end:
    t->bitmap_free(list);
    t->bitmap_free(local);
    return status;
}
