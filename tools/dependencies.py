"""Which tests and notebooks use what changed: found from the code, where each name is followed to the definition for which it stands.

A node is a module with the name of a function, class, constant, import or method (`Class.method`) in it. Names are followed through imports
wherever they stand, through lazy fronts (`__init__.pyi`) and through `idm_nb.datasets`. Whatever uses a class uses all its methods, because
another package may call them; code that names `.method` is nearer, and so is code that passes an argument of what changed by name. What only a file names is not seen: a test that loads a stored model has
to name its class.
"""

import ast
import heapq
import json
import re
from collections import defaultdict

FAR = 3  # steps to what is used, but not by its name
SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOT_RUN = re.compile(r"^#\|\s*(slow|notest|eval:\s*false)\b", re.M)


def bound(node):
    "Names that code binds: arguments and assignments, without those inside functions and comprehensions."
    found, todo = set(), list(ast.iter_child_nodes(node))
    while todo:
        part = todo.pop()
        found |= {part.arg} if isinstance(part, ast.arg) else set()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found.add(part.id)
        if not isinstance(part, SCOPES):
            todo += ast.iter_child_nodes(part)
    return found


def names_of(node):
    "Names that code takes from its module (`idm_nb.load`), and with a dot in front attributes, strings (`.run`) and named arguments (`.stop=`)."
    after, inner = [], node
    while isinstance(inner, ast.Attribute):
        after.insert(0, inner.attr)
        inner = inner.value
    found = {f".{name}" for name in after}
    if isinstance(inner, ast.Name):
        return found | {".".join([inner.id, *after])}
    found.update(*map(names_of, ast.iter_child_nodes(inner)))
    if isinstance(inner, ast.Call):
        found |= {f".{given.arg}=" for given in inner.keywords}
    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
        found |= {f".{inner.value}", *re.findall(r"\bidm_nb[.\w]*\b", inner.value)}
    local = bound(inner) if isinstance(inner, SCOPES) else ()
    return {name for name in found if name.partition(".")[0] not in local}


def definitions(tree):
    "From each name that a module defines, and each method, to its code without docstrings; other statements are called ''."
    found = defaultdict(list)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            body[0] = ast.Pass() if isinstance(body[0].value, ast.Constant) else body[0]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            is_method = lambda part: isinstance(part, ast.FunctionDef) and part.name[:2] != "__"
            for method in filter(is_method, node.body):
                found[f"{node.name}.{method.name}"].append(method)
            node.body = [part for part in node.body if not is_method(part)]
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {node.name} if hasattr(node, "name") else bound(ast.Module([node]))
            for name in names or {""}:
                found[name].append(node)
    return found


def imports(tree, package):
    "From each name that an import binds, wherever it stands, to the dotted name for which it stands."
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            base = [*base, *filter(None, [node.module])]
            found |= {a.asname or a.name: ".".join([*base, a.name]) for a in node.names}
        elif isinstance(node, ast.Import):
            names = [a.name if a.asname else a.name.partition(".")[0] for a in node.names]
            found |= {a.asname or name: name for a, name in zip(node.names, names)}
    return found


def read(path, text):
    "The module of a file, its definitions and imports; a notebook is called by its path, and is one definition, ''."
    *package, name = re.sub(r"\.pyi?$", "", path).split("/")
    if not path.endswith(".ipynb"):
        tree = ast.parse(text)
        module = package if name == "__init__" else [*package, name]
        module = ".".join(module if package[0] == "idm_nb" else [name])
        found = imports(tree, package)  # before definitions take the methods out of the tree
        return module, definitions(tree), found
    cells = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    module = re.search(r"^#\|\s*default_exp (\S+)", "\n".join(cells), re.M)
    body, found = [], {}
    for cell in cells:
        tree = ast.parse(re.sub(r"^[%!].*$", "pass", cell, flags=re.M))
        found |= imports(tree, package)
        if re.search(r"^#\|\s*exporti?\b", cell, re.M):  # the same code as that of the module
            found |= {name: f"idm_nb.{module[1]}.{name}" for name in definitions(tree)}
        elif not NOT_RUN.search(cell):
            body.append(tree)
    return path, {"": body}, found


