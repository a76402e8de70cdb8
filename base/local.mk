# base/: what every part stands on (status and message, loops for each instruction set); depends on libc alone.
noinst_LTLIBRARIES += base/libbase.la
base_libbase_la_SOURCES = base/fp16.h base/status.c base/status.h base/variants.h
hpctrain_HEADERS += include/hpctrain/status.h
