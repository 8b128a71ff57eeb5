# libstrand. `make help` lists what can be made and with which variables.
#
# The targets of the first part look whether the packages that they need are there (tools/setup.sh) and then call this
# file again, in parallel, for the targets of the second part, which are named do-*. Packages are installed by make setup
# alone, which make demo and make test call first. All output goes to build/: the release mode right there, the
# other modes to a folder of their own.

MODE ?= release
HARDENED ?=
JOBS ?= $(shell nproc)
CLANG ?= clang-19
CLANGXX ?= clang++-19
FORMAT ?= clang-format-14
MODES := release debug asan tsan coverage

ifeq ($(filter $(MODE),$(MODES)),)
$(error MODE is one of: $(MODES))
endif
# The modes of a matrix choose for themselves, unless somebody has.
unchosen := $(and $(filter default,$(origin CC)),$(filter default,$(origin CXX)))
ifeq ($(origin CC),default)
CC := $(if $(filter tsan,$(MODE)),$(CLANG),gcc)
endif
ifeq ($(origin CXX),default)
CXX := $(if $(filter tsan,$(MODE)),$(CLANGXX),g++)
endif
export CC CXX

OUT ?= build$(if $(filter-out release,$(MODE)),/$(MODE))$(if $(STEPS),/steps)
# Criterion's own processes do not bear the sanitizers and valgrind; the plain runner of tests/harness does.
RUNNER ?= $(if $(filter asan tsan coverage,$(MODE)),plain,criterion)

# What the tests run with; empty means the default of tools/run-tests.sh for this mode.
SCHED ?=
STACKS ?=
THREADS ?=
SEEDS ?=
SCALE ?=
BENCH ?=
SIM ?=
MUTANTS ?=
SHORT ?=
ALL ?=

# Where make install puts things; DESTDIR is put in front of all of it, for packages.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/strand
# gdb looks below the system's folder only, also for what is in /usr/local.
GDBDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/usr,$(PREFIX))/share/gdb/auto-load
DESTDIR ?=
MAN ?= yes

# What make setup installs the packages for: groups of tools/setup.sh.
GROUPS ?= all

# How many seconds make fuzz looks for inputs.
FUZZ_S ?= 600

# ---- the first part: what a person calls ----------------------------------------------------------------------------

# Every switch and every throw looks alike to valgrind, and each test takes a second.
valgrind-part := try cleanup exception scope spawn stacks wait fibre fibre_wait census

# Each test once, and a few seeds.
short-coverage = SCHED="$(or $(SCHED),stealing)" THREADS="$(or $(THREADS),2)" SEEDS="$(or $(SEEDS),3)"

setup-mode := $(if $(filter tsan,$(MODE)),tsan)
setup = @tools/setup.sh --check build $(setup-mode) $(1) >&2
install-packages = +@$(MAKE) --no-print-directory setup GROUPS="build $(setup-mode) $(1)"
parallel = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))
again = +@$(MAKE) --no-print-directory $(parallel)

define newline


endef

.DEFAULT_GOAL := all
.PHONY: help all lib demo crawl pipeline crowd bank chat profileprocess proxy turtle ledger soak soak-proxy test test-hardened test-install test-matrix sim sim-hash mutants fault sizes instructions check models fuzz bench valgrind user-tools coverage man pictures conformance site abi \
	bench-peers figures install uninstall setup format clean FORCE

help:
	@echo "make             build/libstrand.a, build/libstrand.so and the examples"
	@echo "make demo        a server (examples/httpd) over docs/, driven by real requests (examples/demo.c)"
	@echo "make crawl       count the words of this folder's files, a strand for each (examples/crawl.c)"
	@echo "make pipeline    the server's log through stages joined by channels (examples/pipeline), and through awk"
	@echo "make crowd       a million strands (examples/crowd) on stacks of their own and on shared ones: memory, times (3 minutes, 8 GB)"
	@echo "make bank        transfers between 100 000 accounts, which are actors and crash (examples/bank): no cent may be missing"
	@echo "make chat        rooms to talk in over TCP, which are actors (examples/chat): on port 7000, for nc, until it is stopped"
	@echo "make profileprocess  a program with a profiler beside it, both stopped in order (examples/profileprocess): bank and pidstat"
	@echo "make proxy       a reverse proxy (examples/proxy) in front of two servers, of which one is stopped in the middle"
	@echo "make turtle      curves in a window of SDL 2, computed by strands (examples/turtle); without a display, in a virtual one"
	@echo "make ledger      accounts in an SQLite database, each connection on a thread of its own (examples/ledger)"
	@echo "make soak        the server under wrk for a minute, a tenth of the clients cut in the middle"
	@echo "make soak-proxy  the reverse proxy for a minute, a tenth of its clients and backends cut in the middle"
	@echo "make test        build and run all tests (4 minutes at most)"
	@echo "make sim         workloads under many seeds, each with a law that has to hold"
	@echo "make sim-hash    the same seeds give the same schedules with gcc and clang, optimised and not"
	@echo "make mutants     bugs planted in the library, each of which the tests have to find (10 minutes)"
	@echo "make check       warnings as errors, format, layers, exports and the other rules of the house"
	@echo "make sizes       what a strand, a scope, an actor and an exception take, beside tests/sizes/expected; make check does it too"
	@echo "make instructions the instructions of some operations, beside tests/instructions/expected"
	@echo "make fault       make each call of the library fail wherever the workloads of tests/fault reach it"
	@echo "make models      check the protocols' models by spin, for safety and progress (2 minutes)"
	@echo "make fuzz        random programs against a model of the tree of strands, random requests to examples/httpd, and"
	@echo "                 random heads through examples/proxy, 10 minutes each; TESTS=tree, requests or heads: one of them"
	@echo "make bench       measure; with -s nothing but the results is on standard output"
	@echo "make bench-peers install other runtimes (1 GB), measure beside them (40 minutes), and write build/bench/report.html;"
	@echo "                 SMOKE=1: one round, few points of the plots"
	@echo "make figures     write the tables of the last make bench-peers into README.md and docs/figures.md"
	@echo "make install     install the library, its headers and its manual, as they were made, below PREFIX"
	@echo "make uninstall   remove what was installed, with the same variables"
	@echo "make man         make the manual, in build/man"
	@echo "make site        make the site, in build/site/html: these documents and a page for each header, by mkdocs"
	@echo "make abi         describe the library's binary interface in tests/abi, which make check compares with; for releases"
	@echo "make pictures    draw docs/pictures/*.dot as SVG, by graphviz"
	@echo "make conformance write docs/conformance.md, from docs/conformance.txt and the tags at the tests"
	@echo "make test-install"
	@echo "                 install into empty folders, and build programs outside with that; make test does it too"
	@echo "make test-hardened"
	@echo "                 the specification's tests, compiled as distributions compile packages (-fcf-protection=full, LTO, ...)"
	@echo "make test-matrix the tests in all modes, schedulers and numbers of threads (an hour)"
	@echo "make valgrind    a part of the specification's tests under valgrind, which also has to find planted bugs; with TESTS any of them"
	@echo "make user-tools  the release library under sanitizers that only the program has, and valgrind; TESTS=, ALL=1: all files in each way"
	@echo "make coverage    how much of the library the tests run, file by file, and whether that is enough; SHORT=1: in less time"
	@echo "make setup       install the packages that the targets need; other targets say what is missing, demo and test call it first"
	@echo "make format      format the sources in place"
	@echo "make clean       remove build/"
	@echo
	@echo "MODE=release     or debug, asan, tsan: how the library and the tests are built; all but release go to build/MODE"
	@echo "CC=gcc CXX=g++   the compilers ($(CLANG) and $(CLANGXX) for tsan)"
	@echo "STEPS=1          a seeded run's steps end at every atomic operation of the runtime; goes to build/steps"
	@echo "LTO=1            optimise the library as a whole"
	@echo "WERROR=1         warnings are errors"
	@echo "SCHED=stealing   or global, dedicated, current: the tests run on this scheduler only"
	@echo "THREADS=\"1 4\"    the tests run on so many threads only"
	@echo "STACKS=shared    the specification's tests, and the workloads of make sim, run on shared stacks, copied out at each suspension"
	@echo "SEEDS=500        seeds that the specification's tests, or each workload of make sim, run under; 0: none"
	@echo "SCALE=100        per cent of the usual repetitions of the tests"
	@echo "TESTS=\"scope\"    only the tests in files of these names"
	@echo "MUTANTS=\"names\"  only these of tests/mutants"
	@echo "SIM=\"trees\"      only these workloads of make sim"
	@echo "SHORT=1          a part of make fault and make fuzz, a dozen of the mutants, a third of what models say and of"
	@echo "                 what make user-tools takes, half of the schedulers and numbers of threads of make test"
	@echo "ALL=1            make fault fails every call of long counts too, which are sampled otherwise"
	@echo "FUZZ_S=600       seconds that make fuzz looks for inputs"
	@echo "BENCH=\"fib30\"    only these rows; SMOKE=1: each once, briefly, to see that it ends well"
	@echo "BENCH_PEERS=folder  programs of yours that make bench-peers measures as well: bench/README.md"
	@echo "PREFIX=folder    where to install to, $(PREFIX) now; also LIBDIR, INCLUDEDIR, MANDIR, DOCDIR, GDBDIR"
	@echo "DESTDIR=folder   install below this folder, for a package"
	@echo "MAN=no           install without the manual"
	@echo "JOBS=$(JOBS)           how many compilers or tests run at a time"
	@echo "V=1              print the commands"

