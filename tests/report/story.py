"""Two delegated batches: one as it is every day, one in which every text is hostile."""

from __future__ import annotations

from collections.abc import Sequence

from baton.simulate.script import Step, shell
from baton.simulate.workers import false_pass, honest, report, write
from e2e.sim import Sim

SCRIPT = "<script>document.title='taken'</script>"
IMAGE = "<img src=x onerror=document.title='taken'>"
REVERSED = "\u202egnihton\u202c"
CONTROL = "\x1b[31mred\x1b[0m\x07\x00"
TEMPLATE = "{{ 7 * 7 }}{% raw %}"
HOSTILE = (SCRIPT, IMAGE, REVERSED, TEMPLATE)

NOISE_BYTES = 10_000_000

_PRICES = "def total(basket):\n    return sum(price for price, count in basket)\n"
_STOCK = "def left(stock, sold):\n    return stock\n"

_CHECK_PRICES = (
    "from shop.prices import total\nassert total([(3, 4), (5, 1)]) == 17, total([(3, 4), (5, 1)])\n"
)
_CHECK_STOCK = "from shop.stock import left\nassert left(9, 4) == 5, left(9, 4)\n"
_CHECK_BILL = "from shop.bill import bill\nassert bill([(3, 4)]) == 'to pay: 12', bill([(3, 4)])\n"


def story_run(sim: Sim) -> str:
    """Five tasks; the run's id."""
    place = sim.workspace(
        "shop",
        {
            ".gitignore": "__pycache__/\n",
            "shop/__init__.py": "",
            "shop/prices.py": _PRICES,
            "shop/stock.py": _STOCK,
            "check_prices.py": _CHECK_PRICES,
            "check_stock.py": _CHECK_STOCK,
            "check_bill.py": _CHECK_BILL,
            "docs/guide.md": "# The shop\n\nTo be written.\n",
        },
    )
    prices = {"shop/prices.py": _PRICES.replace("sum(price for", "sum(price * count for")}
    stock = {"shop/stock.py": _STOCK.replace("return stock\n", "return stock + sold\n")}
    bill = {
        "shop/bill.py": "from shop.prices import total\n\n\ndef bill(basket):\n"
        "    return f'to pay: {total(basket)}'\n"
    }
    guide = {"docs/guide.md": "# The shop\n\n`bill` says what is to be paid.\n"}
    tasks = [
        _task(
            sim,
            "prices",
            "The count of each item counts",
            honest(prices, ["python3 check_prices.py"]),
            "shop/prices.py",
        ),
        _task(
            sim,
            "stock",
            "What is sold is gone",
            false_pass(stock, ["python3 check_stock.py"]),
            "shop/stock.py",
        ),
        _task(
            sim,
            "bill",
            "A bill from a basket",
            honest(bill, ["python3 check_bill.py"]),
            "shop/bill.py",
            "prices",
        ),
        _task(sim, "guide", "The guide tells of the bill", honest(guide), "docs/", "bill"),
        _task(
            sim, "index", "An index of the guide", honest({"docs/index.md": "- guide\n"}), "docs/", "guide"
        ),
    ]
    tasks[3]["verificationCommands"] = ["grep -q bill docs/guide.md"]
    tasks[4]["verificationCommands"] = ["test -s docs/index.md"]
    answer = sim.delegate(
        {"workspace": str(place.path), "tasks": tasks, "waitSeconds": 110, "maxParallel": 3}
    )
    return str(answer["runId"])


def hostile_run(sim: Sim) -> str:
    """One task whose texts try everything; the run's id."""
    name = f"a{IMAGE.replace('/', '')}.txt"
    noisy = (
        "import sys\n"
        f"sys.stdout.write({SCRIPT!r} + {CONTROL!r} + {REVERSED!r} + '\\n')\n"
        f"sys.stdout.write('it goes wrong here <b>and</b> here\\n' * {NOISE_BYTES // 34})\n"
        "sys.stdout.write('the very end\\n')\nsys.exit(1)\n"
    )
    place = sim.workspace("hostile", {"noisy.py": noisy, "src/a.txt": "a\n"})
    text = " ".join(HOSTILE)
    claim = report(
        summary=f"All done. {text} {CONTROL.replace(chr(0), '')}",
        files=[f"src/{name}", "src/never.txt"],
        checks=[SCRIPT],
        notes=[text],
    )
    objective = sim.script(
        "hostile", write(f"src/{name}", f"{text}\r\n{CONTROL[:-1]}\n"), shell("true"), claim, claim
    )
    answer = sim.delegate(
        {
            "workspace": str(place.path),
            "objective": f"{objective} {text}",
            "label": f"{SCRIPT} {REVERSED}",
            "allowedFiles": ["src/"],
            "verificationCommands": ["python3 noisy.py"],
            "waitSeconds": 110,
        }
    )
    return str(answer["runId"])


def _task(
    sim: Sim, name: str, label: str, steps: Sequence[Step], allowed: str, *after: str
) -> dict[str, object]:
    check = f"python3 check_{name}.py"
    return {
        "id": name,
        "label": label,
        "objective": sim.script(f"shop {name}", *steps) + f" {label}, and its check passes.",
        "allowedFiles": [allowed],
        "verificationCommands": [check],
        "dependsOn": [*after],
    }
