#!/usr/bin/env python3
"""Numbers for the MLP on the four-hospital heart data, in numpy float64: first weights, federated
weights after rounds 1 and 40, centralised weights after 400 steps, pooled test metrics.

usage: heart_mlp_golden.py DATA_DIR > heart_mlp_golden.json     (needs numpy)
"""
import csv
import json
import sys

import numpy as np

SITES = ["cleveland", "budapest", "zurich-basel", "long-beach"]
L2, RATE, ROUNDS, LOCAL, HIDDEN = 0.01, 0.5, 40, 10, 8


def load(folder, site):
    x, y = [], []
    for row in csv.DictReader(open(f"{folder}/{site}.csv")):
        value = lambda k: float(row[k]) if row[k] != "" else np.nan
        positive = lambda k: np.nan if value(k) == 0 else value(k)
        x.append([value("age"), positive("trestbps"), positive("chol"), value("thalach"), value("oldpeak"),
                  value("sex"), value("fbs"), value("exang"), *[float(value("cp") == k) for k in (1, 2, 3)],
                  *[float(value("restecg") == k) for k in (1, 2)]])
        y.append(float(value("num") > 0))
    return np.array(x), np.array(y)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def steps(weights, x, y, count):
    w0, b0, w1, b1 = [w.copy() for w in weights]
    for _ in range(count):
        a = np.tanh(x @ w0 + b0)
        e = (sigmoid(a @ w1 + b1) - y[:, None]) / len(y)
        d = (e @ w1.T) * (1 - a * a)
        w0, b0, w1, b1 = (w0 - RATE * (x.T @ d + L2 * w0), b0 - RATE * d.sum(0),
                          w1 - RATE * (a.T @ e + L2 * w1), b1 - RATE * e.sum(0))
    return [w0, b0, w1, b1]


def main():
    train, test = [], []
    for site in SITES:
        x, y = load(sys.argv[1], site)
        held_out = np.arange(len(y)) % 3 == 2
        train.append((x[~held_out], y[~held_out]))
        test.append((x[held_out], y[held_out]))
    everything = np.vstack([x for x, _ in train])
    mean, deviation = np.nanmean(everything, 0), np.nanstd(everything, 0)
    scale = lambda x: np.where(np.isnan(x), 0, (x - mean) / deviation)
    train = [(scale(x), y) for x, y in train]
    test_x, test_y = np.vstack([scale(x) for x, _ in test]), np.concatenate([y for _, y in test])
    flat = lambda weights: [float(v) for w in weights for v in w.ravel()]

    g = np.random.default_rng(0)
    start = [g.normal(0, 1 / np.sqrt(13), (13, HIDDEN)).astype(np.float32).astype(float), np.zeros(HIDDEN),
             g.normal(0, 1 / np.sqrt(HIDDEN), (HIDDEN, 1)).astype(np.float32).astype(float), np.zeros(1)]
    out = {"how": "numpy float64, tests/golden/heart_mlp_golden.py; tanh MLP 13-8-1, L2 0.01, rate 0.5, "
                  "40 rounds of 10 full-batch steps, FedAvg by training rows; flat: layer0.weight [13, 8], "
                  "layer0.bias [8], layer1.weight [8, 1], layer1.bias [1]", "start": flat(start)}
    model = start
    share = np.array([len(y) for _, y in train], float)
    share /= share.sum()
    for r in range(ROUNDS):
        trained = [steps(model, x, y, LOCAL) for x, y in train]
        model = [sum(p * t[k] for p, t in zip(share, trained)) for k in range(4)]
        if r == 0:
            out["fedavg_round_1"] = flat(model)
    out["fedavg"] = flat(model)
    out["central"] = flat(steps(start, np.vstack([x for x, _ in train]), np.concatenate([y for _, y in train]),
                                ROUNDS * LOCAL))
    p = sigmoid(np.tanh(test_x @ model[0] + model[1]) @ model[2] + model[3])[:, 0]
    out["fedavg_correct"] = int(((p > 0.5) == test_y).sum())
    out["fedavg_log_loss"] = float(-(test_y * np.log(p) + (1 - test_y) * np.log(1 - p)).mean())
    json.dump(out, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
