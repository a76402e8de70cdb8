/* spank: which network srun chooses from what the nodes report, the messages in which they do, the
 * option's value, and the variables that programs get. Interfaces are described as text, one node
 * each: "NAME=OWN ADDRESS;INTERFACE;…", with an interface as it is sent. */
#include "base/status.h"
#include "spank/agree/network_frames.h"
#include "spank/network.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 4

static hpct_agree_network_node nodes[MOST];
static hpct_agree_network_part parts[MOST];
static unsigned changes;

static void take_line(hpct_agree_network_node *node, const char *text, uint8_t status)
{
    hpct_net_frame frame = {.type = HPCT_NET_FRAME_NETWORK, .status = status};
    hpct_net_frame_set(frame.text, sizeof frame.text, text);
    assert_true(hpct_agree_network_take_report(node, &frame));
}

static void describe(int index, const char *text)
{
    char copy[512], *rest = copy, *part;
    hpct_agree_network_node *node = &nodes[index];
    snprintf(copy, sizeof copy, "%s", text);
    char *name = strsep(&rest, ";"), *own = strchr(name, '=');
    *own++ = '\0';
    snprintf(node->name, sizeof node->name, "%s", name);
    if (*own != '\0')
        take_line(node, own, 1);
    while (rest != NULL && (part = strsep(&rest, ";")) != NULL)
        take_line(node, part, 0);
}

static hpct_status choose(const char *wish, const char *const *texts)
{
    hpct_spec_network network;
    uint32_t count = 0;
    memset(parts, 0, sizeof parts);
    assert_int_equal(hpct_spec_network_parse(wish, &network), HPCT_OK);
    for (; count < MOST && texts[count] != NULL; count++)
        describe((int) count, texts[count]);
    hpct_status status = hpct_agree_network_choose(&network, nodes, count, parts, &changes);
    for (uint32_t i = 0; i < count; i++)
        hpct_agree_network_node_free(&nodes[i]);
    return status;
}

/* "a,b ADDRESS" of each node, with " | " between them. */
static const char *chosen(void)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < MOST && parts[i].interfaces[0] != '\0'; i++)
        used += (size_t) snprintf(text + used, sizeof text - used, "%s%s %s", i > 0 ? " | " : "",
                                  parts[i].interfaces, parts[i].address);
    return text;
}

#define LO "lo 127.0.0.1/8 0 lo"

TEST(a_healthy_cluster_is_left_alone)
{
    const char *const plain[] = {"n1=10.0.0.1;" LO ";eth0 10.0.0.1/24 1000;eth1 10.1.0.1/24 10000",
                                 "n2=10.0.0.2;" LO ";eth0 10.0.0.2/24 1000;eth1 10.1.0.2/24 10000",
                                 NULL};
    const char *const docker[] = {"n1=10.0.0.1;eth0 10.0.0.1/24 0;docker0 172.17.0.1/16 0",
                                  "n2=10.0.0.2;eth0 10.0.0.2/24 0;docker0 172.17.0.1/16 0", NULL};
    const char *const alone[] = {"n1=127.0.1.1;" LO ";eth0 10.0.0.1/24 1000", NULL};
    assert_int_equal(choose("auto", plain), HPCT_OK);
    assert_int_equal(changes, 0);
    assert_int_equal(choose("auto", docker), HPCT_OK); /* both libraries leave docker0 out */
    assert_int_equal(changes, 0);
    assert_int_equal(choose("auto", alone), HPCT_OK);
    assert_int_equal(changes, 0);
    assert_int_equal(choose("off", plain), HPCT_OK);
    assert_int_equal(changes, 0);
}

