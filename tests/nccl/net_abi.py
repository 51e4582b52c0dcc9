# SPDX-License-Identifier: Apache-2.0
"""NCCL's network plugin interface by ctypes: a library is loaded as NCCL loads it, in any version of the table."""

import ctypes
from ctypes import c_char_p, c_float, c_int, c_int16, c_size_t, c_uint64, c_void_p

VERSIONS = (6, 8, 9, 10, 11, 12)
HANDLE_BYTES = 128
HOST, GPU = 1, 2
SUCCESS, INVALID_USAGE, REMOTE_ERROR = 0, 5, 6

LOGGER = ctypes.CFUNCTYPE(None, c_int, ctypes.c_ulong, c_char_p, c_int, c_char_p, c_char_p)
INTS, POINTER = ctypes.POINTER(c_int), ctypes.POINTER(c_void_p)


def fields_of_properties(version):
    fields = [("name", c_char_p), ("pci_path", c_char_p), ("guid", c_uint64), ("memory", c_int)]
    if version >= 8:
        fields.append(("registers_globally", c_int))
    if version >= 9:
        fields.append(("forces_flush", c_int))
    fields += [("speed", c_int), ("port", c_int), ("latency", c_float), ("max_comms", c_int),
               ("max_receives", c_int)]
    if version >= 8:
        fields += [("device_type", c_int), ("device_version", c_int)]
    if version >= 9:
        fields += [("parts", c_int * (9 if version >= 12 else 5)), ("max_p2p_bytes", c_size_t),
                   ("max_collective_bytes", c_size_t)]
    if version >= 11:
        fields.append(("max_requests_of_group", c_int))
    if version >= 12:
        fields += [("rail", c_int16), ("plane", c_int16)]
    return fields


def fields_of_table(version):
    def function(*arguments):
        return ctypes.CFUNCTYPE(c_int, *arguments)

    size = c_size_t if version >= 9 else c_int
    context = [c_void_p] if version >= 11 else []
    device_handle = [POINTER] if version >= 8 else []
    config = [c_void_p] if version == 10 else []
    profile = [c_void_p] if version >= 10 else []
    if version >= 11:
        init = function(POINTER, c_uint64, c_void_p, c_void_p, c_void_p)
    else:
        init = function(c_void_p, *([c_void_p] if version == 10 else []))
    fields = [
        ("name", c_char_p), ("init", init), ("devices", function(INTS)),
        ("get_properties", function(c_int, c_void_p)),
        ("listen", function(*context, c_int, c_void_p, POINTER)),
        ("connect", function(*context, c_int, *config, c_void_p, POINTER, *device_handle)),
        ("accept", function(c_void_p, POINTER, *device_handle)),
        ("register_memory", function(c_void_p, c_void_p, c_size_t if version >= 8 else c_int, c_int, POINTER)),
        ("register_dma_buf", function(c_void_p, c_void_p, c_size_t, c_int, c_uint64, c_int, POINTER)),
        ("deregister", function(c_void_p, c_void_p)),
        ("isend", function(c_void_p, c_void_p, size, c_int, c_void_p, *profile, POINTER)),
        ("irecv", function(c_void_p, c_int, POINTER, ctypes.POINTER(size), INTS, POINTER,
                           *([POINTER] if version >= 10 else []), POINTER)),
        ("iflush", function(c_void_p, c_int, POINTER, INTS, POINTER, POINTER)),
        ("test", function(c_void_p, INTS, INTS)),
        ("close_send", function(c_void_p)), ("close_receive", function(c_void_p)),
        ("close_listen", function(c_void_p))]
    if version >= 8:
        fields += [("get_device_memory", c_void_p), ("irecv_consumed", c_void_p)]
    if version >= 9:
        fields.append(("make_virtual_device", c_void_p))
    if version >= 11:
        fields += [("finalize", function(c_void_p)), ("set_net_attributes", function(c_void_p, c_void_p))]
    return fields


class Failed(Exception):
    """A call of the plugin has returned an error; the text has what the plugin has logged."""

    def __init__(self, call, result, log):
        super().__init__(f"{call}: result {result}; the plugin's log: {' | '.join(log) or 'empty'}")
        self.result = result


