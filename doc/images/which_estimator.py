"""Tree of questions that lead to an estimator."""

import matplotlib.pyplot as plt

QUESTION, ANSWER = "#fdf0d0", "#dbe9f6"
BOXES = {  # name: (x, y, text, colour)
    "table": (4.4, 3.6, "20 to 100,000 independent rows\nof numbers (strings encoded)?", QUESTION),
    "scope": (8.5, 3.6, "see Scope:\nother tools", ANSWER),
    "target": (4.4, 2.5, "Which kind of target?", QUESTION),
    "classes": (0.9, 1.4, "EvidenceMLPClassifier()", ANSWER),
    "numbers": (4.4, 1.4, "EvidenceMLPRegressor()", ANSWER),
    "counts": (8.5, 1.4, 'EvidenceMLPRegressor(\n    noise="poisson")', ANSWER),
    "final": (4.4, 0.3, "Does much depend on it,\nwith a few hundred rows?", QUESTION),
    "sample": (8.7, 0.3, "sample as a check:\nHMCMLP...from_evidence(model)", ANSWER),
}
ARROWS = [  # (from, to, answer)
    ("table", "scope", "no"),
    ("table", "target", "yes"),
    ("target", "classes", "classes"),
    ("target", "numbers", "numbers"),
    ("target", "counts", "counts"),
    ("numbers", "final", ""),
    ("classes", "final", ""),
    ("counts", "final", ""),
    ("final", "sample", "yes"),
]

figure, axes = plt.subplots(figsize=(7.6, 3.9), layout="constrained")
axes.set(xlim=(-0.9, 10.4), ylim=(-0.2, 4.1))
axes.axis("off")
drawn = {}
for name, (x, y, text, colour) in BOXES.items():
    box = {"boxstyle": "round,pad=0.5", "facecolor": colour, "edgecolor": "0.35"}
    drawn[name] = axes.text(
        x, y, text, ha="center", va="center", fontsize=9.5, color="0.1", bbox=box
    )
figure.draw_without_rendering()  # the boxes now have their sizes
for start, end, answer in ARROWS:
    (x0, y0, *_), (x1, y1, *_) = BOXES[start], BOXES[end]
    axes.annotate(
        "",
        (x1, y1),
        (x0, y0),
        arrowprops={
            "arrowstyle": "->",
            "color": "0.35",
            "patchA": drawn[start].get_bbox_patch(),
            "patchB": drawn[end].get_bbox_patch(),
        },
    )
    middle = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    axes.text(*middle, answer, ha="center", va="center", fontsize=9.5, color="0.1", bbox=box)