TEST(names_that_lead_nowhere_are_replaced)
{
    const unsigned both = HPCT_AGREE_NETWORK_ADDRESSES | HPCT_AGREE_NETWORK_GLOO;
    const char *const debian[] = {
        "n1=127.0.1.1;" LO ";eth0 10.0.0.1/24 1000;eth1 10.1.0.1/24 10000",
        "n2=10.0.0.2;" LO ";ens5 10.1.0.2/24 10000;eth0 10.0.0.2/24 1000", NULL};
    const char *const unknown[] = {"n1=10.0.0.1;eth0 10.0.0.1/24 0", "n2=;eth0 10.0.0.2/24 0",
                                   NULL};
    const char *const bridged[] = {"n1=172.17.0.1;eth0 10.0.0.1/24 0;docker0 172.17.0.1/16 0",
                                   "n2=172.17.0.1;eth0 10.0.0.2/24 0;docker0 172.17.0.1/16 0",
                                   NULL};
    const char *const six[] = {"n1=::1;eth0 fd00::1/64 100", "n2=::1;eth0 fd00::2/64 100", NULL};
    assert_int_equal(choose("auto", debian), HPCT_OK);
    assert_int_equal(changes, both);
    assert_string_equal(chosen(), "eth1 10.1.0.1 | ens5 10.1.0.2"); /* the faster */
    assert_int_equal(choose("auto", unknown), HPCT_OK);
    assert_int_equal(changes, both);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | eth0 10.0.0.2");
    assert_int_equal(choose("auto", bridged), HPCT_OK);
    assert_int_equal(changes, both);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | eth0 10.0.0.2");
    assert_int_equal(choose("auto", six), HPCT_OK);
    assert_string_equal(chosen(), "eth0 fd00::1 | eth0 fd00::2");
}

TEST(the_network_is_one_of_all_nodes)
{
    const char *const slow_node[] = {"n1=;a 10.0.0.1/24 10000;b 10.1.0.1/24 1000",
                                     "n2=;a 10.0.0.2/24 100;b 10.1.0.2/24 1000", NULL};
    const char *const partly[] = {"n1=;a 10.0.0.1/24 10000;b 10.1.0.1/24 1000",
                                  "n2=;b 10.1.0.2/24 1000", NULL};
    const char *const nothing[] = {"n1=;a 10.0.0.1/24 0", "n2=;a 10.1.0.1/24 0", NULL};
    const char *const both[] = {"n1=;a fd00::1/64 0;a 10.0.0.1/24 0",
                                "n2=;a fd00::2/64 0;a 10.0.0.2/24 0", NULL};
    assert_int_equal(choose("auto", slow_node), HPCT_OK);
    assert_string_equal(chosen(), "b 10.1.0.1 | b 10.1.0.2");
    assert_int_equal(choose("auto", partly), HPCT_OK);
    assert_string_equal(chosen(), "b 10.1.0.1 | b 10.1.0.2");
    assert_int_equal(choose("auto", nothing), HPCT_OK);
    assert_int_equal(changes, 0);
    assert_int_equal(choose("auto", both), HPCT_OK);
    assert_string_equal(chosen(), "a 10.0.0.1 | a 10.0.0.2");
}

TEST(nccl_is_changed_where_bridges_mislead_it)
{
    const char *const bridges[] = {"n1=10.0.0.1;br-1 172.18.0.1/16 0;eth0 10.0.0.1/24 0",
                                   "n2=10.0.0.2;br-1 172.18.0.1/16 0;eth0 10.0.0.2/24 0", NULL};
    const char *const fabric[] = {
        "n1=10.0.0.1;br-1 172.18.0.1/16 0;eth0 10.0.0.1/24 0;ib0 1.0.0.1/8 0",
        "n2=10.0.0.2;br-1 172.18.0.1/16 0;eth0 10.0.0.2/24 0;ib0 1.0.0.2/8 0", NULL};
    assert_int_equal(choose("auto", bridges), HPCT_OK);
    assert_int_equal(changes, HPCT_AGREE_NETWORK_NCCL);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | eth0 10.0.0.2");
    assert_int_equal(choose("auto", fabric), HPCT_OK);
    assert_int_equal(changes, 0);
}

