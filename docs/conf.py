"""Sphinx configuration. No network is needed: MathJax is shipped, and there is no intersphinx."""

import functools
import importlib
import pkgutil
import re
import sys
import warnings
from pathlib import Path

import skdp

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "skdp"
author = "the skdp developers"
copyright = "the skdp developers"
release = version = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
exclude_patterns = ["_build", "examples"]
default_role = "py:obj"
# Every reference has to lead somewhere, or to something that exists: see `_find_reference`.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(sklearn|numpy|scipy|pandas|json)\..*"),  # there is no intersphinx
    ("py:.*", r"benchmarks/.*"),
    # In docstrings inherited from scikit-learn and from collections.
    ("py:.*", r"feature_names_in_|input_features|\[\"x0\".*"),
    ("py:class", r"D\[k\].*|.*set-like.*|.*object providing a view.*"),
]

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "subsection_order": [
        "examples/first_steps",
        "examples/budgets",
        "examples/judge",
        "examples/data",
    ],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("skdp",),
    "reference_url": {"skdp": None},
    "backreferences_dir": "generated/backreferences",
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": False,
}

html_theme = "furo"
html_title = f"skdp {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["style.css"]


# What users need, by task; all else is for those who extend the package.
USERS = ("skdp", "skdp.data", "skdp.model_selection", "skdp.metrics", "skdp.audit")
TASKS = {
    "Estimators": lambda module, item: hasattr(item, "predict"),
    "Preparation": lambda module, item: hasattr(item, "transform"),
    "Splits, searches and scores": lambda module, item: module in USERS[2:4],
    "Pictures and tables": lambda module, item: item.__name__.endswith("Display"),
    "Warnings and errors": lambda module, item: item.__name__.endswith(("Warning", "Error")),
    "Audit": lambda module, item: module == "skdp.audit",
    "Budgets, statements, public facts and rows": lambda module, item: True,
}  # fmt: skip
OBJECT_PAGE = """:orphan:

{name}
{line}

.. currentmodule:: {module}

.. auto{kind}:: {name}
"""
MEMBERS = """   :members:
   :inherited-members: BaseEstimator, Exception, str
   :exclude-members: score, fit_transform, get_metadata_routing, set_output, set_fit_request,
      set_score_request, set_predict_request, set_predict_proba_request,
      set_decision_function_request, set_transform_request, set_partial_fit_request,
      set_inverse_transform_request, add_note, with_traceback
"""
EXAMPLES = """
.. minigallery:: {module}.{name}
   :add-heading: Examples that use it
"""


def _exported():
    """Yield each public class and function once: its module, its name and itself."""
    found = pkgutil.walk_packages(skdp.__path__, "skdp.")
    packages = {part.name for part in found if part.ispkg and "._" not in part.name}
    seen = set()
    for module in [*USERS, *sorted(packages - {*USERS})]:
        imported = importlib.import_module(module)
        names = [name for name in vars(imported) if not name.startswith("_")]
        for name in sorted(getattr(imported, "__all__", names)):
            item = getattr(imported, name)
            if callable(item) and item.__module__.startswith("skdp") and id(item) not in seen:
                seen.add(id(item))
                yield module, name, item


def _write(path, text):
    """Write a page if it changed; else it need not be built anew."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _table(module, names):
    """Lines of a table of objects, each with the first line of its docstring."""
    entries = [f"   {name}" for name in names]
    return [
        f".. currentmodule:: {module}",
        "",
        ".. autosummary::",
        "   :nosignatures:",
        "",
        *entries,
        "",
    ]


def _write_reference(folder):
    """Write a page for each object, and two tables of them to include: users, extenders.

    Object pages are not part of the navigation, which would make each page of the documentation
    take a third of a second.
    """
    users, extenders, pages = {task: {} for task in TASKS}, {}, set()
    for module, name, item in _exported():
        kind = "class" if isinstance(item, type) else "function"
        text = OBJECT_PAGE.format(name=name, line="=" * len(name), module=module, kind=kind)
        text += MEMBERS if kind == "class" else ""
        if module == "skdp" and name.startswith(("DP", "Privacy")):
            text += EXAMPLES.format(name=name, module=module)
        page = folder / f"{module}.{name}.rst"
        _write(page, text)
        pages.add(page)
        if module in USERS:
            task = next(task for task, belongs in TASKS.items() if belongs(module, item))
            users[task].setdefault(module, []).append(name)
        else:
            extenders.setdefault(module, []).append(name)
    for old in {*folder.glob("skdp.*.rst")} - pages:
        old.unlink()
    lines = []
    for task, modules in users.items():
        lines += [task, "-" * len(task), ""]
        for module, names in modules.items():
            lines += _table(module, names)
    _write(folder / "users.inc", "\n".join(lines))
    lines = []
    for module, names in extenders.items():
        summary = (importlib.import_module(module).__doc__ or module).splitlines()[0]
        lines += [module, "-" * len(module), "", summary.replace("skdp: ", ""), ""]
        lines += _table(module, names)
    _write(folder / "extenders.inc", "\n".join(lines))


_generated = Path(__file__).parent / "generated"
_generated.mkdir(exist_ok=True)
_purposes = [f"   * - {name}\n     - {what}" for name, what in skdp.solvers.available().items()]
_head = ".. list-table::\n   :widths: 30 70\n\n"
_write(_generated / "solvers.inc", _head + "\n".join(_purposes) + "\n")
_write_reference(_generated)
sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("pictures").main()


def _quote_shapes(app, what, name, obj, options, lines):
    """Quote shapes such as (n_features_in_,), whose last underscore would make them a link."""
    lines[:] = [re.sub(r"\((\w+_),\)", r"(``\1``,)", line) for line in lines]


@functools.cache
def _names_without_a_page():
    """Names of modules, of what they define, and of scikit-learn: they exist, and have no page."""
    known = set()
    for part in ("ensemble", "linear_model", "model_selection", "preprocessing"):
        known |= set(importlib.import_module(f"sklearn.{part}").__all__)
    found = pkgutil.walk_packages(skdp.__path__, "skdp.")
    for part in ["skdp", *(one.name for one in found)]:
        try:
            defined = vars(importlib.import_module(part))
        except ImportError:  # of an extra that is not installed
            continue
        known.add(part)
        for name, item in defined.items():
            known |= {name, f"{part}.{name}"}
            if isinstance(item, type):
                members = {*dir(item), *getattr(item, "__annotations__", ())}
                known |= members | {f"{name}.{member}" for member in members}
    return known


def _find_reference(app, env, node, content):
    """Link a name that is written without its package; leave what has no page as it is."""
    target, domain = node.get("reftarget", ""), env.domains["py"]
    if node.get("refdomain") != "py" or not target:
        return None
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    if found:
        name = min(found, key=lambda one: (one.count("."), one))
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    return content if target in _names_without_a_page() else None


def setup(app):
    app.connect("missing-reference", _find_reference)
    app.connect("autodoc-process-docstring", _quote_shapes, priority=100)  # before numpydoc
