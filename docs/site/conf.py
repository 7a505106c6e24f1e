"""Settings of the website for Sphinx. ``tools/website.py`` assembles the pages and calls Sphinx."""

import os
from importlib.util import find_spec
from pathlib import Path

from taeda.version import __version__

project = "taeda"
author = "taeda contributors"
copyright = "taeda contributors, BSD-3-Clause"
release = version = __version__

extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton"]
exclude_patterns = ["files/**"]
default_role = "literal"
toc_object_entries = False
add_module_names = True
python_maximum_signature_line_length = 100
nitpicky = False

myst_enable_extensions = ["colon_fence", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4
# Blocks between fences without a language are commands and output.
highlight_language = "text"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "taeda"
html_static_path = ["_static"]
html_css_files = ["taeda.css"]
html_copy_source = False
html_show_sourcelink = False
# The summaries of search would be fetched, which browsers refuse to pages of a plain folder.
html_show_search_summary = False
html_theme_options = {
    "navigation_depth": 4,
    "show_nav_level": 1,
    "collapse_navigation": True,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": True,
}
html_context = {"default_mode": "auto"}  # else the theme's script logs an error where nobody has chosen one yet
html_sidebars = {"index": [], "features": []}

programs = Path(__file__).parent.parent / "gallery-programs"
if programs.exists():
    if find_spec("sphinx_gallery") is None:
        raise ModuleNotFoundError("the gallery needs sphinx-gallery: pip install 'taeda[docs]'")
    extensions.append("sphinx_gallery.gen_gallery")
    os.environ.setdefault("MPLBACKEND", "Agg")
    sphinx_gallery_conf = {
        "reset_argv": "website.short",
        "examples_dirs": [str(programs)],
        "gallery_dirs": ["gallery/programs"],
        "filename_pattern": r"\.py$",
        "abort_on_example_error": True,
        "show_memory": False,
        "download_all_examples": False,
        "show_signature": False,
        "remove_config_comments": True,
        "within_subsection_order": "FileNameSortKey",
    }