TEST(a_named_network_is_used_or_refused)
{
    const char *const two[] = {
        "n1=10.0.0.1;" LO ";eth0 10.0.0.1/24 0;hsn0 10.1.0.1/16 0;hsn1 10.2.0.1/16 0",
        "n2=10.0.0.2;" LO ";eth0 10.0.0.2/24 0;hsn0 10.1.0.2/16 0;hsn1 10.2.0.2/16 0", NULL};
    const char *const other[] = {"n1=;eth0 10.0.0.1/24 0", "n2=;ens5 10.0.0.2/24 0", NULL};
    const char *const docker[] = {"n1=;docker0 172.17.0.1/16 0", "n2=;docker0 172.17.0.1/16 0",
                                  NULL};
    const char *const local[] = {"n1=;eth0 127.0.0.2/8 0", "n2=;eth0 127.0.0.2/8 0", NULL};
    const char *const alias[] = {"n1=;eth0 1.0.0.1/24 0;eth0:1 10.0.0.1/24 0;eth0 fd00::1/64 0",
                                 NULL};
    assert_int_equal(choose("hsn0,hsn1", two), HPCT_OK);
    assert_int_equal(changes, HPCT_AGREE_NETWORK_ALL);
    assert_string_equal(chosen(), "hsn0,hsn1 10.1.0.1 | hsn0,hsn1 10.1.0.2");
    assert_int_equal(choose("10.0.0.0/24", two), HPCT_OK);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | eth0 10.0.0.2");
    assert_int_equal(choose("10.0.0.0/8", other), HPCT_OK);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | ens5 10.0.0.2");
    assert_int_equal(choose("eth0,ens5", other), HPCT_OK);
    assert_string_equal(chosen(), "eth0 10.0.0.1 | ens5 10.0.0.2");
    assert_int_equal(choose("eth0:1", alias), HPCT_OK);
    assert_string_equal(chosen(), "eth0:1 10.0.0.1");
    assert_int_equal(choose("fd00::/8", alias), HPCT_OK);
    assert_string_equal(chosen(), "eth0 fd00::1");
    assert_int_equal(choose("127.0.0.0/8", local), HPCT_ERR_CONFIG);
    assert_int_equal(choose("eth0", other), HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(), "n2 has no address on eth0; it has ens5=10.0.0.2");
    assert_int_equal(choose("10.9.0.0/16,fd00::/8", two), HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(),
                        "n1 has no address on 10.9.0.0/16,fd00::/8; it has eth0=10.0.0.1 "
                        "hsn0=10.1.0.1 hsn1=10.2.0.1");
    assert_int_equal(choose("docker0", docker), HPCT_ERR_CONFIG);
    assert_string_equal(hpct_last_error(), "n1 has 172.17.0.1 on docker0, and so has n2: they "
                                           "cannot reach each other");
}

TEST(values_are_checked)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "eth0,",
                                        "eth0,10.0.0.0/8",
                                        "1/2/3",
                                        "10.0.0/8",
                                        "10.0.0.0/",
                                        "10.0.0.0/33",
                                        "a b",
                                        "fd00::/129",
                                        "a23456789012345678",
                                        "a,b,c,d,e,f,g,h,i"};
    static const char *const right[] = {"auto", "off", "eth0", "ib0:1,br-12.5",
                                        "10.0.0.0/8,fd00::/7"};
    hpct_spec_network network;
    char text[256];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(hpct_spec_network_parse(wrong[i], &network), HPCT_ERR_USAGE);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(hpct_spec_network_parse(right[i], &network), HPCT_OK);
        assert_string_equal(hpct_spec_network_print(&network, text, sizeof text), right[i]);
    }
}

TEST(invalid_reports_are_refused)
{
    static const char *const wrong[] = {"",
                                        "eth0",
                                        "eth0 10.0.0.1",
                                        "eth0 10.0.0.1/24",
                                        "eth0 10.0.0.1/33 0",
                                        "eth0 10.0.0.1/24 -1",
                                        "eth0 10.0.0.1/24 0 up",
                                        "eth0 node1/24 0",
                                        "a2345678901234567 10.0.0.1/24 0"};
    hpct_agree_network_node node = {0};
    hpct_net_frame frame = {.type = HPCT_NET_FRAME_NETWORK};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hpct_net_frame_set(frame.text, sizeof frame.text, wrong[i]);
        assert_false(hpct_agree_network_take_report(&node, &frame));
    }
    frame.status = 1;
    assert_false(hpct_agree_network_take_report(&node, &frame));
    frame.status = 0;
    hpct_net_frame_set(frame.text, sizeof frame.text, "eth0 10.0.0.1/24 0");
    while (node.count < HPCT_AGREE_NETWORK_INTERFACES)
        assert_true(hpct_agree_network_take_report(&node, &frame));
    assert_false(hpct_agree_network_take_report(&node, &frame));
    hpct_agree_network_node_free(&node);
}

