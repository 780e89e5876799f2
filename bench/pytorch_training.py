#!/usr/bin/env python3
"""PyTorch's examples a second on the models of `domicile bench training`, and scikit-learn's on the first: one line
of JSON.

usage: pytorch_training.py --model {logistic,mlp,cnn,minilm,scikit} --threads N [--seconds S]

Ends with 77 and a reason where the package is not installed. Batches, optimizers and sizes are those of
bench/training_bench.cc; a step is forward, backward and update. The figure is the median step's, after three.
"""
import argparse
import json
import os
import statistics
import sys
import time

BATCHES = {"logistic": 64, "mlp": 64, "cnn": 64, "minilm": 16}


def rate(step, examples, seconds):
    """Examples a second of the median step."""
    for _ in range(3):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return examples / statistics.median(times)


def torch_step(name):
    import torch
    from torch import nn

    torch.manual_seed(0)
    batch = BATCHES[name]
    if name == "minilm":
        from transformers import BertConfig, BertForSequenceClassification

        model = BertForSequenceClassification(
            BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                       intermediate_size=1536, num_labels=2))
        model.train()
        tokens = torch.randint(0, 30522, (batch, 128))
        mask = torch.ones_like(tokens)
        labels = torch.randint(0, 2, (batch,))
        optimizer = torch.optim.AdamW(model.parameters(), 2e-5, weight_decay=0.01)

        def loss_of():
            return model(input_ids=tokens, attention_mask=mask, labels=labels).loss
    else:
        model = {
            "logistic": lambda: nn.Linear(30, 1),
            "mlp": lambda: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                                         nn.Linear(128, 10)),
            "cnn": lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
                                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(),
                                         nn.Linear(128, 10)),
        }[name]()
        inputs = torch.randn(*{"logistic": (batch, 30), "mlp": (batch, 784), "cnn": (batch, 1, 28, 28)}[name])
        binary = name == "logistic"
        labels = torch.rand(batch, 1).round() if binary else torch.randint(0, 10, (batch,))
        criterion = nn.BCEWithLogitsLoss() if binary else nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)

        def loss_of():
            return criterion(model(inputs), labels)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        optimizer.step()

    return step, batch


def scikit_step():
    import numpy as np
    from sklearn.linear_model import SGDClassifier

    rows = 100_000
    random = np.random.default_rng(0)
    inputs = random.standard_normal((rows, 30)).astype(np.float32)
    labels = (inputs @ random.standard_normal(30) + random.standard_normal(rows) > 0).astype(int)
    model = SGDClassifier(loss="log_loss")
    return lambda: model.partial_fit(inputs, labels, classes=[0, 1]), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, choices=[*BATCHES, "scikit"])
    parser.add_argument("--threads", required=True, type=int)
    parser.add_argument("--seconds", default=3.0, type=float)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    try:
        if options.model == "scikit":
            step, examples = scikit_step()
        else:
            import torch

            torch.set_num_threads(options.threads)
            step, examples = torch_step(options.model)
    except ImportError as missing:
        print(f"skipped: {missing.name} is not installed")
        return 77
    print(json.dumps({"model": options.model, "threads": options.threads,
                      "examples_per_second": round(rate(step, examples, options.seconds), 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
