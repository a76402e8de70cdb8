# base/: what every part stands on (status and message); depends on libc alone.
noinst_LTLIBRARIES += base/libbase.la
base_libbase_la_SOURCES = base/status.c base/status.h
hpctrain_HEADERS += include/hpctrain/status.h
