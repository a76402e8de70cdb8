/* A step's key: in memory, as text, in a file. */
#include "base/auth/key.h"

#include "base/fd.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char digits[] = "0123456789abcdef";

hpct_status hpct_auth_key_draw(hpct_auth_key *key)
{
    size_t filled = 0;
    while (filled < sizeof key->bytes) {
        ssize_t got = getrandom(key->bytes + filled, sizeof key->bytes - filled, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return hpct_fail(HPCT_ERR_INTERNAL, "getrandom: %s", strerror(errno));
        filled += (size_t) got;
    }
    return HPCT_OK;
}

void hpct_auth_key_to_text(char text[HPCT_AUTH_KEY_TEXT], const hpct_auth_key *key)
{
    for (int i = 0; i < HPCT_AUTH_KEY_BYTES; i++) {
        text[2 * i] = digits[key->bytes[i] >> 4];
        text[2 * i + 1] = digits[key->bytes[i] & 15];
    }
    text[HPCT_AUTH_KEY_TEXT - 1] = '\0';
}

bool hpct_auth_key_from_text(hpct_auth_key *key, const char *text)
{
    size_t length = strnlen(text, HPCT_AUTH_KEY_TEXT + 1);
    if (length == HPCT_AUTH_KEY_TEXT && text[length - 1] == '\n')
        length--;
    if (length != HPCT_AUTH_KEY_TEXT - 1)
        return false;
    for (size_t i = 0; i < length; i++) {
        const char *digit = memchr(digits, text[i], sizeof digits - 1);
        if (digit == NULL)
            return false;
        uint8_t value = (uint8_t) (digit - digits);
        key->bytes[i / 2] = (uint8_t) (i % 2 == 0 ? value << 4 : key->bytes[i / 2] | value);
    }
    return true;
}

hpct_status hpct_auth_key_new(hpct_auth_key **out)
{
    void *page =
        mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return hpct_fail_memory(sizeof **out);
    madvise(page, sizeof **out, MADV_DONTDUMP);
    *out = page;
    return HPCT_OK;
}

void hpct_auth_key_free(hpct_auth_key *key)
{
    if (key == NULL)
        return;
    explicit_bzero(key, sizeof *key);
    munmap(key, sizeof *key);
}

/* Reason why the file must not be used for a secret of this user, or NULL. */
static const char *find_fault(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return strerror(errno);
    if (!S_ISREG(info.st_mode))
        return "it is not a plain file";
    if (info.st_uid != geteuid())
        return "it belongs to another user";
    if ((info.st_mode & 077) != 0)
        return "others may read it: its mode must be 0600";
    return NULL;
}

hpct_status hpct_auth_key_read(hpct_auth_key **out, const char *path)
{
    char text[HPCT_AUTH_KEY_TEXT + 2];
    hpct_auth_key *key = NULL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: %s", path, strerror(errno));
    const char *fault = find_fault(fd);
    const ssize_t length = fault == NULL ? hpct_fd_read(fd, text, sizeof text - 1) : -1;
    if (fault == NULL && length < 0)
        fault = strerror(errno);
    close(fd);
    if (length < 0)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: %s", path, fault);
    HPCT_TRY(hpct_auth_key_new(&key));
    hpct_status status = HPCT_OK;
    text[length] = '\0';
    if (strlen(text) != (size_t) length || !hpct_auth_key_from_text(key, text)) {
        hpct_auth_key_free(key);
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "%s holds no key of 64 hexadecimal digits: "
                           "head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' makes such a key",
                           path);
    }
    explicit_bzero(text, sizeof text);
    if (status == HPCT_OK)
        *out = key;
    return status;
}
