"""Reads pages with trafilatura: a JSON line for each, of what is to be read and then of what was."""

import json
import sys

from trafilatura import extract

for line in sys.stdin:
    page = json.loads(line)
    found = extract(
        page["html"],
        url=page["url"],
        output_format="json",
        with_metadata=True,
        include_comments=False,
    )
    values = json.loads(found) if found else {}
    read = {
        "text": values.get("text"),
        "title": values.get("title"),
        "description": values.get("excerpt"),
        "language": values.get("language"),
        "image": values.get("image"),
    }
    print(json.dumps(read), flush=True)
