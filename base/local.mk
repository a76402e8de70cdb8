# base/: what every part stands on (status and message, headway, loops for each instruction set); depends on libc alone.
noinst_LTLIBRARIES += base/libbase.la
base_libbase_la_SOURCES = base/auth/key.c base/auth/key.h base/bytes.h base/fp16.h base/headway.c base/headway.h base/nearest.c base/nearest.h base/status.c base/status.h base/variants.h
hpctrain_HEADERS += include/hpctrain/status.h

# base/auth/: what connections prove with the key of a step; it alone calls libcrypto. The key itself needs libc alone.
noinst_LTLIBRARIES += base/auth/libauth.la
base_auth_libauth_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE $(LIBCRYPTO_CFLAGS)
base_auth_libauth_la_LIBADD = $(LIBCRYPTO_LIBS)
base_auth_libauth_la_SOURCES = base/auth/mac.c base/auth/mac.h base/auth/proof.c base/auth/proof.h base/auth/seal.c base/auth/seal.h
