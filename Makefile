# wm - one makefile for everything; see docs/TESTING.md for the check targets.
#
#   make              build the tools into build/release/
#   make check        unit tests, golden cases, laws and tidiness
#   make install      DESTDIR and PREFIX are honoured

PREFIX ?= /usr/local
DESTDIR ?=
VARIANT ?= release
B := build/$(VARIANT)

CC := gcc
CXX := g++
WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
OPT_release := -O2 -g -flto=auto
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
OPT := $(OPT_$(VARIANT))
CFLAGS_ALL := -std=c17 $(WARNINGS) $(OPT) $(CFLAGS)
CXXFLAGS_ALL := -std=c++17 -Wall -Wextra -Wshadow -Werror -fno-exceptions -fno-rtti $(OPT) $(CXXFLAGS)
LIBS := -lcsv -lsimdjson -lxxhash -lgmp -lm

VERSION := 0.1.0

TOOLS := wm-window

CMD := cli stream outputs report

LIB := \
	base/arena base/buf base/codec base/decimal base/err base/hash base/list base/mem base/shown \
	time/civil time/duration time/instant time/zone \
	record/csv record/header record/reader record/record record/scan record/writer \
	event/trigger event/watermark event/window \
	agg/agg \
	state/ordered state/table \
	op/windowing
LIB_CXX := record/ndjson

UNIT := \
	arena buf codec decimal err hash list shown \
	civil duration instant zone \
	csv header ndjson reader record scan writer \
	trigger watermark window \
	agg \
	ordered table \
	windowing

LIB_OBJECTS := $(LIB:%=$B/lib/%.o) $(LIB_CXX:%=$B/lib/%.o)
CMD_OBJECTS := $(CMD:%=$B/cmd/%.o)
TOOL_BINARIES := $(TOOLS:%=$B/%)
UNIT_BINARIES := $(UNIT:%=$B/unit/test_%)

.PHONY: all unit check check-asan fuzz bench golden format lint install uninstall clean
.SECONDARY:

all: $(TOOL_BINARIES)

# `make V=1` shows the whole commands.
Q := $(if $(V),,@)

$B/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$Q$(CC) $(CPPFLAGS) -DWM_VERSION='"$(VERSION)"' $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$B/%.o: %.cc
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CXX $<")
	$Q$(CXX) $(CPPFLAGS) $(CXXFLAGS_ALL) -MMD -MP -c -o $@ $<

$(TOOL_BINARIES): $B/%: $B/cmd/%.o $(CMD_OBJECTS) $(LIB_OBJECTS)
	$(if $(V),,@echo "  LD  $@")
	$Q$(CXX) $(OPT) $(LDFLAGS) -o $@ $^ $(LIBS)

$B/unit/test_%: $B/tests/unit/test_%.o $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$Q$(CXX) $(OPT) $(LDFLAGS) -o $@ $^ $(LIBS)

unit: $(UNIT_BINARIES)

clean:
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
