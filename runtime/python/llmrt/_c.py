"""llmrt.h for ctypes: its structures field by field, its functions with their types.

test/e2e/test_python.py compares this file with the header.
"""
import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


class PlanOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("allow_writable_by_others", c_int), ("verify_weights", c_int)]


class PlanInfo(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("architecture", c_char_p), ("parameters", c_uint64),
                ("layers", c_int32), ("vocabulary", c_int32), ("max_context", c_int32),
                ("kv_bytes_per_token", c_uint64), ("has_tokenizer", c_int), ("has_chat_template", c_int)]


class Message(ctypes.Structure):
    _fields_ = [("role", c_char_p), ("content", c_char_p)]


class EngineOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("max_batched_tokens", c_uint32),
                ("max_sequences", c_uint32), ("block_tokens", c_uint32), ("kv_tokens", c_uint64),
                ("device", c_char_p), ("max_queued", c_uint32), ("no_prefix_caching", c_int),
                ("swap_tokens", c_uint64), ("speculative_config", c_char_p)]


class Metrics(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("running", c_int64), ("waiting", c_int64), ("kv_usage", c_double),
                ("kv_occupancy", c_double), ("prefix_queries", c_int64), ("prefix_hits", c_int64),
                ("prompt_tokens", c_int64), ("generation_tokens", c_int64), ("preemptions", c_int64),
                ("swaps", c_int64), ("queue_refusals", c_int64), ("drafts", c_int64), ("draft_tokens", c_int64),
                ("accepted_tokens", c_int64), ("finished_stop", c_int64), ("finished_length", c_int64),
                ("finished_cancelled", c_int64), ("finished_error", c_int64), ("steps", c_int64),
                ("step_seconds", c_double), ("slow_fallbacks", c_int64)]


class TokenLogprob(ctypes.Structure):
    _fields_ = [("id", c_int32), ("logprob", c_float)]


class Token(ctypes.Structure):
    _fields_ = [("request", c_uint64), ("index", c_int64), ("id", c_int32), ("logprob", c_float),
                ("top", POINTER(TokenLogprob)), ("top_count", c_size_t), ("choice", c_int32)]


class Result(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("request", c_uint64), ("reason", c_int), ("status", c_int),
                ("stop_string", c_char_p), ("prompt_tokens", c_int64), ("output_tokens", c_int64),
                ("prefill_seconds", c_double), ("decode_seconds", c_double), ("choice", c_int32), ("last", c_int),
                ("cached_tokens", c_int64), ("preemptions", c_int64), ("draft_tokens", c_int64),
                ("accepted_tokens", c_int64), ("sum_logprob", c_double), ("queue_seconds", c_double)]


class LogitBias(ctypes.Structure):
    _fields_ = [("id", c_int32), ("bias", c_float)]


class GenerateOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("max_new_tokens", c_int64), ("temperature", c_float), ("top_k", c_int32),
                ("top_p", c_float), ("min_p", c_float), ("repetition_penalty", c_float),
                ("presence_penalty", c_float), ("frequency_penalty", c_float), ("seed", c_uint64),
                ("logprobs", c_int32), ("ignore_eos", c_int), ("stop_ids", POINTER(c_int32)),
                ("stop_id_count", c_size_t), ("stop_strings", POINTER(c_char_p)), ("stop_string_count", c_size_t),
                ("on_token", c_void_p), ("on_text", c_void_p), ("on_finish", c_void_p), ("user", c_void_p),
                ("choices", c_int32), ("on_choice_text", c_void_p), ("priority", c_int32),
                ("timeout_seconds", c_double), ("cache_salt", c_char_p), ("min_tokens", c_int32),
                ("json_schema", c_char_p), ("regex", c_char_p), ("grammar", c_char_p),
                ("logit_bias", POINTER(LogitBias)), ("logit_bias_count", c_size_t), ("typical_p", c_float),
                ("dry_multiplier", c_float), ("dry_base", c_float), ("dry_allowed_length", c_int32),
                ("xtc_probability", c_float), ("xtc_threshold", c_float), ("mirostat", c_int32),
                ("mirostat_tau", c_float), ("mirostat_eta", c_float)]