lib:
	$(call setup)
	$(again) do-$@

all:
	$(call setup,examples)
	$(again) do-$@

demo:
	$(call install-packages,examples)
	$(again) do-$@
	$(OUT)/examples/demo $(OUT)/examples/httpd docs

crawl:
	$(call setup)
	$(again) do-$@
	$(OUT)/examples/crawl .

pipeline:
	$(call setup,examples soak)
	$(again) do-$@
	tools/run-pipeline.sh $(OUT)

crowd:
	$(call setup)
	$(again) do-$@
	$(OUT)/examples/crowd

bank:
	$(call setup)
	$(again) do-$@
	$(OUT)/examples/bank

chat:
	$(call setup)
	$(again) do-$@
	$(OUT)/examples/chat --port=7000

profileprocess:
	$(call setup,profileprocess)
	$(again) do-$@
	$(OUT)/examples/profileprocess --prefix --with 'pidstat -hru -p {pid} 1' -- $(OUT)/examples/bank

proxy:
	$(call setup,examples test $(satellites))
	$(again) do-$@
	tools/run-proxy.sh $(OUT)

turtle:
	$(call setup,turtle)
	$(again) do-$@
	tools/run-turtle.sh $(OUT)

ledger:
	$(call setup,ledger)
	$(again) do-$@
	$(OUT)/examples/ledger

soak:
	$(call setup,examples soak)
	$(again) do-$@
	tools/soak-httpd.sh $(OUT)

soak-proxy:
	$(call setup,test $(satellites))
	$(again) do-proxy
	PYTHONDONTWRITEBYTECODE=1 python3 tests/proxy/soak.py $(OUT)/examples/proxy 60

test:
	$(call install-packages,test examples profileprocess turtle ledger $(satellites) $(if $(sanitize),,man))
	$(again) do-test-programs
	$(again) -k do-$@

test-hardened:
	$(call setup,test)
	$(again) do-lib
	$(again) do-$@ HARDENED=$(OUT) OUT=$(OUT)/hardened

test-install:
	$(call setup,test man)
	$(again) do-$@

check:
	@tools/setup.sh --check build examples turtle ledger $(satellites) test check >&2
	$(again) -k --output-sync=target MODE=release QUIET=1 do-$@

# Workloads with seeds that have failed at atomic steps.
sim-marked = $(shell awk '/^[^\#]/ && $$2 ~ /^s/ { print $$1 }' tests/sim/cases | sort -u)
sim:
	$(call setup)
	$(again) do-$@
	$(if $(STEPS),,$(foreach name,$(if $(SIM),$(filter $(SIM),$(sim-marked)),$(sim-marked)), \
		$(again) STEPS=1 OUT=$(OUT)/steps SIM=$(name) do-sim-marked $(newline)))

# A folder for each compiler and level; their names have what they are made with. The first one, by gcc and optimised, is
# what make sim runs.
sim-hash-ways := gcc-O0 clang-O2 clang-O0
sim-hash:
	$(call setup,check)
	$(again) do-sim-programs
	$(foreach way,$(sim-hash-ways),$(again) do-sim-programs OUT=build/hash/$(way) CFLAGS="$(CFLAGS) -g0 -$(lastword $(subst -, ,$(way)))" \
		CC=$(if $(filter clang%,$(way)),$(CLANG),gcc) $(newline))
	tools/check-hash.sh $(or $(SEEDS),500) $(OUT) $(sim-hash-ways:%=build/hash/%)

sizes:
	$(call setup)
	$(again) check-sizes

instructions:
	$(call setup,valgrind)
	$(again) check-instructions

fault:
	$(call setup)
	$(again) do-$@

