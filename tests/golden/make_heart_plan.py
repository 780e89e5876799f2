#!/usr/bin/env python3
"""The plan of deploy/examples/heart/job.toml, made from docs/formats/job-and-plan.md by another program
than ours: tomllib, json and hashlib of Python's standard library.

usage: make_heart_plan.py      writes heart_plan.json beside itself, and prints its SHA-256
"""
import hashlib
import json
import pathlib
import tomllib

HERE = pathlib.Path(__file__).resolve().parent


def decimal(value):
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def feature(table):
    out = {"column": table["column"], "kind": table["kind"]}
    if table["kind"] == "number":
        out["zero_is_missing"] = table.get("zero_is_missing", False)
    else:
        out["codes"] = table["codes"]
    return out


def per_input(features, key, of_category):
    values = []
    for table in features:
        values += [table[key]] if table["kind"] == "number" else [of_category] * len(table["codes"])
    return [decimal(value) for value in values]


def plan(job):
    training, rounds, update = job["training"], job["rounds"], job["update"]
    normalisation = job["normalisation"]
    return {
        "v": 1, "name": job["name"], "purpose": job["purpose"], "dataset": job["dataset"],
        "recipients": job["recipients"],
        "schema": {"features": [feature(table) for table in job["feature"]],
                   "label": {"column": job["label"]["column"],
                             "positive_above": decimal(job["label"]["positive_above"])}},
        "model": {"kind": job["model"]["kind"]},
        "training": {"optimizer": training["optimizer"],
                     "learning_rate": decimal(training["learning_rate"]),
                     "momentum": decimal(training.get("momentum", 0)),
                     "nesterov": training.get("nesterov", False),
                     "weight_decay": decimal(training.get("weight_decay", 0)),
                     "l2": decimal(training["l2"]), "clip_norm": decimal(training.get("clip_norm", 0)),
                     "schedule": training.get("schedule", "constant"),
                     "warmup_steps": training.get("warmup_steps", 0),
                     "local_steps": training["local_steps"], "batch": training.get("batch", 0),
                     "frozen": training.get("frozen", []), "stages": training.get("stage", [])},
        "normalisation": {"deviation_floor": decimal(normalisation.get("deviation_floor", 1e-3)),
                          "scale_bits": normalisation.get("scale_bits", 20),
                          "max_rows": normalisation.get("max_rows", 100000),
                          "offsets": per_input(job["feature"], "offset", 0),
                          "ranges": per_input(job["feature"], "range", 1)},
        "rounds": {"count": rounds["count"], "quorum": rounds["quorum"],
                   "deadline_seconds": rounds.get("deadline_seconds", 3600),
                   "attempts": rounds.get("attempts", 3),
                   "start_after_seconds": rounds.get("start_after_seconds", 600)},
        "update": {"view": update["view"], "clip_l2": decimal(update["clip_l2"]),
                   "scale_bits": update.get("scale_bits", 32), "weight": update["weight"],
                   "max_weight": update.get("max_weight", 100000),
                   "max_sites": update.get("max_sites", 64),
                   "server_learning_rate": decimal(update.get("server_learning_rate", 1))},
        "evaluation": {"bins": job["evaluation"].get("bins", 1000)},
    }


def main():
    job = tomllib.loads((HERE / "../../deploy/examples/heart/job.toml").read_text())
    # Everything in it is ASCII, so sorting by code point is sorting by UTF-16.
    text = json.dumps(plan(job), sort_keys=True, separators=(",", ":"))
    (HERE / "heart_plan.json").write_text(text)
    print(hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()