class Event(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("token", Token), ("result", Result), ("text", c_void_p),
                ("text_length", c_size_t)]


STRUCTURES = {"llmrt_plan_options": PlanOptions, "llmrt_plan_info": PlanInfo, "llmrt_message": Message,
              "llmrt_engine_options": EngineOptions, "llmrt_metrics": Metrics, "llmrt_token_logprob": TokenLogprob,
              "llmrt_token": Token, "llmrt_result": Result, "llmrt_logit_bias": LogitBias,
              "llmrt_generate_options": GenerateOptions, "llmrt_event": Event}

TOKENIZE_ADD_SPECIAL, TOKENIZE_PARSE_SPECIAL = 1, 2
DETOKENIZE_KEEP_SPECIAL = 1
EVENT_NONE, EVENT_TOKEN, EVENT_FINISH, EVENT_END = range(4)

_OUT = POINTER(c_void_p)
_IDS = POINTER(c_int32)
_COUNT = POINTER(c_size_t)
FUNCTIONS = {  # result, parameters
    "llmrt_version": (c_uint32, []),
    "llmrt_version_string": (c_char_p, []),
    "llmrt_last_error": (c_char_p, []),
    "llmrt_status_name": (c_char_p, [c_int]),
    "llmrt_plan_open": (c_int, [c_char_p, POINTER(PlanOptions), _OUT]),
    "llmrt_plan_close": (None, [c_void_p]),
    "llmrt_plan_get_info": (c_int, [c_void_p, POINTER(PlanInfo)]),
    "llmrt_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_uint32, _IDS, c_size_t, _COUNT]),
    "llmrt_detokenize": (c_int, [c_void_p, _IDS, c_size_t, c_uint32, c_char_p, c_size_t, _COUNT]),
    "llmrt_encode_chat": (c_int, [c_void_p, POINTER(Message), c_size_t, c_int, _IDS, c_size_t, _COUNT]),
    "llmrt_engine_create": (c_int, [c_void_p, POINTER(EngineOptions), _OUT]),
    "llmrt_engine_destroy": (None, [c_void_p]),
    "llmrt_engine_start": (c_int, [c_void_p]),
    "llmrt_engine_drain": (c_int, [c_void_p]),
    "llmrt_engine_get_metrics": (c_int, [c_void_p, POINTER(Metrics)]),
    "llmrt_generate_options_init": (None, [c_void_p, POINTER(GenerateOptions), c_size_t]),
    "llmrt_stream_open": (c_int, [c_void_p, _IDS, c_size_t, POINTER(GenerateOptions), c_int, _OUT]),
    "llmrt_stream_next": (c_int, [c_void_p, c_int, POINTER(Event)]),
    "llmrt_stream_close": (None, [c_void_p]),
}


def load():
    """The library that LLMRT_LIBRARY names, else the one of the same installation, else the system's."""
    named = os.environ.get("LLMRT_LIBRARY")
    here = pathlib.Path(__file__).resolve()
    # <prefix>/share/llmrt/python/llmrt/_c.py beside <prefix>/lib or <prefix>/lib/<machine>
    installed = [str(path) for pattern in ("lib/libllmrt.so.0", "lib/*/libllmrt.so.0", "lib64/libllmrt.so.0")
                 for path in here.parents[4].glob(pattern)]
    errors = []
    for path in [named] if named else [*installed, "libllmrt.so.0"]:
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            errors.append(str(error))
            continue
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
        return library
    raise ImportError("libllmrt can't be loaded; LLMRT_LIBRARY=/path/to/libllmrt.so says where it is: " + "; ".join(errors))
