# base/: what every part stands on (status and message, progress counter, loops for each instruction set); depends on libc alone.
noinst_LTLIBRARIES += base/libbase.la
base_libbase_la_SOURCES = \
	base/auth/forget.c base/auth/forget.h base/auth/key.c base/auth/key.h base/bytes.h base/clock.c base/clock.h \
	base/fd.c base/fd.h base/fp16.h base/links.c base/links.h base/nearest.c base/nearest.h base/net/interfaces.c \
	base/net/interfaces.h base/net/resolve.c base/net/resolve.h base/number.c base/number.h base/progress.c \
	base/progress.h base/status.c base/status.h base/thread.c base/thread.h base/variants.h
hpctrain_HEADERS += include/hpctrain/status.h

# What the plugin does without: files read and written, this process' memory and times, and what nn/ and agent/ tell each other.
noinst_LTLIBRARIES += base/libfile.la
base_libfile_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(XXHASH_CFLAGS)
base_libfile_la_LIBADD = $(XXHASH_LIBS)
base_libfile_la_SOURCES = \
	base/alloc.c base/alloc.h \
	base/ask.c base/ask.h \
	base/below.c base/below.h \
	base/debug.c base/debug.h \
	base/device_calls.h \
	base/digest.c base/digest.h \
	base/drawn.h \
	base/host_and_device.h \
	base/file.c base/file.h \
	base/fnv.h \
	base/hint.c base/hint.h \
	base/kind.c base/kind.h \
	base/memory.c base/memory.h \
	base/output.c base/output.h \
	base/process.c base/process.h \
	base/protobuf.c base/protobuf.h \
	base/sort.c base/sort.h \
	base/tried.c base/tried.h \
	base/word_list.h

# base/auth/: what connections prove with the key of a step; it alone calls libcrypto. The key itself needs libc alone.
noinst_LTLIBRARIES += base/auth/libauth.la
base_auth_libauth_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(LIBCRYPTO_CFLAGS)
base_auth_libauth_la_LIBADD = $(LIBCRYPTO_LIBS)
base_auth_libauth_la_SOURCES = base/auth/mac.c base/auth/mac.h base/auth/proof.c base/auth/proof.h base/auth/seal.c base/auth/seal.h

# base/net/: connections whose ends have proved themselves so; for plugin and ranks. What links it links base/auth/libauth.la, too.
noinst_LTLIBRARIES += base/net/libnet.la
base_net_libnet_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
base_net_libnet_la_SOURCES = \
	base/net/acceptor.c base/net/acceptor.h \
	base/net/frame.c base/net/frame.h \
	base/net/link.c base/net/link.h \
	base/net/session.c base/net/session.h

include base/cluster/local.mk