class Plugin:
    """The library, by one version of its table. Methods have NCCL's names, and raise Failed."""

    def __init__(self, path, version):
        self.version = version
        self._library = ctypes.CDLL(path)
        self._table_type = type("Table", (ctypes.Structure,), {"_fields_": fields_of_table(version)})
        self.properties_type = type("Properties", (ctypes.Structure,), {"_fields_": fields_of_properties(version)})
        self._table = self._table_type.in_dll(self._library, f"ncclNetPlugin_v{version}")
        self.name = self._table.name.decode()
        self.log = []
        # NCCL's logger has a variable number of arguments; the plugin's formats have one string, or more than that.
        self._logger = LOGGER(lambda level, _flags, _file, _line, form, text:
                              self.log.append((text if form == b"NET/Railhead: %s" else form).decode()))
        self._context = c_void_p()

    def _call(self, name, *arguments):
        result = getattr(self._table, name)(*arguments)
        if result != SUCCESS:
            raise Failed(name, result, self.log)

    def _context_first(self):
        return [self._context] if self.version >= 11 else []

    def init(self):
        logger = ctypes.cast(self._logger, c_void_p)
        if self.version >= 11:
            config = c_int(-1)
            self._call("init", ctypes.byref(self._context), 7, ctypes.byref(config), logger, None)
        else:
            self._call("init", logger, *([None] if self.version == 10 else []))

    def devices(self):
        count = c_int(-1)
        self._call("devices", ctypes.byref(count))
        return count.value

    def properties(self, device):
        found = self.properties_type()
        self._call("get_properties", device, ctypes.byref(found))
        return found

    def listen(self, device=0):
        handle, comm = ctypes.create_string_buffer(HANDLE_BYTES), c_void_p()
        self._call("listen", *self._context_first(), device, handle, ctypes.byref(comm))
        return comm.value, handle.raw

    def _made(self, call, *arguments):
        comm, device_handle = c_void_p(), c_void_p(1)
        last = [ctypes.byref(device_handle)] if self.version >= 8 else []
        self._call(call, *arguments, ctypes.byref(comm), *last)
        if last and device_handle.value:
            raise AssertionError(f"{call} has not set the device handle")
        return comm.value

    def connect(self, handle, device=0):
        buffer = ctypes.create_string_buffer(handle, HANDLE_BYTES)
        config = [None] if self.version == 10 else []
        return self._made("connect", *self._context_first(), device, *config, buffer)

    def accept(self, listen_comm):
        return self._made("accept", listen_comm)

    def register(self, comm, buffer, kind=HOST):
        memory = c_void_p()
        self._call("register_memory", comm, buffer, len(buffer), kind, ctypes.byref(memory))
        return memory.value

    def isend(self, comm, buffer, size, tag, memory):
        request = c_void_p(1)
        profile = [None] if self.version >= 10 else []
        self._call("isend", comm, buffer, size, tag, memory, *profile, ctypes.byref(request))
        return request.value

    def irecv(self, comm, buffers, sizes, tags, memory):
        count = len(buffers)
        size = c_size_t if self.version >= 9 else c_int
        request = c_void_p()
        profiles = [(c_void_p * count)()] if self.version >= 10 else []
        self._call("irecv", comm, count, (c_void_p * count)(*[ctypes.addressof(b) for b in buffers]),
                   (size * count)(*sizes), (c_int * count)(*tags), (c_void_p * count)(*[memory] * count), *profiles,
                   ctypes.byref(request))
        return request.value

    def test(self, request, messages=1):
        """Returns the sizes of the messages, or None while it is not done."""
        done, sizes = c_int(-1), (c_int * messages)(*[-1] * messages)
        self._call("test", request, ctypes.byref(done), sizes)
        if done.value not in (0, 1):
            raise AssertionError("test has not set `done`")
        return list(sizes) if done.value else None

    def close(self, how, comm):
        self._call(f"close_{how}", comm)

    def finalize(self):
        if self.version >= 11:
            self._call("finalize", self._context)
