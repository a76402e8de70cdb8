# etc/: configuration, job scripts, examples, the one-machine cluster.
include etc/examples/local.mk
EXTRA_DIST += etc/sandbox/common etc/sandbox/controller etc/sandbox/enter etc/sandbox/node etc/sandbox/sandbox \
	etc/sandbox/supervisor quickstart

# Slurm reads this where plugstack.conf has `include plugstack.conf.d/*.conf`. What an administrator
# has changed there stays as it is.
noinst_DATA += etc/plugstack.conf.d/hpc-train.conf
EXTRA_DIST += etc/plugstack.conf.d/hpc-train.conf.in
CLEANFILES += etc/plugstack.conf.d/hpc-train.conf
etc/plugstack.conf.d/hpc-train.conf: etc/plugstack.conf.d/hpc-train.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SED) -e 's|@bindir[@]|$(bindir)|g' -e 's|@spankdir[@]|$(spankdir)|g' \
	  -e 's|@pkglibexecdir[@]|$(pkglibexecdir)|g' \
	  $(srcdir)/etc/plugstack.conf.d/hpc-train.conf.in >$@
plugstack_installed = $(DESTDIR)$(slurmconfdir)/plugstack.conf.d/hpc-train.conf
install-plugstack: etc/plugstack.conf.d/hpc-train.conf
	@if [ -e "$(plugstack_installed)" ] && ! cmp -s $< "$(plugstack_installed)"; then \
	  echo "$(plugstack_installed) has been changed and stays; the new one is $$(pwd)/$<"; \
	else \
	  $(MKDIR_P) "$(DESTDIR)$(slurmconfdir)/plugstack.conf.d" && $(INSTALL_DATA) $< "$(plugstack_installed)"; \
	fi
uninstall-plugstack:
	@if cmp -s etc/plugstack.conf.d/hpc-train.conf "$(plugstack_installed)"; then rm -f "$(plugstack_installed)"; fi

# import hpc_train, with this folder in PYTHONPATH. It looks for the command at ../../../bin.
pythonmoduledir = $(datadir)/hpc-train/python
dist_pythonmodule_DATA = etc/python/hpc_train.py

# systemd reads it where the prefix is /usr or /usr/local.
tmpfilesdir = $(prefix)/lib/tmpfiles.d
dist_tmpfiles_DATA = etc/tmpfiles.d/hpc-train.conf

# bash loads the first ones for a command of that name, and the last when it starts: Slurm has files
# of its own for its commands.
completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = etc/completion/hpc-train etc/completion/hpc-train-stage
startcompletiondir = $(sysconfdir)/bash_completion.d
dist_startcompletion_DATA = etc/completion/hpc-train-slurm
install-data-hook: install-plugstack
uninstall-hook: uninstall-plugstack
.PHONY: install-plugstack uninstall-plugstack
