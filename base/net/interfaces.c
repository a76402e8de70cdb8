/* getifaddrs(3); the speed is what sysfs has. */
#include "base/net/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/net/resolve.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_MBITS 100000000

static int size_of(const hpct_net_address *address)
{
    return address->v6 ? 16 : 4;
}

bool hpct_net_address_parse(const char *text, hpct_net_address *out)
{
    *out = (hpct_net_address){0};
    if (inet_pton(AF_INET, text, out->bytes) == 1)
        return true;
    out->v6 = true;
    return inet_pton(AF_INET6, text, out->bytes) == 1;
}

void hpct_net_address_print(const hpct_net_address *address, char text[INET6_ADDRSTRLEN])
{
    inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->bytes, text, INET6_ADDRSTRLEN);
}

bool hpct_net_address_equal(const hpct_net_address *a, const hpct_net_address *b)
{
    return hpct_net_address_shares(a, b, 8 * size_of(a));
}

bool hpct_net_address_shares(const hpct_net_address *a, const hpct_net_address *b, int bits)
{
    const int whole = bits / 8, rest = bits % 8;
    if (a->v6 != b->v6 || memcmp(a->bytes, b->bytes, (size_t) whole) != 0)
        return false;
    return rest == 0 || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0;
}

bool hpct_net_address_is_loopback(const hpct_net_address *address)
{
    const struct in6_addr one = IN6ADDR_LOOPBACK_INIT;
    return address->v6 ? memcmp(address->bytes, &one, sizeof one) == 0 : address->bytes[0] == 127;
}

static bool is_link_local(const hpct_net_address *address)
{
    const uint8_t *b = address->bytes;
    return address->v6 ? b[0] == 0xfe && (b[1] & 0xc0) == 0x80 : b[0] == 169 && b[1] == 254;
}

static bool take_address(const struct sockaddr *from, hpct_net_address *out)
{
    *out = (hpct_net_address){.v6 = from != NULL && from->sa_family == AF_INET6};
    if (from == NULL || (from->sa_family != AF_INET && !out->v6))
        return false;
    if (out->v6)
        memcpy(out->bytes, &((const struct sockaddr_in6 *) (const void *) from)->sin6_addr, 16);
    else
        memcpy(out->bytes, &((const struct sockaddr_in *) (const void *) from)->sin_addr, 4);
    return true;
}

static int count_bits(const hpct_net_address *mask)
{
    int bits = 0;
    for (int i = 0; i < size_of(mask); i++)
        bits += __builtin_popcount(mask->bytes[i]);
    return bits;
}

/* An alias has the speed of its device. */
static uint32_t read_speed(const char *name)
{
    char path[64 + IF_NAMESIZE], text[16] = "";
    long mbits = 0;
    snprintf(path, sizeof path, "/sys/class/net/%.*s/speed", (int) strcspn(name, ":"), name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof text, file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
    return hpct_number_parse(text, 1, MAX_MBITS, &mbits) ? (uint32_t) mbits : 0;
}

static bool take_interface(const struct ifaddrs *from, hpct_net_interface *out)
{
    const unsigned running = IFF_UP | IFF_RUNNING;
    hpct_net_address mask;
    *out = (hpct_net_interface){.loopback = (from->ifa_flags & IFF_LOOPBACK) != 0};
    if ((from->ifa_flags & running) != running || strlen(from->ifa_name) >= sizeof out->name ||
        strchr(from->ifa_name, ' ') != NULL || !take_address(from->ifa_addr, &out->address) ||
        is_link_local(&out->address))
        return false;
    strcpy(out->name, from->ifa_name);
    out->bits = take_address(from->ifa_netmask, &mask) ? count_bits(&mask) : 0;
    out->mbits = read_speed(out->name);
    return true;
}

hpct_status hpct_net_interfaces_list(int max, hpct_net_interface **out, int *count)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0)
        return hpct_fail(HPCT_ERR_IO, "the interfaces of this machine cannot be listed: %s",
                         strerror(errno));
    *count = 0;
    *out = calloc((size_t) max, sizeof **out);
    for (const struct ifaddrs *at = list; *out != NULL && at != NULL && *count < max;
         at = at->ifa_next)
        *count += take_interface(at, &(*out)[*count]);
    freeifaddrs(list);
    return *out == NULL ? hpct_fail_memory((size_t) max * sizeof **out) : HPCT_OK;
}

bool hpct_net_interfaces_own_name(const hpct_net_interface *interfaces, int count, int timeout_ms,
                                  hpct_net_address *out)
{
    char name[256] = "";
    hpct_net_addresses found;
    if (gethostname(name, sizeof name - 1) != 0 ||
        hpct_net_resolve(&found, name, 0, timeout_ms) != HPCT_OK)
        return false;
    for (int i = 0; i < found.num; i++) {
        if (!take_address((const struct sockaddr *) &found.at[i], out))
            continue;
        for (int n = 0; n < count; n++) {
            if (hpct_net_address_equal(&interfaces[n].address, out))
                return true;
        }
        if (hpct_net_address_is_loopback(out)) /* 127.0.1.1 is not listed, but can be bound */
            return true;
    }
    return false;
}

void hpct_net_interface_print(const hpct_net_interface *interface, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    hpct_net_address_print(&interface->address, address);
    snprintf(text, size, "%s %s/%d %u%s", interface->name, address, interface->bits,
             interface->mbits, interface->loopback ? " lo" : "");
}

bool hpct_net_interface_parse(const char *text, hpct_net_interface *out)
{
    char copy[128], *rest = NULL;
    long bits = 0, mbits = 0;
    *out = (hpct_net_interface){0};
    if (strlen(text) >= sizeof copy)
        return false;
    strcpy(copy, text);
    const char *name = strtok_r(copy, " ", &rest), *address = strtok_r(NULL, "/", &rest),
               *width = strtok_r(NULL, " ", &rest), *speed = strtok_r(NULL, " ", &rest),
               *mark = strtok_r(NULL, " ", &rest);
    if (speed == NULL || strlen(name) >= sizeof out->name || (mark != NULL && strcmp(mark, "lo")) ||
        !hpct_net_address_parse(address, &out->address) ||
        !hpct_number_parse(width, 0, 8 * size_of(&out->address), &bits) ||
        !hpct_number_parse(speed, 0, MAX_MBITS, &mbits))
        return false;
    strcpy(out->name, name);
    out->bits = (int) bits;
    out->mbits = (uint32_t) mbits;
    out->loopback = mark != NULL;
    return true;
}
