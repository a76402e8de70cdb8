/* Loaded before libc: a name service that never answers, of a host whose address is not a number.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct addrinfo number = *hints;
    *(void **) &real = dlsym(RTLD_NEXT, "getaddrinfo");
    number.ai_flags |= AI_NUMERICHOST;
    int code = real(host, service, &number, out);
    while (code != 0 && (hints->ai_flags & AI_NUMERICHOST) == 0)
        pause();
    return code;
}
