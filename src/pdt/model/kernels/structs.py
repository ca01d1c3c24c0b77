"""The structs of `structs.h`, field by field."""

from ctypes import Structure, c_float, c_int, c_long, c_void_p

PLAN, NOTES = 0, 1
"""The two small memories that a layer reads."""


class Linear(Structure):
    _fields_ = [
        ("weight", c_void_p), ("bias", c_void_p), ("narrow", c_void_p), ("widen", c_void_p),
        ("outs", c_long), ("ins", c_long), ("groups", c_long), ("rank", c_long), ("kind", c_long),
    ]  # fmt: skip


class Read(Structure):
    _fields_ = [("q", Linear), ("o", Linear), ("heads", c_long), ("in_state_units", c_long)]


class Memory(Structure):
    _fields_ = [
        ("k", c_void_p), ("v", c_void_p), ("readable", c_void_p), ("slots", c_long),
        ("gate", c_float), ("pad", c_int),
    ]  # fmt: skip


class Held(Structure):
    _fields_ = [
        ("prompt_k", c_void_p), ("prompt_v", c_void_p),
        ("suffix_k", c_void_p), ("suffix_v", c_void_p), ("read", Memory * 2),
    ]  # fmt: skip


class Layer(Structure):
    _fields_ = [
        ("q", Linear), ("k", Linear), ("v", Linear), ("o", Linear),
        ("gate", Linear), ("up", Linear), ("down", Linear),
        ("input_norm", c_void_p), ("post_norm", c_void_p),
        ("q_norm", c_void_p), ("k_norm", c_void_p), ("held", c_void_p),
        ("groups", c_long), ("prompt_lanes", c_long), ("read", Read * 2),
    ]  # fmt: skip


class Document(Structure):
    _fields_ = [
        ("prompt_tokens", c_long), ("prompt_length", c_long), ("capacity", c_long),
        ("cos", c_void_p), ("sin", c_void_p),
    ]  # fmt: skip


class RowOf(Structure):
    _fields_ = [("lane", c_long), ("document", c_long), ("position", c_long)]


class RoundOf(Structure):
    _fields_ = [
        ("rows", c_long), ("runs", c_long), ("writing", c_long), ("documents", c_long),
        ("lanes", c_long), ("width", c_long), ("query_heads", c_long),
        ("kv_heads", c_long), ("head_width", c_long), ("feed_forward", c_long),
        ("layers", c_long), ("rank", c_long), ("widest", c_long), ("longest", c_long),
        ("document", c_void_p), ("row", c_void_p), ("run", c_void_p), ("lane", c_void_p),
        ("first", c_void_p), ("h", c_void_p), ("scratch", c_void_p),
        ("eps", c_float), ("threads", c_int),
    ]  # fmt: skip
