"""
What schemathesis does beside what it makes of the document: most of its requests are about what is
there, and it counts the answers of each operation.

PETREL_KNOWN    a JSON file: values that there are, by operationId and the name of a parameter or field
PETREL_COUNTED  the JSON file that is written at the end: answers by operationId and status
"""

import atexit
import json
import os
import zlib

import schemathesis

with open(os.environ["PETREL_KNOWN"], encoding="utf-8") as file:
    known = json.load(file)
counted = {}


def id_of(case):
    return case.operation.definition.raw.get("operationId")


@schemathesis.hook
def before_call(context, case, **kwargs):
    """Puts known values into the path and the field `endpoint` of 3 requests of 4: the same if repeated."""
    given = repr((case.path_parameters, case.query, case.body))
    chosen = zlib.crc32(given.encode("utf-8", "backslashreplace"))
    if chosen % 4 == 0:
        return
    for name, values in known.get(id_of(case), {}).items():
        if name in (case.path_parameters or {}) and values:
            case.path_parameters[name] = values[chosen // 4 % len(values)]
        elif name == "endpoint" and isinstance(case.body, dict) and name in case.body:
            case.body[name] = values[chosen // 4 % len(values)]


@schemathesis.hook
def after_call(context, case, response):
    if case.method.upper() != case.operation.method.upper():
        return
    statuses = counted.setdefault(id_of(case), {})
    statuses[response.status_code] = statuses.get(response.status_code, 0) + 1


@atexit.register
def write():
    with open(os.environ["PETREL_COUNTED"], "w", encoding="utf-8") as file:
        json.dump(counted, file)
