# etc/: configuration, job scripts, examples, the one-machine cluster.
include etc/examples/local.mk
EXTRA_DIST += etc/sandbox/common etc/sandbox/controller etc/sandbox/enter etc/sandbox/node etc/sandbox/sandbox \
	etc/sandbox/supervisor quickstart

# An example for the administrator to copy; nothing is put under /etc.
plugstackdir = $(pkgdatadir)/plugstack.conf.d
plugstack_DATA = etc/plugstack.conf.d/hpc-train.conf
EXTRA_DIST += etc/plugstack.conf.d/hpc-train.conf.in
CLEANFILES += $(plugstack_DATA)
etc/plugstack.conf.d/hpc-train.conf: etc/plugstack.conf.d/hpc-train.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SED) -e 's|@bindir[@]|$(bindir)|g' -e 's|@spankdir[@]|$(spankdir)|g' \
	  -e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
	  $(srcdir)/etc/plugstack.conf.d/hpc-train.conf.in >$@
