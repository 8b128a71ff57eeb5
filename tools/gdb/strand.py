# Strands in gdb, in a live process or a core file, in all its runs.
#
#     strand list         one line for each: number, name, what it does, where; of more than a thousand the first
#     strand tree         the same, children below their owners; "all" after either shows them all
#     strand ID bt        the functions that strand ID is in, also while its frames are copied out of the stack
#
# Every program with libstrand in it carries this file, and so does the shared library (src/arch/gdb.S): gdb loads it by
# itself where it may ("set auto-load safe-path"), or by "source". It needs the library's own debug information.
#
# There may be millions of strands. So control blocks are read a chunk at a time, of most of them two words are looked at,
# and what is found out of an address in the code is kept until the command is over.
#
# gdb can't be given the registers of a thread that does not run, and of an inactive strand the stack holds somebody
# else's frames. So frames are found here, by the tables that exceptions go by too (.eh_frame), over the saved stack.

import bisect
import re
import struct

import gdb

CACHE_LINE = 64  # where the objects of a chunk begin: src/base/slab.c
ENDS_OVER = 2
SERIAL_SHIFT, WORD_FLAGS = 10, 1 << 63 | 4  # free, or dead: src/strand/core.h
REASONS_OF_LAYER = 16  # src/strand/blocked.h
SHOWN_MOST = 1000


def fail(text):
    raise gdb.GdbError("strand: " + text)


# ---- memory and types ------------------------------------------------------------------------------------------------


def read(address, size):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, size))
    except gdb.MemoryError:
        return None


def word(address):
    data = read(address, 8)
    return struct.unpack("<Q", data)[0] if data else 0


def text_at(address, most=128):
    data = read(address, most) if address else None
    while not data and most > 1 and address:
        most //= 2
        data = read(address, most)
    return data.split(b"\0")[0].decode("utf-8", "replace") if data else ""


offsets = {}
cached = {}


def kept(what, of, find_out):
    """What is found out once for a command."""
    if (what, of) not in cached:
        cached[what, of] = find_out()
    return cached[what, of]


def forget():
    cached.clear()
    offsets.clear()


def member_of(kind, name):
    """(bit, type) of a member, which may be one of a union without a name."""
    for field in kind.strip_typedefs().fields():
        if field.name == name:
            return field.bitpos, field.type
        if not field.name:
            found = member_of(field.type, name)
            if found:
                return field.bitpos + found[0], found[1]
    return None


def offset(name, path):
    """Of a member of `struct name`, in bytes."""
    if (name, path) not in offsets:
        try:
            kind, total = gdb.lookup_type("struct " + name), 0
        except gdb.error:
            fail("there is no debug information for the library (struct %s)" % name)
        for part in path.split("."):
            bit, kind = member_of(kind, part)
            total += bit // 8
        offsets[name, path] = total
    return offsets[name, path]


def size_of(name):
    if (name, None) not in offsets:
        try:
            offsets[name, None] = gdb.lookup_type("struct " + name).sizeof
        except gdb.error:
            fail("there is no debug information for the library (struct %s)" % name)
    return offsets[name, None]


def name_of(enum, value):
    """Of a constant of `enum enum`, or an empty text."""
    if ("enum", enum) not in offsets:
        try:
            kind = gdb.lookup_type("enum " + enum)
        except gdb.error:
            fail("there is no debug information for the library (enum %s)" % enum)
        offsets["enum", enum] = {field.enumval: field.name for field in kind.fields()}
    return offsets["enum", enum].get(value, "")


def round_up(size, step=16):
    return (size + step - 1) // step * step


# ---- strands ---------------------------------------------------------------------------------------------------------


POOL_NONE, POOL_CLOSING, THREAD_NONE = 0, 2, 0  # src/sched/pool_type.h, thread_type.h


