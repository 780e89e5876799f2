#!/usr/bin/env python3
"""Checks the Cedar exports with cedarpy: they are valid under the exported schema, and they decide as
`domicile policy explain` does, request by request.

usage: cedar_test.py REPOSITORY DOMICILE
"""
import copy
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import cedarpy
    import tomllib
except ImportError as missing:
    print(f"skipped: python has no {missing.name}")
    sys.exit(77)

ROLES = ("dpo", "operator", "ciso", "ethics_board", "data_owner")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 366 * 86400}
NANO = 10**9


def run(domicile, *arguments):
    done = subprocess.run([domicile, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout


def seconds(text):
    return int(text[:-1]) * SECONDS[text[-1]]


def nano(value):
    return round(value * NANO)


def merge(base, changes):
    """As a row of a `.case` file changes its base: tables key by key, lists as a whole."""
    out = copy.deepcopy(base)
    for key, value in changes.items():
        is_table = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merge(out[key], value) if is_table else value
    return out


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return repr(value)


def moment(value):
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return int(value.replace(tzinfo=value.tzinfo or datetime.timezone.utc).timestamp())


def context_of(request, legal_ground):
    """What a caller of an authorisation service would hand over: docs/formats/policy-export.md, Cedar."""
    plan = request["plan"]
    numbers = request["numbers"] / request["records_behind"]
    has_delta = any(kind.startswith("delta.") for kind in request["kinds"])
    approvals = dict.fromkeys(ROLES, 0)
    for approval in request["approvals"]:
        approvals[approval["role"]] += approval["count"]
    common = {
        "now": moment(request["now"]),
        "legal_ground": legal_ground,
        "update_kinds": request["kinds"],
        "purposes": request["purpose"],
        "evidence": request["to"].get("evidence", "declared"),
    }
    if request["point"] != "egress":
        return common | {"min_contributors": request["contributors"]}
    return common | {
        "approvals": approvals,
        "transit": [],
        "aggregator_view": request["view"],
        "models": "",
        "trainers": "",
        "outputs": request["outputs"],
        "min_cohort": request["records_behind"],
        "min_batch": plan["batch"],
        "min_local_steps": plan["local_steps"],
        "clip_l2_nano": nano(plan["clip_l2"]),
        "dp_mode": plan.get("dp_mode", "none"),
        "dp_unit": plan.get("dp_unit", "record"),
        "sampling": plan.get("sampling", "none_assumed"),
        "require_secagg": request["view"] != "plaintext_individual",
        "secagg_threshold_nano": nano(plan.get("secagg_threshold", 0)),
        "rounds": plan["rounds"],
        "runs_per_day": request["runs_today"],
        "update_bytes": request["bytes"],
        "metrics": request["metrics"],
        "released_numbers_per_record_nano": nano(request.get("released_per_record", 0) + numbers),
        "params_per_record_nano": nano(plan["parameters"] / request["records_behind"]) if has_delta else 0,
        "epsilon_total_nano": nano(plan.get("epsilon", 0) + request.get("epsilon_spent", 0)),
        "epsilon_per_run_nano": nano(plan.get("epsilon", 0)),
        "delta_nano": nano(plan.get("delta", 0)),
        "export_subjects_per_year": 0,
        "sandbox_network": request["sandbox_network"],
        "sandbox_profile": request["sandbox_profile"],
        "weights": "equal",  # the gate's, which is obliged to the policy's whatever the plan says
        "audit_min": seconds(request["retention"]["audit"]),
        "update_max": seconds(request["retention"]["update"]),
        "model_review": seconds(request["retention"]["model_review"]),
        "on_withdrawal": "retrain_required",
        "witnesses_min": request["witnesses"],
        "max_unwitnessed_age": 0,
        "max_skew": abs(request["clock_skew_ms"]) // 1000,
    }


def cedar_decides(exported, request, legal_ground):
    party = request["to"]
    places = [{"type": "Domicile::Place", "id": place} for place in party["control"]]
    principal = {
        "uid": {"type": "Domicile::Party", "id": "receiver"},
        "attrs": {
            "role": party["role"],
            "name": party["id"],
            "place": {"__entity": {"type": "Domicile::Place", "id": party["jurisdiction"]}},
            "control": [place[:2] for place in party["control"]],
        },
        "parents": places,
    }
    known = {entity["uid"]["id"] for entity in exported["entities"]}
    more = [
        {"uid": {"type": "Domicile::Place", "id": place}, "attrs": {},
         "parents": [{"type": "Domicile::Place", "id": place[:2]}]}
        for place in {party["jurisdiction"], *party["control"]} - known
    ]
    dataset = {"uid": {"type": "Domicile::Dataset", "id": request["dataset"]}, "attrs": {}, "parents": []}
    action = "send" if request["point"] == "egress" else "release"
    answer = cedarpy.is_authorized(
        {
            "principal": 'Domicile::Party::"receiver"',
            "action": f'Domicile::Action::"{action}"',
            "resource": f'Domicile::Dataset::"{request["dataset"]}"',
            "context": context_of(request, legal_ground),
        },
        exported["policies"],
        exported["entities"] + [principal, dataset] + more,
        exported["schema"],
    )
    if answer.diagnostics.errors:
        raise SystemExit(f"cedar: {answer.diagnostics.errors}")
    return answer.allowed


# Findings that Cedar leaves to the caller (`legal_ground`).
CALLERS = {"NO-TRANSFER-MECHANISM", "EDPB-UC6", "EDPB-UC7", "DOCUMENT-MISSING", "DOCUMENT-EXPIRED", "FACT-MISSING",
           "FACT-EXPIRED", "NEGATIVE-LIST", "DEROGATION"}
# Rows about what an export says it leaves out: recipients are asked one by one, as receivers of a release.
LEFT_OUT = ("recipients",)


def release_rows(request):
    """A model on its way to parties at many places."""
    via = request["to"]
    for place, control in (("FR", ["FR"]), ("NO", ["NO"]), ("US-OH", ["US"]), ("CH", ["CH"]), ("CN", ["CN"]),
                           ("GB", ["GB", "RU"]), ("IE", ["IE"]), ("BR", ["BR"])):
        for role, name in (("site", "somewhere"), ("operator", "alice"), ("operator", "permit-user")):
            for contributors in ((4, 5) if place == "FR" else (5,)):
                row = merge(request, {"kinds": ["model.final"], "contributors": contributors})
                row["point"] = "model_to_site" if role == "site" else "model_download"
                row["via"] = via
                row["to"] = {"role": role, "id": name, "organisation": "somebody", "jurisdiction": place,
                             "control": control, "evidence": "certificate"}
                row["recipients"] = []
                yield f"release to {role} {name} at {place} of {contributors}", row


def compare(root, domicile, case_file):
    case = tomllib.loads(case_file.read_text())
    folder = case_file.parent
    sources = {key: (folder / path).resolve() for key, path in case["sources"].items()}
    options = ["--federation", sources["federation"], "--aggregator", sources["aggregator"], "--facts",
               sources["facts"]]
    exported = {
        "policies": run(domicile, "policy", "export", sources["site"], "--format", "cedar", *options),
        "schema": run(domicile, "policy", "export", sources["site"], "--format", "cedar-schema"),
        "entities": json.loads(
            run(domicile, "policy", "export", sources["site"], "--format", "cedar-entities", *options)),
    }
    validity = cedarpy.validate_policies(exported["policies"], exported["schema"])
    if not validity.validation_passed:
        return 0, 0, [f"{case_file.name}: {error}" for error in validity.errors]
    # Rows with `says` ask the same again, of each source by itself.
    rows = [(row["name"], merge(case["transfer"], row.get("transfer", {}))) for row in case["case"]
            if "says" not in row and not any(key in row.get("transfer", {}) for key in LEFT_OUT)]
    rows = [row for row in rows if row[1]["point"] == "egress"]
    rows += list(release_rows(case["transfer"]))
    allowed, failures = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        for name, request in rows:
            path = pathlib.Path(scratch) / "request.toml"
            lines = ["[sources]"]
            lines += [f'{key} = "{sources[key]}"' for key in ("federation", "aggregator", "facts")]
            lines += ["[transfer]"] + [f"{key} = {toml(value)}" for key, value in request.items()]
            path.write_text("\n".join(lines) + "\n")
            answer = json.loads(run(domicile, "policy", "explain", sources["site"], "--request", path, "--json"))
            reasons = {finding["code"] for finding in answer["findings"]}
            if "APPROVAL-EXPIRED" in reasons or any(a["count"] > 1 for a in request["approvals"]):
                continue  # ages and organisations of approvals are the caller's to count
            ours = answer["result"] == "allow"
            theirs = cedar_decides(exported, request, legal_ground=not reasons & CALLERS)
            allowed += ours
            if ours != theirs:
                failures.append(f"{case_file.name}: {name}: domicile {answer['result']} {sorted(reasons)}, "
                                f"cedar {'allows' if theirs else 'denies'}")
    return len(rows), allowed, failures


def main() -> int:
    root, domicile = pathlib.Path(sys.argv[1]), sys.argv[2]
    total, allowed, failures = 0, 0, []
    for case_file in sorted((root / "deploy/policies").glob("*/*.case")):
        count, allows, wrong = compare(root, domicile, case_file)
        total, allowed, failures = total + count, allowed + allows, failures + wrong
    for failure in failures:
        print(failure)
    print(f"{total} requests, {allowed} of them allowed, {len(failures)} decided differently")
    # Both answers must occur often, or the comparison says nothing.
    return 1 if failures or total < 250 or allowed < 30 or allowed > total - 100 else 0


if __name__ == "__main__":
    sys.exit(main())
