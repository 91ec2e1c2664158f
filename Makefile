# SPDX-License-Identifier: Apache-2.0
# wm - one makefile for everything; see docs/TESTING.md for the check targets.
#
#   make              build the tools into build/release/
#   make check        unit tests, golden cases, laws and tidiness
#   make install      DESTDIR and PREFIX are honoured

PREFIX ?= /usr/local
DESTDIR ?=
VARIANT ?= release
B := build/$(VARIANT)
VERSION := 0.1.0

CC := gcc
CXX := g++
AR := gcc-ar
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
# Order and choice of instructions, not which there are: 4 % of J1 on recent x86-64 processors.
TUNE := $(if $(filter x86_64,$(shell uname -m)),-mtune=skylake)
OPT_release := -O2 -g -flto=auto $(TUNE)
# For work on the code: no link-time optimisation, so that what has changed alone is compiled.
OPT_dev := -O1 -g
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
OPT := $(OPT_$(VARIANT))
# CPPFLAGS, CFLAGS, CXXFLAGS, LDFLAGS and LDLIBS are the caller's: they add to these and replace none.
CPPFLAGS_ALL := -I. -D_GNU_SOURCE -DWM_VERSION='"$(VERSION)"' $(CPPFLAGS)
CFLAGS_ALL := -std=c17 $(WARNINGS) $(OPT) $(CFLAGS)
CXXFLAGS_ALL := -std=c++17 -Wall -Wextra -Wshadow -Werror -fno-exceptions -fno-rtti $(OPT) $(CXXFLAGS)
LDFLAGS_ALL := $(OPT) $(CXXFLAGS) $(LDFLAGS)
LIBS := -lcsv -lsimdjson -lxxhash -lgmp -lutf8proc -lm $(LDLIBS)

TOOLS := wm-stamp wm-window wm-dedup wm-join wm-sort wm-lag wm-merge wm-checkpoint

CMD := advice band cli contents explain expose held inputs keep matches memory metrics outputs pairs passing plot positions progress report results resume sections sources stream stream_open stream_out stream_run stream_wait terminal uses windows

LIB := \
	base/arena base/buf base/codec base/decimal base/err base/hash base/list base/mem base/near base/shown \
	time/civil time/duration time/instant time/shape time/zone \
	record/csv record/cut record/dialect record/display record/fields record/foreign record/header record/lines record/nulls record/reader record/record record/scan record/stamps record/tsv record/writer \
	event/combine event/guard event/pane event/trigger event/watermark event/window \
	agg/agg agg/condition agg/distinct agg/function agg/part agg/partial agg/plan agg/quantile \
	state/checkpoint state/expiry state/index state/keyed state/ordered state/places state/pool state/queue state/series state/shelves state/table \
	op/dedup op/fill op/join op/keys op/lag op/merge op/sessions op/slices op/sort op/windowing
LIB_CXX := record/ndjson

UNIT := \
	arena buf codec decimal err hash list mem near shown \
	civil duration instant shape zone \
	csv cut dialect display fields foreign header lines ndjson nulls reader record scan stamps tsv writer \
	combine guard pane trigger watermark window \
	agg condition distinct function part partial plan quantile \
	checkpoint expiry index keyed ordered places pool queue series shelves table walk \
	dedup fill join keys lag merge sessions slices sort windowing \
	held memory metrics progress report resume terminal

FUZZ := checkpoint contents decimals instants lines partials records states zones

FAULTS := fail_at fail_memory kill_at short_reads

LIB_OBJECTS := $(LIB:%=$B/lib/%.o) $(LIB_CXX:%=$B/lib/%.o)
CMD_OBJECTS := $(CMD:%=$B/cmd/%.o)
# All but the mains. A program takes of it what it uses, so that most unit tests link little.
ARCHIVE := $B/libwm.a
TOOL_BINARIES := $(TOOLS:%=$B/%)
UNIT_BINARIES := $(UNIT:%=$B/unit/test_%)
FUZZ_BINARIES := $(FUZZ:%=$B/fuzz/fuzz_%)
SOURCES := $(wildcard cmd/*.[ch] lib/*/*.[ch] lib/*/*.cc tests/*/*.[ch])

.PHONY: all unit tests check check-asan crash crossed mutants fuzz bench bench-merge format install uninstall clean
.SECONDARY:

all: $(TOOL_BINARIES)