class Pool:
    """A record of one, which may have ended."""

    def __init__(self, address):
        self.address = address
        above = word(address + offset("pool", "above"))
        state = word(address + offset("pool", "state")) & 0xFFFFFFFF
        closed = above and read(above + offset("opened_pool", "closed"), 1) == b"\1"
        self.there = above != 0 and state != POOL_NONE and not closed
        self.closing = state == POOL_CLOSING
        self.name = text_at(above + offset("opened_pool", "name"), 32) if above else ""
        own = word(address + offset("pool", "custom"))
        named = own + offset("strand_scheduler", "name") if own else word(address + offset("pool", "scheduler"))
        self.scheduler = text_at(word(named), 32)
        first = word(address + offset("pool", "threads"))
        count = word(address + offset("pool", "count")) & 0xFFFFFFFF
        self.threads = [word(first + 8 * i) for i in range(min(count, 1024))]

    def count(self):
        return sum(word(t + offset("thread", "life")) & 0xFFFFFFFF != THREAD_NONE for t in self.threads)

    def line(self):
        closing = ", closing" if self.closing else ""
        return "pool '%s'%s: %s (%s)" % (self.name, closing, number_of(self.count(), "thread"), self.scheduler)


class Run:
    def __init__(self, address):
        self.address = address
        self.first = address + offset("runtime", "sub.pool")
        self.pools, pool = {}, word(address + offset("runtime", "sub.pools"))
        while pool:
            self.pools[pool] = Pool(pool)
            pool = word(pool + offset("pool", "older"))
        self.threads = [thread for pool in self.pools.values() for thread in pool.threads]
        self.played = word(address + offset("runtime", "sub.platform")) != 0

    def runner(self, fibre):
        """Its address, or None."""
        return kept("runners", self.address, self.find_runners).get(fibre)

    def find_runners(self):
        return {word(thread + offset("thread", "current")): thread for thread in self.threads}

    def head(self, strands):
        """The number of strands, and, if others were opened beside the first one, a line for each pool."""
        pools = [pool for pool in self.pools.values() if pool.there]
        threads = sum(pool.count() for pool in pools)
        lines = ["%s; %s" % (number_of(strands, "strand"), number_of(threads, "thread"))]
        return lines + ["    " + pool.line() for pool in pools if len(pools) > 1]