/* What this machine reports is what srun takes. */
TEST(a_report_survives_its_messages)
{
    hpct_agree_network_node own, taken = {0};
    hpct_net_frame frame;
    char a[128], b[128];
    assert_int_equal(hpct_agree_network_look(&own, true), HPCT_OK);
    for (int i = 0; hpct_agree_network_make_report(&own, i, &frame); i++)
        assert_true(hpct_agree_network_take_report(&taken, &frame));
    assert_int_equal(taken.count, own.count);
    assert_int_equal(taken.has_own, own.has_own);
    for (int i = 0; i < own.count; i++) {
        hpct_net_interface_print(&own.interfaces[i], a, sizeof a);
        hpct_net_interface_print(&taken.interfaces[i], b, sizeof b);
        assert_string_equal(a, b);
    }
    hpct_agree_network_node_free(&own);
    hpct_agree_network_node_free(&taken);
}

enum { MANY = 1000 };

TEST(every_node_gets_every_address)
{
    hpct_agree_network_part *all = calloc(MANY, sizeof *all);
    hpct_agree_network *got = calloc(1, sizeof *got);
    hpct_agree_network_decision decision = {
        .changes = HPCT_AGREE_NETWORK_ALL, .parts = all, .count = MANY};
    hpct_net_frame frame;
    for (int i = 0; i < MANY; i++) {
        snprintf(all[i].address, sizeof all[i].address, i % 2 == 0 ? "10.0.%d.%d" : "fd00::%d:%d",
                 i / 250 + 1, i % 250 + 1);
        snprintf(all[i].interfaces, sizeof all[i].interfaces, "eth%d", i);
    }
    for (uint32_t i = 0; i < hpct_agree_network_count_frames(&decision); i++) {
        hpct_agree_network_make_frame(&decision, 7, i, &frame);
        assert_true(hpct_agree_network_take_decision(got, MANY, &frame));
    }
    assert_string_equal(got->part.interfaces, "eth7");
    assert_string_equal(got->part.address, all[7].address);
    assert_int_equal(got->num_addresses, MANY);
    for (int i = 0; i < MANY; i++)
        assert_string_equal(got->addresses[i], all[i].address);
    assert_false(hpct_agree_network_take_decision(got, MANY, &frame)); /* once */
    decision.changes = HPCT_AGREE_NETWORK_NCCL;
    assert_int_equal(hpct_agree_network_count_frames(&decision), 1);
    decision.changes = 0;
    assert_int_equal(hpct_agree_network_count_frames(&decision), 0);
    free(all);
    free(got);
}

/* ---- variables ------------------------------------------------------------------------------- */

static const char *const *environment; /* NAME, value, …, NULL */
static char set_text[1024];

static const char *get(void *context, const char *name)
{
    (void) context;
    for (const char *const *at = environment; *at != NULL; at += 2) {
        if (strcmp(at[0], name) == 0)
            return at[1];
    }
    return NULL;
}

static hpct_status set(void *context, const char *name, const char *value)
{
    const size_t used = strlen(set_text);
    (void) context;
    if (strcmp(name, HPCT_SPANK_NETWORK_SET) != 0)
        snprintf(set_text + used, sizeof set_text - used, value == NULL ? "-%s " : "%s=%s ", name,
                 value);
    return HPCT_OK;
}

static const char *emit(unsigned what, const char *interfaces, unsigned frameworks, bool first,
                        const char *const *variables)
{
    hpct_agree_network *network = calloc(1, sizeof *network);
    const hpct_cluster_environment of = {.get = get};
    environment = variables;
    set_text[0] = '\0';
    network->changes = what;
    snprintf(network->part.interfaces, sizeof network->part.interfaces, "%s", interfaces);
    snprintf(network->part.address, sizeof network->part.address, "10.0.0.1");
    assert_int_equal(hpct_spank_network_emit(network, frameworks, first, &of, set, NULL), HPCT_OK);
    free(network);
    return set_text;
}

static const char *const nothing[] = {"HOME", "/nowhere", "PATH", "/nowhere", NULL};