# `make V=1` shows the whole commands.
Q := $(if $(V),,@)

$B/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$Q$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$B/%.o: %.cc
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CXX $<")
	$Q$(CXX) $(CPPFLAGS_ALL) $(CXXFLAGS_ALL) -MMD -MP -c -o $@ $<

# gcc-ar knows objects of link-time optimisation.
$(ARCHIVE): $(CMD_OBJECTS) $(LIB_OBJECTS)
	$(if $(V),,@echo "  AR  $@")
	$Qrm -f $@ && $(AR) rcs $@ $^

$(TOOL_BINARIES): $B/%: $B/cmd/%.o $(ARCHIVE)
	$(if $(V),,@echo "  LD  $@")
	$Q$(CXX) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$B/unit/test_%: $B/tests/unit/test_%.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$Q$(CXX) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

unit: $(UNIT_BINARIES)

# Corpora, read by the fuzz targets under the usual compiler; and the library that makes reads short.
$B/fuzz/fuzz_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/driver.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$Q$(CXX) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$B/tests/fault/%.so: tests/fault/%.c
	@mkdir -p $(@D)
	$Q$(CC) $(CPPFLAGS_ALL) -std=c17 $(WARNINGS) -O2 $(CFLAGS) -fPIC -shared $(LDFLAGS) -o $@ $<

tests: all unit $(FUZZ_BINARIES) $(FAULTS:%=$B/tests/fault/%.so)

check: tests
	WM_BIN=$B tests/run

# More of the same: thousands of processes killed (`make crash KILLS=5000`), of random command lines (`make crossed N=20000`).
KILLS ?= 1000
crash: tests
	WM_BIN=$B tests/crash/crash.py $(KILLS)
	WM_BIN=$B tests/crash/kinds.py $(KILLS)

N ?= 5000
crossed: tests
	WM_BIN=$B tests/crossed/crossed.py $(N)

# Are the tests good? Each line that tests/mutants/table.py breaks must make one fail.
mutants:
	tests/mutants/mutants.py

check-asan:
	$(MAKE) VARIANT=asan check

# All targets for some minutes each: `make fuzz MINUTES=10`; or those of FUZZ="records lines".
MINUTES ?= 1
fuzz:
	$(MAKE) VARIANT=fuzz CC=clang CXX=clang++ AR=ar $(FUZZ:%=build/fuzz/libfuzzer_%)
	tests/fuzz/fuzz.py $(MINUTES) $(FUZZ)

build/fuzz/libfuzzer_%: $B/tests/fuzz/fuzz_%.o $(ARCHIVE)
	$(CXX) -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

# bench-merge measures wm-merge on a table of 10 million rows.
bench bench-merge: all
	WM_BIN=$B tests/bench/bench.py $(if $(findstring merge,$@),--merge)

format:
	clang-format -i $(SOURCES)

MAN5 := wm-checkpoint
MAN7 := wm-watermark
SHARE := $(DESTDIR)$(PREFIX)/share
BASH := $(SHARE)/bash-completion/completions
FISH := $(SHARE)/fish/vendor_completions.d

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 $(SHARE)/man/man5 $(SHARE)/man/man7 $(BASH) $(FISH) \
		$(SHARE)/zsh/site-functions
	install $(TOOL_BINARIES) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(TOOLS:%=man/%.1) $(SHARE)/man/man1
	install -m 644 $(MAN5:%=man/%.5) $(SHARE)/man/man5
	install -m 644 $(MAN7:%=man/%.7) $(SHARE)/man/man7
	install -m 644 completions/_wm $(SHARE)/zsh/site-functions
	for tool in $(TOOLS); do install -m 644 completions/wm.bash $(BASH)/$$tool && \
		install -m 644 completions/wm.fish $(FISH)/$$tool.fish || exit 1; done

uninstall:
	rm -f $(TOOLS:%=$(DESTDIR)$(PREFIX)/bin/%) $(TOOLS:%=$(SHARE)/man/man1/%.1) $(MAN5:%=$(SHARE)/man/man5/%.5) $(MAN7:%=$(SHARE)/man/man7/%.7) \
		$(SHARE)/zsh/site-functions/_wm $(TOOLS:%=$(BASH)/%) $(TOOLS:%=$(FISH)/%.fish)

clean:
	rm -rf build

-include $(shell find build -path build/mutants -prune -o -name '*.d' -print 2>/dev/null)
