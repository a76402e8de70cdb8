/* base/net/interfaces.h - the IP addresses of this machine's interfaces, as a process of it sees
 * them, and their form as text, in which machines tell them to each other. */
#ifndef HPCT_BASE_NET_INTERFACES_H
#define HPCT_BASE_NET_INTERFACES_H

#include <hpctrain/status.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An IPv4 address is the first four bytes. */
typedef struct hpct_net_address {
    bool v6;
    uint8_t bytes[16];
} hpct_net_address;

typedef struct hpct_net_interface {
    char name[IF_NAMESIZE]; /* an alias has a name of its own, "eth0:1" */
    hpct_net_address address;
    int bits;       /* of the network, from the left */
    uint32_t mbits; /* speed of the link in Mbit/s; 0: the kernel does not know it */
    bool loopback;
} hpct_net_interface;

/* Numbers only: names are not looked up. False if `text` is not an address. */
bool hpct_net_address_parse(const char *text, hpct_net_address *out);
void hpct_net_address_print(const hpct_net_address *address, char text[INET6_ADDRSTRLEN]);
bool hpct_net_address_equal(const hpct_net_address *a, const hpct_net_address *b);

/* Whether both are in one network of so many bits. */
bool hpct_net_address_shares(const hpct_net_address *a, const hpct_net_address *b, int bits);

/* 127.0.0.0/8 and ::1. */
bool hpct_net_address_is_loopback(const hpct_net_address *address);

/* The addresses of the interfaces that are up and running, link-local ones left out, in the order
 * of getifaddrs(3); the first `max` of them, freed by the caller. HPCT_ERR_IO. */
hpct_status hpct_net_interfaces_list(int max, hpct_net_interface **out, int *count);

/* The address that this machine's own name has for its programs: the first of getaddrinfo(3) that
 * is one of `interfaces`, as gloo and others choose it. False if there is none in that time. */
bool hpct_net_interfaces_own_name(const hpct_net_interface *interfaces, int count, int timeout_ms,
                                  hpct_net_address *out);

/* "eth0 10.0.0.1/24 10000", with " lo" behind it for a loopback interface. */
void hpct_net_interface_print(const hpct_net_interface *interface, char *text, size_t size);

/* Of what a machine sent: false unless hpct_net_interface_print wrote it. */
bool hpct_net_interface_parse(const char *text, hpct_net_interface *out);

#endif
