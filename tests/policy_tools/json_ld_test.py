#!/usr/bin/env python3
"""Checks the DPV and ODRL goldens with rdflib: nothing is lost on the way to RDF, and the ODRL set keeps the
rules of the ODRL 2.2 information model.

usage: json_ld_test.py REPOSITORY
"""
import json
import pathlib
import socket
import sys

try:
    import rdflib
    import rdflib.collection
except ImportError as missing:
    print(f"skipped: python has no {missing.name}")
    sys.exit(77)

ODRL = rdflib.Namespace("http://www.w3.org/ns/odrl/2/")
DPV = rdflib.Namespace("https://w3id.org/dpv#")
RELATIONS = {ODRL[name] for name in ("eq", "gt", "gteq", "lt", "lteq", "isAnyOf", "isPartOf")}
OPERANDS = {ODRL[name] for name in ("spatial", "purpose", "recipient", "dateTime", "count")}
failures = []


def no_network(*_):
    raise OSError("an export must be read without the network")


def count_values(node, context) -> int:
    """Triples that the JSON must give: one for each value of each key."""
    if isinstance(node, list):
        return sum(count_values(item, context) for item in node)
    if not isinstance(node, dict) or "@value" in node:
        return 0
    total = 0
    for key, value in node.items():
        if key in ("@context", "@id", "uid"):
            continue
        if key == "@graph":
            total += count_values(value, context)
            continue
        items = value if isinstance(value, list) else [value]
        is_list = isinstance(value, dict) and "@list" in value
        container = context.get(key, {})
        if isinstance(container, dict) and container.get("@container") == "@list":
            is_list, items = True, items
            inner = items
        elif is_list:
            inner = value["@list"]
        if is_list:
            total += 1 + 2 * len(inner)  # the list, and first and rest of each cell
            total += count_values(inner, context)
            continue
        total += len(items) + count_values(items, context)
    return total


def check_constraint(graph, node, where):
    if (node, ODRL["or"], None) in graph:
        for part in rdflib.collection.Collection(graph, graph.value(node, ODRL["or"])):
            check_constraint(graph, part, where)
        return
    left, relation = graph.value(node, ODRL.leftOperand), graph.value(node, ODRL.operator)
    if relation not in RELATIONS:
        failures.append(f"{where}: operator {relation}")
    if left not in OPERANDS and not str(left).startswith("urn:domicile:vocabulary:"):
        failures.append(f"{where}: leftOperand {left}")
    if (node, ODRL.rightOperand, None) not in graph:
        failures.append(f"{where}: no rightOperand at {left}")


def check_odrl(graph, where):
    sets = list(graph.subjects(rdflib.RDF.type, ODRL.Set))
    if len(sets) != 1 or (sets[0], ODRL.profile, None) not in graph:
        failures.append(f"{where}: one Set with a profile is wanted")
    rules = [rule for kind in (ODRL.permission, ODRL.prohibition) for rule in graph.objects(sets[0], kind)]
    if not rules:
        failures.append(f"{where}: no rule")
    for rule in rules:
        for wanted in (ODRL.action, ODRL.target):
            if (rule, wanted, None) not in graph:
                failures.append(f"{where}: a rule without {wanted}")
        for constraint in graph.objects(rule, ODRL.constraint):
            check_constraint(graph, constraint, where)
        for duty in graph.objects(rule, ODRL.duty):
            if (duty, ODRL.action, None) not in graph:
                failures.append(f"{where}: a duty without action")
            for constraint in graph.objects(duty, ODRL.constraint):
                check_constraint(graph, constraint, where)


def check_dpv(graph, where):
    processes = list(graph.subjects(rdflib.RDF.type, DPV.PersonalDataProcess))
    if not processes:
        failures.append(f"{where}: no process")
    for process in processes:
        for wanted in ("hasPurpose", "hasPersonalData", "hasLegalBasis", "hasApplicableLaw", "hasLocation"):
            if (process, DPV[wanted], None) not in graph:
                failures.append(f"{where}: a process without dpv:{wanted}")


def main() -> int:
    root = pathlib.Path(sys.argv[1]) / "tests/golden/policy_export"
    socket.socket.connect = no_network
    files = sorted(root.glob("*.jsonld"))
    for path in files:
        document = json.loads(path.read_text())
        graph = rdflib.Graph()
        graph.parse(data=path.read_text(), format="json-ld")
        wanted = count_values(document, document["@context"])
        # Equal blank nodes cannot merge, so fewer triples means that a key was dropped.
        if len(graph) != wanted:
            failures.append(f"{path.name}: {len(graph)} triples of {wanted}")
        for triple in graph:
            for term in triple:
                if isinstance(term, rdflib.URIRef) and not str(term).startswith(("http", "urn:")):
                    failures.append(f"{path.name}: relative or unknown prefix {term}")
        (check_odrl if ".odrl." in path.name else check_dpv)(graph, path.name)
    for failure in failures:
        print(failure)
    print(f"{len(files)} files, {len(failures)} failures")
    return 1 if failures or len(files) < 4 else 0


if __name__ == "__main__":
    sys.exit(main())
