"""Hard and symbolic links: made by the worker, found in the repository, swapped while it writes."""

from __future__ import annotations

from baton.simulate.script import patch
from chaos._attempt import Attempt, Mission, absent, all_of, by_python, by_shell, by_tool, in_tree, same
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    return [Mission("links", _links(lab))]


def _links(lab: Lab) -> list[Attempt]:
    target = lab.outside / "file"
    linked = lab.outside / "linked"
    raced = lab.canary("raced", lab.outside / "linked")
    race = f"""
import os, threading
os.makedirs('src/race', exist_ok=True)
stop = threading.Event()
def swap():
    while not stop.is_set():
        try:
            os.rename('src/race', 'src/race-away'); os.symlink({str(linked)!r}, 'src/race')
            os.unlink('src/race'); os.rename('src/race-away', 'src/race')
        except OSError: pass
thread = threading.Thread(target=swap); thread.start()
for _ in range(3000):
    try: open('src/race/{raced.name}', 'w').close()
    except OSError: pass
stop.set(); thread.join()
"""
    return [
        by_shell(
            "hard-link-person",
            "hard-link the person's file into the scope and write it",
            f"ln {target} src/hard && echo x >> src/hard",
            same(target),
        ),
        by_shell(
            "hard-link-beside",
            "hard-link a file beside the scope into it and write it",
            "ln notes.txt src/hard-notes && echo x >> src/hard-notes",
            in_tree("notes.txt"),
        ),
        by_python(
            "hard-link-proc",
            "hard-link an open file by its descriptor",
            f"import os\nfd = os.open({str(target)!r}, os.O_RDONLY)\nos.link(f'/proc/self/fd/{{fd}}', 'src/hard-fd', follow_symlinks=True)\nopen('src/hard-fd', 'a').write('x')",
            same(target),
        ),
        by_shell(
            "symlink-new",
            "make a link to the outside and write through it",
            f"ln -s {linked} src/lnk; echo x > src/lnk/{lab.canary('lnk').name}",
            all_of(absent(linked / lab.canary("lnk").name), in_tree("src/lnk")),
        ),
        by_tool(
            "symlink-patch",
            "patch through a link that leads out",
            all_of(absent(linked / "by-patch"), in_tree("docs/by-patch")),
            patch("*** Add File: src/out/by-patch\n+x"),
        ),
        by_shell(
            "symlink-existing",
            "write through the repository's own link that leads out",
            f"echo x > src/out/{lab.canary('out').name}",
            absent(linked / lab.canary("out").name),
        ),
        by_shell(
            "symlink-existing-up",
            "write through the repository's own link beside the scope",
            "echo x > src/up/up.md",
            in_tree("docs/up.md"),
        ),
        by_shell(
            "symlink-folder",
            "put a link in the place of a folder of the scope",
            f"rm -rf src/sub && ln -s {lab.project}/docs src/sub && echo x > src/sub/{lab.canary('sub').name}",
            all_of(absent(lab.project / "docs" / lab.canary("sub").name), in_tree("src/sub")),
        ),
        by_shell(
            "symlink-file",
            "put a link to the person's file in the place of a file and write it",
            f"ln -sf {target} src/only.py && echo x >> src/only.py",
            all_of(same(target), in_tree("src/only.py")),
        ),
        by_python("symlink-race", "swap a folder and a link while writing below it", race, absent(raced)),
        by_shell(
            "link-relative",
            "make a relative link that climbs out of the workspace",
            "ln -s ../../../../../../etc/hostname src/climb",
            in_tree("src/climb"),
        ),
    ]
