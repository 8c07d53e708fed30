# SPDX-License-Identifier: MIT
"""For mkdocs: a page that build.py wrote has no link to edit it."""


def on_page_context(context, page, **_):
    if page.meta.get("written"):
        page.edit_url = None
    return context
