/* What nodes and srun tell each other about networks. The first line is the option's value; then,
 * one line each, "n " an interface and "o " the own name of a node, "-" the next node, "d " and "a
 * " what srun answers. */
#include "spank/agree/network_frames.h"
#include "tests/fuzz/fuzz.h"

#define MOST 4

static hpct_agree_network_node nodes[MOST];
static hpct_agree_network_part parts[MOST];
static hpct_agree_network answer;

static hpct_net_frame make_frame(const char *line)
{
    hpct_net_frame frame = {.type =
                                line[0] == 'a' ? HPCT_NET_FRAME_ADDRESSES : HPCT_NET_FRAME_NETWORK,
                            .status = line[0] == 'o',
                            .rank = answer.num_addresses};
    const char *text = line[0] != '\0' && line[1] != '\0' ? line + 2 : "";
    hpct_net_frame_set(frame.text, sizeof frame.text, text);
    hpct_net_frame_set(frame.node, sizeof frame.node, text);
    return frame;
}

/* Every node is on the network, and each address is its node's alone. */
static void check(uint32_t count)
{
    for (uint32_t n = 0; n < count; n++) {
        hpct_net_address address, other;
        if (parts[n].interfaces[0] == '\0' || !hpct_net_address_parse(parts[n].address, &address))
            abort();
        for (uint32_t m = 0; m < n; m++) {
            if (!hpct_net_address_parse(parts[m].address, &other) ||
                hpct_net_address_equal(&address, &other))
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = calloc(1, size + 1), *rest = text, *line;
    hpct_spec_network wish;
    uint32_t count = 1;
    unsigned changes = 0;
    must(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    answer.num_addresses = 0;
    if (hpct_spec_network_parse(strsep(&rest, "\n"), &wish) == HPCT_OK) {
        while ((line = strsep(&rest, "\n")) != NULL) {
            const hpct_net_frame frame = make_frame(line);
            if (line[0] == '-' && count < MOST)
                count++;
            else if (line[0] == 'd' || line[0] == 'a')
                hpct_agree_network_take_decision(&answer, MOST, &frame);
            else
                hpct_agree_network_take_report(&nodes[count - 1], &frame);
        }
        must(answer.num_addresses <= MOST);
        if (hpct_agree_network_choose(&wish, nodes, count, parts, &changes) == HPCT_OK &&
            changes != 0)
            check(count);
    }
    for (int n = 0; n < MOST; n++)
        hpct_agree_network_node_free(&nodes[n]);
    free(text);
    return 0;
}