def number_of(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def runs():
    try:
        address = int(gdb.parse_and_eval("(unsigned long)arch_state.runs"))
    except gdb.error:
        fail("there is no libstrand in this program, or no debug information for it")
    found = []
    while address:
        found.append(Run(address - offset("runtime", "listed")))
        address = word(address)
    return found


def chunks(slab):
    """Address and bytes of each chunk, as far as objects were cut from it, and the size of these."""
    size, bump = word(slab + offset("slab", "size")), word(slab + offset("slab", "bump"))
    chunk, room = word(slab + offset("slab", "chunks")), word(word(slab + offset("slab", "source")) + 0)
    while chunk:
        end = bump if chunk <= bump <= chunk + room else chunk + room
        yield chunk, read(chunk, end - chunk) or b"", size
        chunk = word(chunk)


class Strand:
    """A control block, of which find has told."""

    def __init__(self, run, address, guest):
        self.run, self.address, self.guest = run, address, guest
        data = read(address, size_of("cb"))
        get = lambda path, form: struct.unpack_from(form, data, offset("cb", path))[0]
        self.word = get("word", "<Q")
        self.id = self.word >> SERIAL_SHIFT
        self.cancelled = bool(self.word & 1)
        self.over = bool(get("ends", "<Q") & ENDS_OVER)
        self.started = bool(get("started", "<B") & 1)
        self.blocked = get("blocked", "<B")
        self.blocked_on = get("blocked_on", "<Q")
        self.since = get("since", "<q")
        self.extra = get("extra", "<Q")
        self.anchor = get("anchor", "<Q")
        self.fibre = get("member.fibre", "<Q")
        self.member = address + offset("cb", "member")

    def name(self):
        own = text_at(self.extra + offset("extra", "name"), 32) if self.extra else ""
        return own or ("strand" if self.anchor else "root")

    def scope(self):
        if not self.anchor:
            return ""
        block = self.anchor + offset("scope", "block")
        line = word(block + offset("block", "line")) & 0xFFFFFFFF
        return "%s:%d" % (text_at(word(block + offset("block", "file"))), line)

    def runner(self):
        """The address of its thread, or None."""
        if self.over or word(self.fibre + offset("fibre", "current")) != self.member:
            return None
        return self.run.runner(self.fibre)

    def place(self):
        """(context, saved, size): where it stands, and what of its frames lies in a saved stack."""
        if self.over or not self.started or self.runner() is not None:
            return 0, 0, 0
        if not self.guest:
            stack = word(self.fibre + offset("fibre", "stack"))
            return (word(self.fibre + offset("fibre", "context")) if stack else 0), 0, 0
        guest = self.member - round_up(size_of("guest"))
        size = 8 * (word(guest + offset("guest", "depth")) & 0xFFFFFFFF)
        context = word(self.fibre + offset("shared_fibre", "stack.base")) - size
        if word(self.fibre + offset("shared_fibre", "stack.active")) == guest:
            return context, 0, 0
        return context, word(guest + offset("guest", "saved")), size

    def pool_name(self):
        """Of another than the first one."""
        pool = word(self.fibre + offset("fibre", "pool"))
        return "pool '%s'" % self.run.pools[pool].name if pool != self.run.first and pool in self.run.pools else ""

    def fibre_name(self):
        if not self.guest:
            return ""
        return kept("fibre", self.fibre, self.find_fibre_name)

    def find_fibre_name(self):
        hosting = self.fibre + offset("shared_fibre", "above")
        number = word(hosting + offset("hosting", "number")) & 0xFFFFFFFF
        return "fibre '%s' %d" % (text_at(hosting + offset("hosting", "name"), 32), number)

    def doing(self):
        if self.over:
            return "ended, not joined"
        runner = self.runner()
        if runner is not None:
            return "running on thread %d" % (word(runner + offset("thread", "index")) & 0xFFFFFFFF)
        if not self.started:
            return "has not started"
        if not self.blocked:
            return "runnable"
        words, on = kept("blocked", self.blocked, self.reason)
        if on == "ON_STRAND":
            words += " #%d" % self.blocked_on
        elif on == "ON_DESCRIPTOR":
            words += " %d" % self.blocked_on
        elif on == "ON_POOL":
            words += " '%s'" % text_at(self.blocked_on + offset("opened_pool", "name"), 32)
        elif on == "ON_ADDRESS":
            words += " at 0x%x" % self.blocked_on
        return words

    def reason(self):
        """(words, on) of its entry in the tables of reasons; on: the name of a constant, which says what blocked_on is."""
        layer, index = divmod(self.blocked, REASONS_OF_LAYER)
        entry = word(word(self.run.address + offset("runtime", "reasons")) + 8 * layer)
        entry += index * size_of("blocked_reason")
        words = text_at(word(entry + offset("blocked_reason", "words")))
        on = word(entry + offset("blocked_reason", "on")) & 0xFFFFFFFF
        return words or "blocked (%d)" % self.blocked, name_of("blocked_on", on)

    def line(self):
        parts = [self.doing()]
        if self.cancelled:
            parts.append("cancelled")
        if self.pool_name():
            parts.append(self.pool_name())
        if self.guest:
            saved_at = self.place()[1]
            parts.append(self.fibre_name() + (", inactive" if saved_at else ""))
        frames = user_frames(self)
        if frames:
            parts.append("in " + function_of(frames[0][0]))
        return "#%d '%s' %s" % (self.id, self.name(), "; ".join(parts))


def find(run, number=None):
    """(id, address, whether it is a guest, anchor) of each strand, or of the one with that number."""
    rooms = {"cbs": round_up(size_of("fibre"), 64), "guests": round_up(size_of("guest"))}
    at_word, at_anchor = offset("cb", "word"), offset("cb", "anchor")
    unpack, found = struct.Struct("<Q").unpack_from, []
    for slab, room in rooms.items():
        for chunk, data, size in chunks(run.address + offset("runtime", slab)):
            for at in range(CACHE_LINE + room, len(data) - size + room + 1, size):
                id_and_flags = unpack(data, at + at_word)[0]
                serial = id_and_flags >> SERIAL_SHIFT
                if not serial or id_and_flags & WORD_FLAGS or (number is not None and serial != number):
                    continue
                found.append((serial, chunk + at, slab == "guests", unpack(data, at + at_anchor)[0]))
    return sorted(found)


def owner_of(anchor):
    return kept("owner", anchor, lambda: word(anchor + offset("scope", "block.owner"))) if anchor else 0


# ---- the tables of the code ------------------------------------------------------------------------------------------


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def sleb(data, at):
    begin = at
    value, at = uleb(data, at)
    bits = 7 * (at - begin)
    return (value - (1 << bits) if value >> (bits - 1) else value), at


FORMS = {0x00: "<Q", 0x02: "<H", 0x03: "<I", 0x04: "<Q", 0x0A: "<h", 0x0B: "<i", 0x0C: "<q"}


def encoded(data, at, encoding, address):
    """A pointer of the tables; address: of data[0]."""
    form = FORMS[encoding & 0x0F]
    value = struct.unpack_from(form, data, at)[0]
    if encoding & 0x70 == 0x10:
        value += address + at
    return value, at + struct.calcsize(form)


class Code:
    """One program or library: where its sections lie, and the table of its functions."""

    def __init__(self):
        self.sections = []
        self.index = None

    def load_index(self):
        self.index, self.fdes = [], []
        found = [s for s in self.sections if s[2] == ".eh_frame_hdr"]
        if not found:
            return
        begin, end = found[0][0], found[0][1]
        data = read(begin, end - begin)
        if not data or data[0] != 1 or data[3] != 0x3B:
            return
        _, at = encoded(data, 4, data[1], begin)
        count, at = encoded(data, at, data[2], begin)
        pairs = struct.unpack_from("<%di" % (2 * count), data, at)
        self.index = [begin + pc for pc in pairs[0::2]]
        self.fdes = [begin + fde for fde in pairs[1::2]]

    def fde(self, pc):
        if self.index is None:
            self.load_index()
        at = bisect.bisect_right(self.index, pc) - 1
        return self.fdes[at] if at >= 0 else 0


def load_codes():
    codes, name = {}, ""
    for line in gdb.execute("info files", to_string=True).splitlines():
        found = re.match(r"^\s*(0x[0-9a-f]+) - (0x[0-9a-f]+) is (\S+)(?: in (.*))?$", line)
        if found and not re.match(r"load\d+[a-z]?$", found.group(3)):  # a segment of a core file: no section
            name = found.group(4) or ""
            code = codes.setdefault(name, Code())
            code.sections.append((int(found.group(1), 16), int(found.group(2), 16), found.group(3)))
    return list(codes.values())


def codes():
    return kept("codes", 0, load_codes)


def code_of(pc):
    for code in codes():
        if any(begin <= pc < end for begin, end, _ in code.sections):
            return code
    return None


class Rules:
    """How the caller's registers are found from those of a frame: one row of the table."""

    def __init__(self, fde, pc):
        data = read(fde, 4)
        data = read(fde, 4 + struct.unpack("<I", data)[0])
        cie = fde + 4 - struct.unpack_from("<I", data, 4)[0]
        self.read_cie(cie)
        begin, at = encoded(data, 8, self.encoding, fde)
        length, at = encoded(data, at, self.encoding & 0x0F, fde)
        if not begin <= pc < begin + length:
            raise LookupError
        if self.augmented:
            size, at = uleb(data, at)
            at += size
        self.cfa, self.rows = None, {}
        self.run(self.first, 0, begin, begin)
        self.initial = dict(self.rows)
        self.run(data, at, begin, pc)

    def read_cie(self, cie):
        data = read(cie, 4 + struct.unpack("<I", read(cie, 4))[0])
        version, at = data[8], 9
        end = data.index(b"\0", at)
        letters, at = data[at:end].decode(), end + 1
        self.code_step, at = uleb(data, at)
        self.data_step, at = sleb(data, at)
        if version == 1:
            at += 1
        else:
            _, at = uleb(data, at)
        self.encoding, self.augmented = 0, letters.startswith("z")
        if self.augmented:
            size, at = uleb(data, at)
            after = at + size
            for letter in letters[1:]:
                if letter == "R":
                    self.encoding, at = data[at], at + 1
                elif letter == "P":
                    _, at = encoded(data, at + 1, data[at] & 0x0F, cie)
                elif letter == "L":
                    at += 1
            at = after
        self.first = data[at:]

    def run(self, data, at, loc, pc):
        """The program of the table, up to the row for pc."""
        stack = []
        while at < len(data):
            op, at = data[at], at + 1
            high, low = op & 0xC0, op & 0x3F
            if high == 0x40:
                loc += low * self.code_step
            elif high == 0x80:
                value, at = uleb(data, at)
                self.rows[low] = ("at", value * self.data_step)
            elif high == 0xC0:
                self.restore(low)
            elif op in (0x02, 0x03, 0x04):
                form = {0x02: "<B", 0x03: "<H", 0x04: "<I"}[op]
                loc += struct.unpack_from(form, data, at)[0] * self.code_step
                at += struct.calcsize(form)
            elif op == 0x0A:
                stack.append((self.cfa, dict(self.rows)))
            elif op == 0x0B:
                self.cfa, self.rows = stack.pop()
            else:
                at = self.step(op, data, at)
            if loc > pc:
                return

    def restore(self, register):
        if register in self.initial:
            self.rows[register] = self.initial[register]
        else:
            self.rows.pop(register, None)

    def step(self, op, data, at):
        if op == 0x00:
            return at
        if op in (0x0F, 0x10, 0x16):  # expressions for the CFA, an address or a value
            register = None
            if op != 0x0F:
                register, at = uleb(data, at)
            size, at = uleb(data, at)
            body = data[at : at + size]
            if op == 0x0F:
                self.cfa = ("expression", body)
            else:
                self.rows[register] = ("expression" if op == 0x10 else "value", body)
            return at + size
        if op == 0x2E:
            return uleb(data, at)[1]
        if op in (0x0E, 0x13):
            value, at = uleb(data, at) if op == 0x0E else sleb(data, at)
            self.cfa = (self.cfa[0], value * (1 if op == 0x0E else self.data_step))
            return at
        register, at = uleb(data, at)
        if op == 0x06:
            self.restore(register)
        elif op == 0x07:
            self.rows[register] = ("undefined", 0)
        elif op == 0x08:
            self.rows.pop(register, None)
        elif op == 0x0D:
            self.cfa = (register, self.cfa[1])
        else:
            value, at = sleb(data, at) if op in (0x11, 0x12, 0x15) else uleb(data, at)
            if op == 0x0C:
                self.cfa = (register, value)
            elif op == 0x12:
                self.cfa = (register, value * self.data_step)
            elif op in (0x05, 0x11):
                self.rows[register] = ("at", value * self.data_step)
            elif op == 0x2F:
                self.rows[register] = ("at", -value * self.data_step)
            elif op in (0x14, 0x15):
                self.rows[register] = ("sum", value * self.data_step)
            elif op == 0x09:
                self.rows[register] = ("register", value)
            else:
                raise LookupError
        return at


def evaluate(body, registers, memory, stack):
    """The few operations that compilers use in their tables."""
    at = 0
    while at < len(body):
        op, at = body[at], at + 1
        if 0x30 <= op <= 0x4F:
            stack.append(op - 0x30)
        elif 0x70 <= op <= 0x8F:
            value, at = sleb(body, at)
            stack.append(registers[op - 0x70] + value)
        elif op == 0x06:
            stack.append(memory(stack.pop()))
        elif op in (0x08, 0x09):
            stack.append(struct.unpack_from("<B" if op == 0x08 else "<b", body, at)[0])
            at += 1
        elif op == 0x23:
            value, at = uleb(body, at)
            stack.append(stack.pop() + value)
        elif op in (0x1A, 0x1C, 0x22, 0x24, 0x2A):
            b, a = stack.pop(), stack.pop()
            stack.append({0x1A: a & b, 0x1C: a - b, 0x22: a + b, 0x24: a << b, 0x2A: int(a >= b)}[op])
        else:
            raise LookupError
    return stack[-1] & 0xFFFFFFFFFFFFFFFF


# ---- frames ----------------------------------------------------------------------------------------------------------

RBX, RBP, RSP, RIP = 3, 6, 7, 16
SAVED = {12: 0x08, 13: 0x10, 14: 0x18, 15: 0x20, RBX: 0x28, RBP: 0x30, RIP: 0x38}  # src/arch/context.h


def rules_at(pc):
    code = code_of(pc)
    fde = code.fde(pc) if code else 0
    return Rules(fde, pc) if fde else None


def step_out(registers, memory):
    """The caller's registers, or None at the end."""
    pc = registers[RIP] - 1
    rules = kept("rules", pc, lambda: rules_at(pc))
    if not rules:
        return None
    if rules.cfa[0] == "expression":
        cfa = evaluate(rules.cfa[1], registers, memory, [])
    else:
        cfa = registers[rules.cfa[0]] + rules.cfa[1]
    caller = dict(registers)
    caller[RSP] = cfa
    if rules.rows.get(RIP, ("undefined", 0))[0] == "undefined":
        return None
    for register, (kind, value) in rules.rows.items():
        if kind == "at":
            caller[register] = memory(cfa + value)
        elif kind == "sum":
            caller[register] = cfa + value
        elif kind == "register":
            caller[register] = registers[value]
        elif kind in ("expression", "value"):
            found = evaluate(value, registers, memory, [cfa])
            caller[register] = memory(found) if kind == "expression" else found
    return caller


def frames_of(strand, most=256):
    """(return address, stack pointer) of each frame of a strand that does not run."""
    context, saved_at, size = strand.place()
    if not context:
        return []

    saved = read(saved_at, size) if saved_at else None

    def memory(address):
        if saved and context <= address and address + 8 <= context + size:
            return struct.unpack_from("<Q", saved, address - context)[0]
        return word(address)

    registers = {register: memory(context + at) for register, at in SAVED.items()}
    registers[RSP] = context + 0x40
    found = []
    while registers and registers[RIP] and len(found) < most:
        found.append((registers[RIP], registers[RSP]))
        try:
            registers = step_out(registers, memory)
        except (LookupError, KeyError, TypeError, struct.error):
            break
    return found


def function_of(pc):
    return kept("function", pc, lambda: name_of_function(pc))


def name_of_function(pc):
    try:
        block = gdb.block_for_pc(pc - 1)
        while block and not block.function:
            block = block.superblock
        if block and block.function:
            return block.function.print_name
    except RuntimeError:
        pass
    name = gdb.execute("info symbol 0x%x" % (pc - 1), to_string=True)
    return re.split(r" \+ | in section |\n", name)[0] if " in section " in name else "??"


own_range = {}


def is_own(pc):
    """The library's code has a section of its own (tools/own-text.sh); a linker may put it into another, but says where."""
    if not own_range:
        own_range["all"] = []
        for code in codes():
            own_range["all"] += [(s[0], s[1]) for s in code.sections if s[2] == "strand_text"]
        try:
            ends = [int(gdb.parse_and_eval("(unsigned long)&__%s_strand_text" % end)) for end in ("start", "stop")]
            own_range["all"].append(tuple(ends))
        except gdb.error:
            pass
    return kept("own", pc, lambda: any(begin <= pc - 1 < end for begin, end in own_range["all"]))


def user_frames(strand):
    """Without the library's own at both ends."""
    frames = frames_of(strand)
    first, last = 0, len(frames)
    while first < last and is_own(frames[first][0]):
        first += 1
    while last > first and is_own(frames[last - 1][0]):
        last -= 1
    return frames[first:last] if first < last else frames


def print_frames(frames):
    for number, (pc, _) in enumerate(frames):
        line = gdb.find_pc_line(pc - 1)
        place = " at %s:%d" % (line.symtab.filename, line.line) if line.symtab and line.line else ""
        print("#%-2d 0x%016x in %s ()%s" % (number, pc, function_of(pc), place))


def print_suspended(strand):
    """A core file may lack stacks: gdb leaves out a mapping of which it cannot read a page, such as a guard page."""
    frames = user_frames(strand)
    if frames:
        print_frames(frames)
    elif not strand.place()[0]:
        print("it has no frames: it has not begun, or has ended")
    else:
        fail(
            "the stack of strand #%d is not in this core file: gdb and gcore leave out mappings with guard pages of "
            "the newer kind. Run the program with STRAND_GUARDS=mprotect in its environment, or let the system write "
            "the core file (ulimit -c unlimited, then kill -ABRT)" % strand.id
        )


def print_thread(strand, runner):
    """gdb knows the frames of threads by itself."""
    number = word(runner + offset("thread", "os_id")) & 0xFFFFFFFF
    for other in gdb.selected_inferior().threads():
        if number in other.ptid[1:]:
            other.switch()
            gdb.execute("bt")
            return
    fail("its thread (%d) is not among those that gdb knows" % number)


# ---- the commands ----------------------------------------------------------------------------------------------------


class StrandCommand(gdb.Command):
    """Strands of libstrand.

strand list [all]    one line for each strand, or for the first thousand
strand tree [all]    the same, children below their owners
strand ID            where strand ID is anchored, and what it does
strand ID bt         the functions that strand ID is in, the innermost first"""

    def __init__(self):
        super().__init__("strand", gdb.COMMAND_STACK)

    def invoke(self, text, from_tty):
        words = gdb.string_to_argv(text)
        own_range.clear()
        forget()
        if words[:1] == ["list"] and words[1:] in ([], ["all"]):
            self.list(words[1:] == ["all"])
        elif words[:1] == ["tree"] and words[1:] in ([], ["all"]):
            self.tree(words[1:] == ["all"])
        elif words and words[0].lstrip("#").isdigit() and words[1:] in ([], ["bt"]):
            self.one(int(words[0].lstrip("#")), words[1:] == ["bt"])
        elif len(words) == 2 and words[0] == "bt" and words[1].lstrip("#").isdigit():
            self.one(int(words[1].lstrip("#")), True)
        else:
            fail("strand list, strand tree, or strand ID bt")

    def list(self, everything):
        for run in runs():
            found = find(run)
            print("\n".join(run.head(len(found))))
            most = len(found) if everything else SHOWN_MOST
            for _, address, guest, _ in found[:most]:
                print(Strand(run, address, guest).line())
            self.print_omitted("list", len(found) - most)

    def print_omitted(self, command, count):
        if count > 0:
            print("and %d more: strand %s all" % (count, command))

    def tree(self, everything):
        for run in runs():
            found = find(run)
            known = {address for _, address, _, _ in found}
            below = {}
            for _, address, guest, anchor in found:
                owner = owner_of(anchor)
                below.setdefault(owner if owner in known else 0, []).append((address, guest))
            waiting = [(strand, 0) for strand in reversed(below.get(0, []))]
            most = len(found) if everything else SHOWN_MOST
            shown = 0
            while waiting and shown < most:
                (address, guest), depth = waiting.pop()
                print("  " * depth + Strand(run, address, guest).line())
                shown += 1
                waiting += [(child, depth + 1) for child in reversed(below.get(address, []))]
            self.print_omitted("tree", len(found) - most)

    def one(self, number, trace):
        for run in runs():
            for _, address, guest, _ in find(run, number):
                strand = Strand(run, address, guest)
                runner = strand.runner()
                if not trace:
                    print(strand.line())
                    print("anchored in the scope of %s" % strand.scope() if strand.anchor else "the root")
                elif runner is not None and not run.played:
                    print_thread(strand, runner)
                elif runner is not None:
                    fail("it runs on a played thread: gdb's own bt shows it, if that is the one that runs")
                else:
                    print_suspended(strand)
                return
        fail("there is no strand #%d" % number)


StrandCommand()