def dumps(code, names):
    "A text for each definition and import, by which two versions can be compared."
    return {name: "".join(map(ast.dump, nodes)) for name, nodes in code.items()} | names


class Uses:
    "What uses what in `files`, a dict from path to text; `before` has the changed files as they were."

    def __init__(self, files, before):
        self.defined, self.imports, self.changed = defaultdict(dict), defaultdict(dict), set()
        for path, text in before.items():
            module, code, names = read(path, text)
            old, new = dumps(code, names), dumps(*read(path, files.get(path, ""))[1:])
            self.changed |= {(module, n) for n in {*old, *new} if old.get(n) != new.get(n)}
            self.defined[module] |= dict.fromkeys(code, [])  # what is gone may still be named
            self.imports[module] |= names
        for path, text in files.items():
            module, code, names = read(path, text)
            self.defined[module] |= code
            self.imports[module] |= names
        self.names, self.users = defaultdict(set), defaultdict(dict)
        for module, found in self.defined.items():
            for name, code in found.items():
                self.add(module, name, code)

    def add(self, module, name, code):
        "Note what a definition uses."
        node, kind = (module, name), (module, name.partition(".")[0])
        names = set().union(*map(names_of, code))
        if module.startswith("test_"):  # arguments are fixtures
            names |= set().union(*map(bound, code))
        self.users[module, ""][node] = FAR
        if kind != node:
            self.users[kind][node] = self.users[node][kind] = FAR
        for text in names:
            self.names[text].add(node)
            for used in self.meaning(module, text):
                steps = FAR if text == "idm_nb" else 1
                self.users[used][node] = min(steps, self.users[used].get(node, FAR))

    def meaning(self, module, name):
        "Nodes for which a dotted name in a module stands, and the imports on the way."
        first, dot, rest = name.partition(".")
        if first in self.defined[module]:
            return {(module, first)}
        if first in self.imports[module]:
            found = self.of_path(self.imports[module][first] + dot + rest)
            return found | {(module, first), (module, "__getattr__")}
        return self.of_path(name) if first == "idm_nb" and module[:6] != "idm_nb" else set()

    def of_path(self, path):
        "The same of a dotted name that begins with a module; the module itself stands for all that is in it."
        parts = path.split(".")
        known = [k for k in range(1, len(parts) + 1) if ".".join(parts[:k]) in self.imports]
        if not known:
            return set()
        module, rest = ".".join(parts[: known[-1]]), ".".join(parts[known[-1] :])
        names = [rest] if rest else {*self.defined[module], *self.imports[module]}
        return set().union(*(self.meaning(module, n) for n in names if rest or "." not in n))

    def distances(self, changed):
        "From each node that uses one of the changed nodes, directly or through others, to its distance."
        reached = self.steps(changed, lambda node: self.users[node])
        method = lambda node: "." in node[1] and node[1][node[1].index(".") :]
        calls = lambda node: self.names[method(node)] & reached.keys()
        found = self.steps(changed, lambda node: self.users[node] | dict.fromkeys(calls(node), 1))
        code = [part for module, name in changed for part in self.defined[module].get(name, [])]
        arguments = {
            part.arg for node in code for part in ast.walk(node) if isinstance(part, ast.arg)
        }
        near = set().union(*(self.names[f".{name}="] for name in arguments)) & found.keys()
        return found | {node: min(found[node], 1) for node in near}

    def steps(self, changed, users):
        "Shortest ways from the changed nodes to others."
        found, heap = {}, [(0, node) for node in changed]
        while heap:
            distance, node = heapq.heappop(heap)
            if node not in found:
                found[node] = distance
                for user, steps in users(node).items():
                    heapq.heappush(heap, (distance + steps, user))
        return found