TEST(programs_are_told)
{
    assert_string_equal(
        emit(HPCT_AGREE_NETWORK_ALL, "hsn0,hsn1:2", HPCT_CLUSTER_FRAMEWORK_ALL, true, nothing),
        "HPC_TRAIN_INTERFACE=hsn0 HPC_TRAIN_ADDRESS=10.0.0.1 GLOO_SOCKET_IFNAME=hsn0 "
        "TP_SOCKET_IFNAME=hsn0 HOROVOD_GLOO_IFACE=hsn0 PET_RDZV_CONF=is_host=1 "
        "NCCL_SOCKET_IFNAME==hsn0,hsn1 OMPI_MCA_btl_tcp_if_include=hsn0,hsn1:2 FI_TCP_IFACE=hsn0 ");
    assert_string_equal(emit(HPCT_AGREE_NETWORK_GLOO | HPCT_AGREE_NETWORK_ADDRESSES, "eth0",
                             HPCT_CLUSTER_FRAMEWORK_TORCH, false, nothing),
                        "HPC_TRAIN_INTERFACE=eth0 HPC_TRAIN_ADDRESS=10.0.0.1 "
                        "GLOO_SOCKET_IFNAME=eth0 TP_SOCKET_IFNAME=eth0 HOROVOD_GLOO_IFACE=eth0 "
                        "PET_RDZV_CONF=is_host=0 ");
    assert_string_equal(emit(HPCT_AGREE_NETWORK_ALL, "eth0", 0, false, nothing),
                        "HPC_TRAIN_INTERFACE=eth0 HPC_TRAIN_ADDRESS=10.0.0.1 ");
    assert_string_equal(emit(0, "", HPCT_CLUSTER_FRAMEWORK_ALL, true, nothing), "");
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(choices_of_others_stay)
{
    char home[] = "/tmp/hpct-network-XXXXXX", path[64];
    assert_non_null(mkdtemp(home));
    const char *const own[] = {
        "GLOO_SOCKET_IFNAME", "eth7", "OMPI_MCA_btl_tcp_if_exclude", "lo", "HOME", home, "PATH",
        "/nowhere",           NULL};
    const char *const outer[] = {"GLOO_SOCKET_IFNAME",
                                 "eth7",
                                 "TP_SOCKET_IFNAME",
                                 "eth7",
                                 HPCT_SPANK_NETWORK_SET,
                                 "GLOO_SOCKET_IFNAME=eth7 TP_SOCKET_IFNAME=eth70",
                                 "HOME",
                                 "/nowhere",
                                 NULL};
    const unsigned all = HPCT_CLUSTER_FRAMEWORK_TORCH | HPCT_CLUSTER_FRAMEWORK_MPI;
    write_file(home, ".nccl.conf", "# mine\nNCCL_SOCKET_IFNAME=eth3\n");
    assert_string_equal(emit(HPCT_AGREE_NETWORK_ALL, "eth0", all, true, own),
                        "HPC_TRAIN_INTERFACE=eth0 HPC_TRAIN_ADDRESS=10.0.0.1 TP_SOCKET_IFNAME=eth0 "
                        "HOROVOD_GLOO_IFACE=eth0 PET_RDZV_CONF=is_host=1 FI_TCP_IFACE=eth0 ");
    /* a step within a step: the outer one's variables are not the user's, unless changed */
    assert_string_equal(emit(0, "", all, true, outer), "-GLOO_SOCKET_IFNAME ");
    /* a pipe is not waited for */
    snprintf(path, sizeof path, "%s/.nccl.conf", home);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_non_null(strstr(emit(HPCT_AGREE_NETWORK_NCCL, "eth0", all, true, own), "NCCL"));
    /* a site's mpirun has a file with a network */
    snprintf(path, sizeof path, "%s/bin", home);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "mpirun", "");
    chmod(strcat(path, "/mpirun"), 0700);
    snprintf(path, sizeof path, "%s/etc", home);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(path, "openmpi-mca-params.conf", " btl_tcp_if_exclude = docker0\n");
    snprintf(path, sizeof path, "/nowhere:%s/bin", home);
    const char *const site[] = {"HOME", "/nowhere", "PATH", path, NULL};
    assert_null(strstr(emit(HPCT_AGREE_NETWORK_MPI, "eth0", all, true, site), "OMPI"));
    assert_non_null(strstr(emit(HPCT_AGREE_NETWORK_MPI, "eth0", all, true, nothing), "OMPI"));
}
