#!/usr/bin/env python3
"""Checks docs/formats/policy.schema.json with jsonschema.

usage: schema_test.py REPOSITORY
"""
import datetime
import json
import pathlib
import re
import sys

try:
    import jsonschema
    import tomllib
except ImportError as missing:
    print(f"skipped: python has no {missing.name}")
    sys.exit(77)

# The errors of tests/policy_malformed that a schema of keys and codes must see too.
SEEN_BY_SCHEMA = re.compile(r"unknown key|is not a code of this key|is not known")


def plain(value):
    """Dates as the texts that editors give to a schema."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else value


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    schema = json.loads((root / "docs/formats/policy.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = 0

    good = sorted(root.glob("deploy/**/*.policy.toml")) + sorted(root.glob("deploy/**/legal-facts.toml"))
    for path in good:
        for error in validator.iter_errors(plain(tomllib.loads(path.read_text()))):
            failures += 1
            print(f"{path.relative_to(root)}: {list(error.absolute_path)}: {error.message[:200]}")

    bad = 0
    for path in sorted(root.glob("tests/policy_malformed/*.toml")):
        text = path.read_text()
        if not SEEN_BY_SCHEMA.search(text.splitlines()[0]):
            continue
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        bad += 1
        if validator.is_valid(plain(document)):
            failures += 1
            print(f"{path.relative_to(root)}: valid by the schema, but: {text.splitlines()[0]}")

    print(f"{len(good)} files that must be valid, {bad} that must not, {failures} failures")
    # A folder that went missing must not pass.
    return 1 if failures or len(good) < 20 or bad < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