# Made once; each mutant then starts from copies of their objects.
mutants:
	$(call setup)
	$(again) STEPS= OUT=$(OUT) do-sim-programs
	$(again) STEPS=1 OUT=$(OUT)/steps do-sim-programs
	@MODE=$(MODE) SEEDS="$(SEEDS)" SHORT="$(SHORT)" JOBS=$(JOBS) tools/run-mutants.sh $(OUT) \
		$(if $(MUTANTS),$(MUTANTS:%=tests/mutants/%.patch),$(sort $(wildcard tests/mutants/*.patch)))

models:
	@tools/setup.sh --check models >&2
	@JOBS=$(JOBS) SHORT=$(SHORT) tools/run-models.sh build/models $(wildcard tests/models/*.pml)

# The library is built once more, in a way that tells the fuzzer which of its branches were taken.
fuzz:
	$(call setup,fuzz)
	$(again) MODE=asan FUZZ=1 CC=$(CLANG) OUT=build/fuzz do-$@
	@for target in $(or $(TESTS),tree requests heads); do \
		JOBS=$(JOBS) FUZZ_S=$(FUZZ_S) SHORT=$(SHORT) tools/run-fuzz.sh build/fuzz $$target || exit 1; done

# The library with patches, for the rows that compare them. Each variant is built in a copy of the tree, with the times
# of its files. All of it is built again when its patch has changed.
variants := $(basename $(notdir $(wildcard bench/variants/*.patch)))
define build-variant
[ bench/variants/$(1).patch -ot $(OUT)/bench/variants/$(1)/tree ] || rm -rf $(OUT)/bench/variants/$(1)
rm -rf $(OUT)/bench/variants/$(1)/tree && mkdir -p $(OUT)/bench/variants/$(1)/tree
cp -a Makefile bench include src tools $(OUT)/bench/variants/$(1)/tree
cd $(OUT)/bench/variants/$(1)/tree && \
	GIT_CEILING_DIRECTORIES=$(abspath $(OUT)/bench/variants/$(1)) git apply $(abspath bench/variants/$(1).patch)
$(again) -C $(OUT)/bench/variants/$(1)/tree do-bench-variant OUT=$(abspath $(OUT)/bench/variants/$(1)) \
	CFLAGS="$(CFLAGS) -DBENCH_VARIANT=$(1)" >&2
endef
varied = $(if $(BENCH),$(filter actor_pool%,$(BENCH)),all)
ifneq ($(SMOKE),)
bench:
	$(call setup,bench $(satellites))
	$(again) do-smoke >&2
	@BENCH_SMOKE=1 BENCH_GROWTH=$(if $(BENCH),,1) STRAND_BENCH_BIN=$(abspath $(OUT)/smoke) bench/run $(BENCH)
else
bench:
	$(call setup,bench $(satellites))
	$(again) do-$@ >&2
	$(if $(varied),$(foreach v,$(variants),$(call build-variant,$(v))$(newline)))
	@STRAND_BENCH_BIN=$(abspath $(OUT)/bench) bench/run $(BENCH)
endif

# The rows that a peer has, and the growth plots; with BENCH these rows alone. SMOKE=1 makes one round, and two points of
# each plot. The report shows a program that fails; the target fails then, once all is measured.
record := $(OUT)/bench/report.txt
bench-peers:
	$(call install-packages,bench $(satellites))
	-$(call install-packages,peers)
	$(again) do-bench >&2
	@rm -f $(OUT)/bench/report.html $(record); status=0; \
	BENCH_COMPARE=1 BENCH_GROWTH=$(if $(BENCH),,$(if $(SMOKE),short,1)) BENCH_ROUNDS=$${BENCH_ROUNDS:-$(if $(SMOKE),1,3)} BENCH_RECORD=$(record) BENCH_FLAGS='$(bench-flags)' \
		STRAND_BENCH_BIN=$(abspath $(OUT)/bench) bench/run $(BENCH) || status=$$?; \
	[ $$status -le 1 ] || exit $$status; \
	bench/report.py $(record) $(OUT)/bench/report.html || status=1; \
	echo "bench-peers: $(OUT)/bench/report.html, made from $(record)$$([ $$status -eq 0 ] || echo '; not all went well: see its list of failures')" >&2; \
	exit $$status

figures:
	bench/report.py $(record) README.md docs/figures.md

test-matrix:
	+@status=0; for mode in $(filter-out coverage,$(MODES)); do \
		$(if $(unchosen),env -u CC -u CXX )$(MAKE) --no-print-directory test MODE=$$mode SCHED="stealing global dedicated current" THREADS="1 2 4 8" || status=1; \
	done; exit $$status

valgrind:
	$(call setup,valgrind)
	$(again) MODE=debug RUNNER=plain VALGRIND=1 OUT=build/debug TESTS="$(or $(TESTS),$(valgrind-part))" do-$@

user-tools:
	$(call setup,test tsan valgrind)
	$(again) RUNNER=plain do-$@

coverage:
	$(if $(is-clang),$(error the counters are those of gcc))
	$(call setup,examples test coverage)
	$(again) MODE=coverage $(if $(SHORT),$(short-coverage)) do-$@

man:
	@tools/setup.sh --check man >&2
	$(again) do-$@

site:
	@tools/setup.sh --check man site >&2
	tools/site.sh $(OUT)/site

# At a release: what `make check` compares later libraries with.
abi:
	@tools/setup.sh --check check >&2
	$(again) do-$@
do-abi: do-lib
	tools/check-abi.sh $(OUT)/libstrand.so --renew

# The results are committed: a reader of the documents needs no graphviz.
pictures:
	@tools/setup.sh --check pictures >&2
	for picture in docs/pictures/*.dot; do dot -Tsvg "$$picture" -o "$${picture%.dot}.svg" || exit 1; done

conformance:
	@tools/conformance.py

install:
	$(if $(sanitize)$(counters),$(error a library for $(MODE) is not for installing))
	$(again) do-$@

uninstall:
	$(again) do-$@

setup:
	@tools/setup.sh $(GROUPS) >&2

format:
	@tools/setup.sh --check check >&2
	$(FORMAT) -i $(formatted)

clean:
	rm -rf build

# ---- the second part: sources and flags -----------------------------------------------------------------------------

ifeq ($(V),)
.SILENT:
endif
say = $(if $(QUIET),,printf '  %-6s %s\n' $(1) $(2))

version := $(shell awk '/define STRAND_VERSION_/ { printf "%s%s", dot, $$3; dot = "." }' include/strand.h)
soname := libstrand.so.$(firstword $(subst ., ,$(version)))

layers := base arch stack sched strand sync io actor sim debug run
lib-sources := $(sort $(foreach l,$(layers),$(wildcard src/$(l)/*.c src/$(l)/*.S)))
headers := $(wildcard include/*.h include/strand/*.h)
# Satellites (tools/satellites), and those of them whose foreign library is there.
satellites := $(shell awk '/^[a-z]/ { print $$1 }' tools/satellites)
foreign-header = $(shell awk '$$1 == "$(1)" { print $$2 }' tools/satellites)
foreign-libraries = $(shell awk '$$1 == "$(1)" { for (i = 5; i <= NF; i++) print $$i }' tools/satellites)
is-there = $(shell echo '\#include <$(1)>' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes)
built-satellites := $(foreach s,$(satellites),$(if $(call is-there,$(call foreign-header,$(s))),$(s)))
missing-satellites := $(filter-out $(built-satellites),$(satellites))
formatted := $(headers) $(wildcard src/*/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch] tests/*/*.cc bench/*.[ch] bench/*.cc bench/peers/*/*.[ch] bench/peers/*/*.cc examples/*.[ch] examples/*/*.[ch])

flags-release := -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
flags-debug := -O0 -g3 -DSTRAND_DEBUG_BUILD
flags-asan := -O1 -g -DSTRAND_DEBUG_BUILD -fno-omit-frame-pointer
flags-coverage := -O0 -g
flags-tsan := -O1 -g -fno-omit-frame-pointer
sanitize-asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
sanitize-tsan := -fsanitize=thread
# The fuzzer's own record of how deep a stack is knows one stack only.
guided := $(if $(FUZZ),-fsanitize=fuzzer-no-link -fno-sanitize-coverage=stack-depth)
sanitize := $(strip $(sanitize-$(MODE)) $(guided))

# Counters of lines and branches, in the library, and in the unit tests for what they inline of it. Without optimisation, as a function that is inlined would count as
# many times as it is called.
counters := $(if $(filter coverage,$(MODE)),--coverage -fprofile-update=atomic)

# Files without TSan's instrumentation still need to know of it.
notes := $(if $(filter tsan,$(MODE)),-DSTRAND_TSAN)
is-clang := $(findstring clang,$(CC))
# Context switches and the ways out of a try block do not go by a shadow stack, hence -fcf-protection=none.
# Those switches push where a leaf function may keep its locals otherwise, hence -mno-red-zone.
hardened := -mno-red-zone -fstack-clash-protection -fstack-protector-strong -fcf-protection=none
# So that what is fetched ahead to be written to need not be asked for twice. Older processors do nothing then.
fetching := -mprfchw
warnings := -Wall -Wextra -Wshadow -Wpedantic $(if $(WERROR),-Werror)
# What distributions compile packages with, the later ones of them included; HARDENED=FOLDER takes it for programs, which
# are linked with that folder's library.
packaged = $(filter-out -D_FORTIFY_SOURCE=%,$(shell for kind in CPPFLAGS CFLAGS; do DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get $$kind; done)) \
	-O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fcf-protection=full -fstack-protector-strong -fstack-clash-protection -fPIE -flto
base-flags := $(warnings) $(if $(HARDENED),$(packaged),$(flags-$(MODE)) $(hardened) $(fetching) -fasynchronous-unwind-tables) -fexceptions -D_GNU_SOURCE=
c-flags := -std=gnu11 $(base-flags)
# clang sees blocking calls in no-suspend sections. Tests make them on purpose.
thread-safety := $(if $(is-clang),-Wthread-safety)
cxx-flags := -std=c++17 $(filter-out -D_GNU_SOURCE=,$(base-flags))
link-flags := $(if $(HARDENED),$(packaged) -pie) -Wl,-z,relro,-z,now,-z,noexecstack $(sanitize) $(if $(counters),--coverage)
# Initial-exec thread-locals: the library's few words fit into what the loader keeps free, and need no call.
# Pairs of words are stored faster one by one than through a vector register.
# Records are cleared faster by vectors than by the string instruction that gcc writes: 8 ns less for a scope.
comma := ,
clearing := $(if $(is-clang),,-mmemset-strategy=vector_loop:512:noalign$(comma)libcall:-1:noalign)
lib-flags := $(c-flags) -fno-tree-slp-vectorize $(clearing) $(thread-safety) $(notes) -fPIC -fvisibility=hidden -fno-semantic-interposition -ftls-model=initial-exec \
	$(counters) $(if $(LTO),-flto -ffat-lto-objects)

# Public functions are defined from the structure's layer on; all else is hidden.
public-layers := strand sync io actor sim debug run
lib-public = $(if $(filter $(public-layers:%=$(OUT)/obj/src/%/%),$@),-include tools/public.h) \
	$(foreach s,$(filter $(satellites),$(word 1,$(subst /, ,$(patsubst $(OUT)/obj/src/%,%,$@)))),-include src/$(s)/public.h)

# Atomic operations are steps of a seeded run (src/base/atomic.h), but for those of the machine and of the simulation.
steps = $(if $(STEPS),-DSTRAND_STEPS $(if $(filter $(OUT)/obj/src/sim/% $(OUT)/obj/src/arch/%,$@),-DSTRAND_STEPLESS))

lib-objects := $(patsubst %,$(OUT)/obj/%.o,$(basename $(lib-sources)))
# The order of what sim, sched, stack, arch and base do is announced to TSan by hand, at their protocols' edges. What debug reads
# may be changed by threads that can't be held still, and it says so.
unsanitized := $(if $(filter tsan,$(MODE)),$(patsubst %,$(OUT)/obj/src/%/%,sim sched stack base arch debug))
# Where ASan keeps locals outside of the stack (detect_stack_use_after_return), the library's own frames stay in it: it
# goes by their addresses.
own-frames := $(if $(filter asan,$(MODE)),$(if $(is-clang),-fsanitize-address-use-after-return=never,--param asan-use-after-return=0))
lib-sanitize = $(if $(filter $(unsanitized),$@),,$(sanitize) $(own-frames))

# The frames below every strand's function keep frame pointers, so that profilers which go by these find the base.
framed := strand/entry sched/switch sched/shared_open
$(foreach f,$(framed),$(if $(wildcard src/$(f).c),,$(error framed: there is no src/$(f).c)))
with-frames = $(if $(filter $(framed:%=$(OUT)/obj/src/%.o),$@),-fno-omit-frame-pointer)

# The compiler and its flags, as the report has them.
bench-flags = $(shell $(CC) --version | head -n 1); $(strip $(filter-out $(warnings),$(lib-flags)) $(CFLAGS))

# All objects are made again when this file or the command line's flags have changed.
flags-asked = $(strip flags: $(CC) $(CXX) $(lib-flags) $(sanitize) $(CFLAGS) $(CXXFLAGS) $(LDFLAGS) Makefile:)
made-by = $(flags-asked) $(shell cksum <Makefile)
$(OUT)/flags: FORCE
	mkdir -p $(@D)
	echo '$(made-by)' | cmp -s - $@ || echo '$(made-by)' >$@

$(OUT)/obj/src/%.o: src/%.c $(OUT)/flags
	mkdir -p $(@D)
	$(call say,CC,$<)
	$(CC) $(lib-flags) $(with-frames) $(steps) $(lib-public) $(lib-sanitize) $(CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/obj/src/%.o: src/%.S $(OUT)/flags
	mkdir -p $(@D)
	$(call say,AS,$<)
	$(CC) $(lib-flags) $(CFLAGS) -MMD -MP -c $< -o $@

$(OUT)/obj/src/arch/gdb.o: tools/gdb/strand.py

# ---- the library ----------------------------------------------------------------------------------------------------

# Section groups are dissolved: they go by their names, and a linker that has the same group from a user's object drops
# this one, together with what is local here. (The pointer to the C personality is such a group.)
# Its code gets a section of its own, so that it knows its own frames in a trace.
$(OUT)/obj/merged.o: $(lib-objects) tools/own-text.sh
	$(call say,MERGE,$@)
	$(CC) -r -nostdlib $(if $(LTO),-O2 -flto -flinker-output=nolto-rel) -Wl,--force-group-allocation $(lib-objects) -o $@
	tools/own-text.sh $@

# One object with the contexts of Boost inside, of which only the interface can be linked to.
$(OUT)/obj/libstrand.o: $(OUT)/obj/merged.o tools/embed.sh tools/own-text.sh
	KEEP='[sS][tT][rR][aA][nN][dD]_*' tools/embed.sh $@ $<

$(OUT)/libstrand.a: $(OUT)/obj/libstrand.o
	$(call say,AR,$@)
	rm -f $@
	ar rcs $@ $<

# With all names visible and without the contexts, for tests of what lies inside.
$(OUT)/libstrand-internal.a: $(OUT)/obj/merged.o
	$(call say,AR,$@)
	rm -f $@
	ar rcs $@ $<

$(OUT)/libstrand.so: $(OUT)/obj/libstrand.o tools/exports.map
	$(call say,LINK,$@)
	$(CC) -shared -Wl,-soname,$(soname) -Wl,-z,nodelete -Wl,--version-script=tools/exports.map $(link-flags) \
		$(if $(sanitize),,-Wl,-z,defs) $(LDFLAGS) $< -o $@
	ln -sf libstrand.so $(OUT)/$(soname)

# ---- satellites -------------------------------------------------------------------------------------------------------

# Their sources are compiled as a program's are, by the public headers alone.
satellite-objects = $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard src/$(1)/*.c))
satellite-libraries := $(foreach s,$(built-satellites),$(OUT)/libstrand-$(s).a $(OUT)/libstrand-$(s).so)
define satellite
$(OUT)/obj/merged-$(1).o: $(call satellite-objects,$(1))
	$$(call say,MERGE,$$@)
	$$(CC) -r -nostdlib $(if $(LTO),-O2 -flto -flinker-output=nolto-rel) -Wl,--force-group-allocation $$^ -o $$@
$(OUT)/obj/libstrand-$(1).o: $(OUT)/obj/merged-$(1).o
	objcopy --wildcard --keep-global-symbol='[sS][tT][rR][aA][nN][dD]_*' $$< $$@
$(OUT)/libstrand-$(1).a: $(OUT)/obj/libstrand-$(1).o
	$$(call say,AR,$$@)
	rm -f $$@
	ar rcs $$@ $$<
$(OUT)/libstrand-$(1).so: $(OUT)/obj/libstrand-$(1).o tools/exports-$(1).map $(OUT)/libstrand.so
	$$(call say,LINK,$$@)
	$(CC) -shared -Wl,-soname,$(soname:libstrand%=libstrand-$(1)%) -Wl,-z,nodelete -Wl,--version-script=tools/exports-$(1).map \
		$(link-flags) $(if $(sanitize),,-Wl,-z,defs) $(LDFLAGS) $$< -L$(OUT) -lstrand $(call foreign-libraries,$(1)) -o $$@
	ln -sf libstrand-$(1).so $(OUT)/$(soname:libstrand%=libstrand-$(1)%)
# Tests and benchmarks of the satellite are those of its name.
$(test-programs)/spec/$(1)_%: $(test-objects)/spec/$(1)_%.o $(harness) $(or $(HARDENED),$(OUT))/libstrand-$(1).a $(library)
	$$(call link,$(CC),$(run-library) $(call foreign-libraries,$(1)))
$(foreach k,bench smoke,$(OUT)/$(k)/$(1)) $(foreach k,bench smoke,$(OUT)/$(k)/$(1)_load): $(OUT)/%: $(OUT)/obj/%.o $(OUT)/libstrand-$(1).a $(library)
	$$(call link,$(CC),$(call foreign-libraries,$(1)))
$(foreach k,bench smoke,$(OUT)/$(k)/floor_$(1)): $(OUT)/%: $(OUT)/obj/%.o
	$$(call link,$(CC),$(call foreign-libraries,$(1)))
endef

# ---- the manual, and installing -----------------------------------------------------------------------------------------

.PHONY: do-man do-install do-uninstall
do-man: $(OUT)/man/man7/strand.7
$(OUT)/man/man7/strand.7: $(headers) docs/man/strand.7 tools/man.sh tools/make-man.py tools/headers.py tools/package/Doxyfile
	$(call say,MAN,$(OUT)/man)
	tools/man.sh $(OUT)/man $(version)

# Builds nothing and writes nothing here, as it may run as another user; what was built is installed, whatever its flags.
install-variables := PREFIX LIBDIR INCLUDEDIR MANDIR DOCDIR GDBDIR DESTDIR MAN
$(foreach v,$(install-variables),$(eval do-install do-uninstall: export $(v) := $($(v))))
do-install:
	tools/install.sh install $(OUT) $(version) $(headers)
do-uninstall:
	tools/install.sh uninstall

# ---- programs: tests, helper programs, examples, benchmarks -----------------------------------------------------------

# A program that a signal ends loses its counters unless it has a function that writes them.
write-counters := $(if $(counters),$(OUT)/obj/$(RUNNER)/tests/harness/coverage.o)
library := $(or $(HARDENED),$(OUT))/libstrand.a $(write-counters)
run-macro := $(if $(filter plain,$(RUNNER)),-DTEST_PLAIN,-DTEST_CRITERION)
run-library := $(if $(filter plain,$(RUNNER)),,-lcriterion)
test-defines := -Iinclude -Itests/harness $(run-macro) -DTEST_PROGRAMS='"$(abspath $(OUT)/programs)"' \
	-DTEST_EXAMPLES='"$(abspath $(OUT)/examples)"' -DTEST_DOCS='"$(abspath docs)"'
test-objects := $(OUT)/obj/$(RUNNER)/tests
test-programs := $(OUT)/tests/$(RUNNER)
# The plain runner has a main, and Criterion too.
harness := $(patsubst tests/%.c,$(test-objects)/%.o,$(wildcard tests/harness/*.c))
harness := $(filter-out %/coverage.o,$(harness))
harness := $(if $(filter plain,$(RUNNER)),$(harness),$(filter-out %/plain.o,$(harness)))

# Tests of a satellite that is left out are left out too.
sources-of = $(filter-out $(addsuffix _%,$(missing-satellites)),$(basename $(notdir $(wildcard tests/$(1)/*.c tests/$(1)/*.cc))))
chosen = $(if $(TESTS),$(filter $(TESTS),$(1)),$(1))
spec := $(patsubst %,$(test-programs)/spec/%,$(call chosen,$(call sources-of,spec)))
stress := $(patsubst %,$(test-programs)/stress/%,$(call chosen,$(call sources-of,stress)))
unit := $(patsubst %,$(test-programs)/unit/%,$(call chosen,$(call sources-of,unit)))
# TESTS=httpd is all of them.
httpd := $(filter-out client,$(call sources-of,httpd))
httpd := $(patsubst %,$(test-programs)/httpd/%,$(if $(filter httpd,$(TESTS)),$(httpd),$(call chosen,$(httpd))))
planted := $(patsubst tests/%.c,$(OUT)/%,$(wildcard tests/planted/$(if $(VALGRIND),memcheck,$(MODE))_*.c))
sim := $(filter-out sim,$(call sources-of,sim))
sim := $(patsubst %,$(OUT)/sim/%,$(if $(SIM),$(filter $(SIM),$(sim)),$(sim)))
fault := $(OUT)/tests/fault
programs := $(patsubst %,$(OUT)/programs/%,$(call sources-of,programs))
accepted := $(wildcard tests/accept/*.c tests/accept/*.cc)
example-sources := $(wildcard examples/*.c examples/*/*.c)
# It needs both satellites.
proxy := $(if $(filter names,$(built-satellites)),$(if $(filter tls,$(built-satellites)),$(OUT)/examples/proxy))
# Those that need no more than the library and the server's parser; turtle and ledger are made by their own targets.
examples := $(patsubst examples/%.c,$(OUT)/examples/%,$(wildcard examples/*.c)) $(OUT)/examples/httpd $(OUT)/examples/pipeline $(OUT)/examples/crowd \
	$(OUT)/examples/bank $(OUT)/examples/chat $(OUT)/examples/profileprocess $(if $(filter names,$(built-satellites)),$(OUT)/examples/host) $(proxy)
# example-objects FOLDER: the objects of this example, and those that the examples share
example-objects = $(patsubst %.c,$(OUT)/obj/%.o,$(wildcard $(if $(1),examples/$(1)/*.c) examples/common/*.c))
fuzzer := $(patsubst tests/%.c,$(OUT)/obj/%.o,$(wildcard tests/fuzz/*.c))
# What the server reads of a request, without its sockets.
request-fuzzer := $(patsubst tests/%.c,$(OUT)/obj/%.o,$(wildcard tests/fuzz/httpd/*.c)) \
	$(patsubst %,$(OUT)/obj/examples/%.o,common/framing httpd/request)
# What the proxy reads of a head, and what it sends on.
head-fuzzer := $(patsubst tests/%.c,$(OUT)/obj/%.o,$(wildcard tests/fuzz/proxy/*.c)) \
	$(patsubst %,$(OUT)/obj/examples/%.o,common/framing proxy/head proxy/rewrite)
# Those of a satellite that is left out are left out too.
bench-sources := $(filter-out $(foreach s,$(missing-satellites),bench/$(s).c bench/$(s)_% bench/floor_$(s).c),$(wildcard bench/*.c bench/*.cc))
benches := $(patsubst bench/%,$(OUT)/bench/%,$(basename $(bench-sources)))

# compile FLAGS: a source to an object
define compile
mkdir -p $(@D)
$(call say,$(if $(filter %.cc,$<),C++,CC),$<)
$(if $(filter %.cc,$<),$(CXX) $(cxx-flags) $(sanitize) $(CXXFLAGS),$(CC) $(c-flags) $(sanitize) $(CFLAGS)) \
	$(1) -MMD -MP -c $< -o $@
endef
# link COMPILER LIBRARIES: all prerequisites to a program
define link
mkdir -p $(@D)
$(call say,LINK,$@)
$(1) $(flags-$(MODE)) $(link-flags) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(2) -o $@
endef

$(test-objects)/unit/%.o: tests/unit/%.c $(OUT)/flags
	$(call compile,$(test-defines) -Isrc $(counters))
$(test-objects)/%.o: tests/%.c $(OUT)/flags
	$(call compile,$(test-defines))
$(test-objects)/%.o: tests/%.cc $(OUT)/flags
	$(call compile,$(test-defines))
$(OUT)/obj/fuzz/%.o: tests/fuzz/%.c $(OUT)/flags
	$(call compile,-Iinclude)
$(OUT)/obj/smoke/%.o: bench/%.c $(OUT)/flags
	$(call compile,-Iinclude -DBENCH_SMOKE)
$(OUT)/obj/smoke/%.o: bench/%.cc $(OUT)/flags
	$(call compile,-Iinclude -DBENCH_SMOKE)
$(OUT)/obj/bench/%.o: bench/%.c $(OUT)/flags
	$(call compile,-Iinclude)
$(OUT)/obj/bench/%.o: bench/%.cc $(OUT)/flags
	$(call compile,-Iinclude)
# As a user compiles: without the feature macros of the tests; in debug mode as strand/check.h says.
example-checks := $(if $(filter debug,$(MODE)),-D_GNU_SOURCE= -include strand/check.h)
$(OUT)/obj/examples/%.o: examples/%.c $(OUT)/flags
	$(call compile,-U_GNU_SOURCE -Iinclude $(thread-safety) $(example-checks))

# Its functions can be found by name.
$(test-programs)/unit/arch_landing: private link-flags += -rdynamic
$(test-programs)/unit/%: $(test-objects)/unit/%.o $(OUT)/libstrand-internal.a $(write-counters)
	$(call link,$(CC),-l:libboost_context.a)
$(test-programs)/httpd/%: $(test-objects)/httpd/%.o $(test-objects)/httpd/client.o $(harness) $(library)
	$(call link,$(CC),$(run-library))
$(test-programs)/%: $(test-objects)/%.o $(harness) $(library)
	$(call link,$(if $(wildcard tests/$*.cc),$(CXX),$(CC)),$(run-library))
# As a program is installed: without symbols.
$(OUT)/programs/stripped: private link-flags += -s
$(OUT)/programs/exits: private link-flags += -Wl,--push-state,--no-as-needed -lunwind -Wl,--pop-state
$(OUT)/programs/%: $(test-objects)/programs/%.o $(library)
	$(call link,$(if $(wildcard tests/programs/$*.cc),$(CXX),$(CC)))
$(OUT)/sim/%: $(test-objects)/sim/%.o $(test-objects)/sim/sim.o $(library)
	$(call link,$(CC))
$(OUT)/sizes: $(test-objects)/sizes/sizes.o $(library)
	$(call link,$(CC))
$(OUT)/instructions: $(test-objects)/instructions/instructions.o $(OUT)/libstrand-internal.a
	$(call link,$(CC),-l:libboost_context.a)
$(OUT)/planted/%: $(test-objects)/planted/%.o $(library)
	$(call link,$(CC))
# The library and its satellites with other names for what they call: those of tests/fault/calls.c, names_calls.c and so on.
# renamed PREFIX: by the table that follows the object
define renamed
	mkdir -p $(@D)
	$(call say,RENAME,$@)
	sed -n 's/^\(FAILS\|WATCHED\|SAME\)(\([A-Za-z0-9_]*\),.*/\2 $(1)_\2/p' $(filter %.def,$^) | sort -u >$@.names
	objcopy --redefine-syms=$@.names $< $@
endef
$(OUT)/obj/fault/libstrand.o: $(OUT)/obj/libstrand.o tests/fault/calls.def
	$(call renamed,fault)
$(OUT)/obj/fault/libstrand-%.o: $(OUT)/obj/libstrand-%.o tests/fault/%_calls.def
	$(call renamed,fault_$*)
fault-satellites := $(foreach s,$(built-satellites),$(if $(wildcard tests/fault/$(s)_calls.def),$(s)))
fault-sources := $(filter-out $(foreach s,$(missing-satellites),tests/fault/$(s).c tests/fault/$(s)_%),$(wildcard tests/fault/*.c))
$(test-objects)/fault/%.o: private test-defines += $(foreach s,$(fault-satellites),-DFAULT_$(shell echo $(s) | tr a-z A-Z))
$(fault): $(fault-sources:tests/%.c=$(test-objects)/%.o) $(fault-satellites:%=$(OUT)/obj/fault/libstrand-%.o) $(OUT)/obj/fault/libstrand.o
	$(call link,$(CC),$(foreach s,$(fault-satellites),$(call foreign-libraries,$(s))))
$(OUT)/tree: $(fuzzer) $(library)
	$(call link,$(CC),-fsanitize=fuzzer)
$(OUT)/requests: $(request-fuzzer) $(library)
	$(call link,$(CC),-fsanitize=fuzzer -lhttp_parser)
$(OUT)/heads: $(head-fuzzer)
	$(call link,$(CC),-fsanitize=fuzzer -lhttp_parser)
# Without libstrand-tls it serves plain HTTP only.
httpd-tls := $(filter tls,$(built-satellites))
$(OUT)/examples/httpd: $(filter-out %/httpd/$(if $(httpd-tls),unsecured,secure).o,$(call example-objects,httpd)) \
		$(if $(httpd-tls),$(or $(HARDENED),$(OUT))/libstrand-tls.a) $(library)
	$(call link,$(CC),-lhttp_parser $(if $(httpd-tls),$(call foreign-libraries,tls)))
$(OUT)/examples/pipeline: $(call example-objects,pipeline) $(library)
	$(call link,$(CC))
$(OUT)/examples/crowd: $(call example-objects,crowd) $(library)
	$(call link,$(CC),-lm)
$(OUT)/examples/bank: $(call example-objects,bank) $(library)
	$(call link,$(CC))
$(OUT)/examples/chat: $(call example-objects,chat) $(library)
	$(call link,$(CC))
$(OUT)/examples/profileprocess: $(call example-objects,profileprocess) $(library)
	$(call link,$(CC))
$(OUT)/examples/host: $(call example-objects,host) $(or $(HARDENED),$(OUT))/libstrand-names.a $(library)
	$(call link,$(CC),$(call foreign-libraries,names))
$(OUT)/examples/proxy: $(call example-objects,proxy) $(or $(HARDENED),$(OUT))/libstrand-names.a \
	$(or $(HARDENED),$(OUT))/libstrand-tls.a $(library)
	$(call link,$(CC),$(call foreign-libraries,names) $(call foreign-libraries,tls))
$(test-programs)/spec/names_example: | $(OUT)/examples/host
$(OUT)/examples/turtle: $(call example-objects,turtle) $(library)
	$(call link,$(CC),-lSDL2 -lm)
$(OUT)/examples/ledger: $(call example-objects,ledger) $(library)
	$(call link,$(CC),-lsqlite3)
# What a user does to the window, and what watches the program's calls of SDL.
$(OUT)/turtle/client: $(test-objects)/turtle/client.o
	$(call link,$(CC),-lX11)
$(OUT)/turtle/calls.h: $(OUT)/examples/turtle
	mkdir -p $(@D)
	nm -D --undefined-only $< | sed -n 's/.* \(SDL_[A-Za-z0-9_]*\).*/CALL(\1)/p' >$@
$(OUT)/turtle/watch.so: tests/turtle/watch.c $(OUT)/turtle/calls.h
	$(call say,LINK,$@)
	$(CC) $(c-flags) -fPIC -shared -DCALLS='"$(abspath $(OUT)/turtle/calls.h)"' $< -o $@
$(OUT)/examples/crawl: $(call example-objects)
$(OUT)/examples/demo: $(OUT)/obj/examples/demo.o $(library)
	$(call link,$(CC),-lhttp_parser)
$(OUT)/examples/%: $(OUT)/obj/examples/%.o $(library)
	$(call link,$(CC))
$(OUT)/smoke/floor_%: $(OUT)/obj/smoke/floor_%.o
	$(call link,$(CXX),-Xlinker --as-needed -l:libboost_context.a)
$(OUT)/smoke/%: $(OUT)/obj/smoke/%.o $(library)
	$(call link,$(CC))
$(OUT)/bench/floor_%: $(OUT)/obj/bench/floor_%.o
	$(call link,$(CXX),-Xlinker --as-needed -l:libboost_context.a)
$(OUT)/bench/%: $(OUT)/obj/bench/%.o $(library)
	$(call link,$(CC))

.PHONY: do-lib do-all do-demo do-crawl do-pipeline do-crowd do-bank do-chat do-profileprocess do-proxy do-turtle do-ledger do-soak do-bench do-smoke do-bench-variant do-test do-test-programs do-test-runs do-test-hardened do-test-install do-sim do-sim-programs do-sim-marked do-valgrind do-user-tools \
	do-fault do-fuzz do-coverage do-objects
.SECONDARY:
do-lib: $(OUT)/libstrand.a $(OUT)/libstrand.so $(satellite-libraries)
	$(foreach s,$(missing-satellites),echo "lib: libstrand-$(s) is left out: there is no <$(call foreign-header,$(s))> (make setup GROUPS=$(s) installs it)" >&2;) :
do-all: do-lib $(examples)
do-demo: $(OUT)/examples/demo $(OUT)/examples/httpd
do-crawl: $(OUT)/examples/crawl
do-pipeline: $(OUT)/examples/pipeline $(OUT)/examples/httpd
do-crowd: $(OUT)/examples/crowd
do-bank: $(OUT)/examples/bank
do-chat: $(OUT)/examples/chat
do-profileprocess: $(OUT)/examples/profileprocess $(OUT)/examples/bank
do-proxy: $(proxy) $(OUT)/examples/httpd
do-turtle: $(OUT)/examples/turtle
do-ledger: $(OUT)/examples/ledger
do-soak: $(OUT)/programs/cut_clients $(OUT)/examples/httpd
do-fuzz: $(OUT)/tree $(OUT)/requests $(OUT)/heads
do-bench: $(benches) $(OUT)/examples/httpd $(proxy)
do-smoke: $(benches:$(OUT)/bench/%=$(OUT)/smoke/%) $(OUT)/examples/httpd $(proxy)
do-bench-variant: $(OUT)/bench/actor_pool

ifneq ($(STEPS),)
do-test-programs: $(spec) $(programs)
else
do-test-programs: do-lib $(if $(sanitize)$(TESTS)$(STACKS),,do-man) $(unit) $(spec) $(stress) $(planted) $(programs) $(httpd) $(OUT)/examples/httpd \
	$(OUT)/examples/pipeline $(OUT)/examples/crowd $(OUT)/examples/seeds $(OUT)/examples/turtle $(OUT)/examples/ledger \
	$(OUT)/examples/bank $(OUT)/examples/chat $(OUT)/examples/crawl $(OUT)/examples/profileprocess $(proxy) \
	$(OUT)/turtle/client $(OUT)/turtle/watch.so
endif
do-test-runs: do-test-programs
	$(if $(STEPS),STRAND_TEST_STEPS=1) MODE=$(MODE) SCHED="$(SCHED)" THREADS="$(THREADS)" SEEDS="$(SEEDS)" SCALE="$(SCALE)" JOBS=$(JOBS) \
		HALF="$(SHORT)" STACKS="$(STACKS)" tools/run-tests.sh $(unit) $(stress) $(spec) $(httpd)

# Scripts that test examples and products as a user has them. Each takes one processor at most and often waits, so they run
# beside the tests. None writes to the build. What compilers accept and refuse is the same in all modes.
scripts := $(if $(TESTS)$(STACKS)$(STEPS),,profileprocess proxy options \
	$(if $(sanitize),,$(if $(filter release,$(MODE)),reject accept) link programs httpd pipeline crowd bank chat turtle ledger seeds gdb install))
tried := $(scripts:%=do-try-%) $(if $(planted),do-try-planted)
do-test: do-test-runs $(tried)
do-try-%: do-test-programs FORCE
	tools/check-$*.sh $(OUT)
do-try-planted: do-test-programs $(planted)
	tools/check-planted.sh $(planted)
do-try-reject:
	tools/reject.sh gcc gcc $(wildcard tests/reject/*.c tests/reject/*.cc)
do-try-accept:
	CLANG=$(CLANG) CLANGXX=$(CLANGXX) tools/accept.sh $(accepted)
do-try-install: do-test-programs
	$(check-install)

do-test-hardened: $(spec) $(programs)
	MODE=$(MODE) SCHED="$(or $(SCHED),stealing)" THREADS="$(or $(THREADS),2)" SEEDS="$(or $(SEEDS),2)" SCALE="$(or $(SCALE),20)" JOBS=$(JOBS) \
		tools/run-tests.sh $(spec)

check-install = MODE=$(MODE) tools/check-install.sh $(OUT)
do-test-install: do-lib do-man
	$(check-install)

do-sim-programs: $(sim)
do-sim: $(sim)
	MODE=$(MODE) SEEDS="$(SEEDS)" STACKS="$(STACKS)" JOBS=$(JOBS) tools/run-sim.sh $(sim)
do-sim-marked: $(sim)
	MODE=$(MODE) STACKS="$(STACKS)" tools/run-sim.sh --marked $(sim)

memcheck := valgrind -q --error-exitcode=99 --suppressions=tools/valgrind.supp --leak-check=full \
	--show-leak-kinds=definite --errors-for-leak-kinds=definite
do-valgrind: $(spec) $(programs) $(planted)
	status=0; \
	JOBS=$(JOBS) UNDER="$(memcheck)" tools/run-valgrind.sh $(spec) || status=1; \
	UNDER="$(memcheck)" tools/check-planted.sh $(planted) || status=1; \
	exit $$status

# Each compiler with each sanitizer, gcc with both kinds of stacks, and valgrind; each tool meets the library linked in both
# ways.
user-ways := gcc:address:a:private gcc:address:so:shared gcc:thread:so:private gcc:thread:a:shared \
	$(CLANG):address:so:shared $(CLANG):thread:a:shared \
	$(if $(shell command -v clang-14),clang-14:address:a:private clang-14:thread:so:private) \
	gcc:valgrind:so:private gcc:valgrind:a:private
do-user-tools: do-lib $(programs)
	JOBS=$(JOBS) TESTS="$(TESTS)" ALL="$(ALL)" SHORT="$(SHORT)" SEEDS="$(SEEDS)" SCALE="$(SCALE)" VALGRIND="$(memcheck)" \
		VALGRIND_PART="$(valgrind-part)" tools/check-user-tools.sh $(OUT) $(user-ways)

# The counters of all processes are added up in the files beside the objects.
do-coverage: $(unit) $(spec) $(stress) $(programs) $(httpd) $(sim) $(OUT)/examples/httpd
	find $(OUT)/obj -name '*.gcda' -delete
	status=0; \
	MODE=$(MODE) SCHED="$(SCHED)" THREADS="$(THREADS)" SEEDS="$(SEEDS)" SCALE="$(SCALE)" JOBS=$(JOBS) \
		tools/run-tests.sh $(unit) $(stress) $(spec) $(httpd) || status=1; \
	MODE=debug SEEDS=$(if $(SEEDS),$(SEEDS),100) JOBS=$(JOBS) tools/run-sim.sh $(sim) || status=1; \
	GCOV=$(subst gcc,gcov,$(CC)) tools/coverage.sh $(OUT) $(if $(SHORT)$(TESTS),,--all) || status=1; \
	exit $$status

do-fault: do-lib $(fault)
	$(if $(filter release,$(MODE)),tools/check-fault.sh $(OUT) $(fault-satellites))
	JOBS=$(JOBS) $(fault) $(if $(SHORT),--short) $(if $(ALL),--all) $(TESTS)

all-sources := $(filter-out $(foreach s,$(missing-satellites),tests/spec/$(s)_% tests/fault/$(s).c tests/fault/$(s)_%),$(foreach d,harness spec stress unit sim programs planted httpd turtle fault fuzz fuzz/httpd fuzz/proxy sizes instructions,$(wildcard tests/$(d)/*.c tests/$(d)/*.cc)))
do-objects: $(lib-objects) $(foreach s,$(built-satellites),$(call satellite-objects,$(s))) $(patsubst tests/%,$(test-objects)/%.o,$(basename $(all-sources))) \
	$(patsubst %,$(OUT)/obj/%.o,$(basename $(example-sources) $(bench-sources)))

$(foreach s,$(built-satellites),$(eval $(call satellite,$(s))))

# ---- checks -----------------------------------------------------------------------------------------------------------

# Each says what it is and whether it holds; one that fails does not keep the others from running.
checks := warnings-gcc warnings-clang clang14 format layers calls atomics labels exports abi headers system globals clobbered reject accept sizes docs prose shell conformance blocking models mutants fault report
.PHONY: do-check $(checks:%=check-%)
do-check: $(checks:%=check-%)
	echo "check: all hold"

warned = +$(MAKE) --no-print-directory MODE=release RUNNER=criterion WERROR=1 LTO= QUIET=1 OUT=build/check/$(1) $(2) do-objects && \
	echo "$@: ok"
# Some warnings of gcc come with its optimisation; clang has all of them before it makes code.
check-warnings-gcc:
	$(call warned,gcc,CC=gcc CXX=g++)
check-warnings-clang:
	$(call warned,clang,CC=$(CLANG) CXX=$(CLANGXX) CFLAGS="$(CFLAGS) -fsyntax-only" CXXFLAGS="$(CXXFLAGS) -fsyntax-only")
# The oldest clang of those that make user-tools uses knows fewer conversions of atomic types.
check-clang14:
	$(if $(shell command -v clang-14),ls tests/spec/*.c | xargs -P $(JOBS) -n 8 \
		clang-14 -std=gnu11 -D_GNU_SOURCE= -fexceptions -fsyntax-only -w $(test-defines) -Isrc && )echo "clang14: ok"
check-conformance:
	tools/conformance.py --check
check-blocking:
	tools/check-blocking.sh
check-models:
	tools/check-models.sh
check-mutants:
	JOBS=$(JOBS) tools/check-mutants.sh
check-fault: do-lib
	tools/check-fault.sh $(OUT) $(fault-satellites)

check-format:
	FORMAT=$(FORMAT) tools/check-format.sh $(formatted)
check-layers:
	tools/check-layers.sh
check-atomics:
	tools/check-atomics.sh
check-labels:
	tools/check-labels.py
check-calls: do-lib
	tools/check-calls.py $(OUT)
check-exports: do-lib
	tools/check-exports.sh $(OUT) $(built-satellites)
check-abi: do-lib
	tools/check-abi.sh $(OUT)/libstrand.so
check-headers:
	CC=gcc CXX=g++ CLANG=$(CLANG) CLANGXX=$(CLANGXX) tools/check-headers.sh $(headers)
built-objects := $(lib-objects) $(foreach s,$(built-satellites),$(call satellite-objects,$(s)))
check-system: $(built-objects)
	tools/check-system.sh $(built-objects)
check-globals: $(built-objects)
	tools/check-globals.sh $(built-objects)
# Blocks of the setjmp form, as clang and other processors have it, over locals that are not volatile.
check-clobbered:
	for file in $(example-sources); do \
		gcc -std=gnu11 -O2 -fexceptions -Iinclude -DSTRAND_SETJMP -Wclobbered -Werror=clobbered -c $$file -o /dev/null || \
			exit 1; \
	done; echo "clobbered: ok"
check-reject:
	tools/reject.sh gcc gcc $(wildcard tests/reject/*.c tests/reject/*.cc)
	tools/reject.sh clang $(CLANG) $(wildcard tests/reject/*.c tests/reject/*.cc)
check-sizes: $(OUT)/sizes
	tools/check-sizes.sh $<
built = $(strip MODE=$(MODE) $(if $(STEPS),STEPS=1) $(filter-out $(warnings),$(lib-flags)) $(sanitize) $(CFLAGS) $(LDFLAGS))
check-instructions: $(OUT)/instructions
	CC="$(CC)" tools/check-instructions.sh $< "$(built)"
check-accept:
	CC=gcc CXX=g++ CLANG=$(CLANG) CLANGXX=$(CLANGXX) tools/accept.sh $(accepted)
check-docs:
	tools/check-docs.sh
check-prose:
	tools/check-prose.py
check-report:
	tools/check-report.py
check-shell:
	for script in tools/*.sh bench/run bench/peers/*/build bench/peers/*.sh .ci/run; do sh -n $$script || exit 1; done; echo "shell: ok"

-include $(shell find $(OUT)/obj -name '*.d' 2>/dev/null)
