"""The servers that JARVIS uses for the person: what is set of each, never a password, and a button that tries it."""

import logging
from collections.abc import Iterable

import streamlit as st

from jarvis_memory.errors import JarvisError
from jarvis_memory.services import Service, list_services
from jarvis_memory.ui.frame import Page, show_error
from jarvis_memory.ui.safe_markdown import plain

log = logging.getLogger(__name__)

ICONS = {"claude": "neurology", "calendar": "calendar_month", "mail": "inbox", "sending": "send"}

# Where the README says how each is set up.
SECTIONS = {
    "claude": "Start",
    "calendar": "Calendar and mail",
    "mail": "Calendar and mail",
    "sending": "Calendar and mail",
}


def draw_connections(page: Page) -> None:
    """A box for each, also for what is not set up yet."""
    for service in list_services(page.parts.settings):
        with st.container(border=True, key=f"connection-{service.name}", gap="small"):
            _draw_service(page, service)


def _draw_service(page: Page, service: Service) -> None:
    texts = page.texts
    icon = f":material/{ICONS[service.name]}:"
    st.markdown(f"#### {icon} {texts(f'connections.{service.name}')}", anchors=False)
    if not service.configured:
        st.caption(texts("connections.missing", variables=_listed(service.variables), section=SECTIONS[service.name]))
        return
    known = [name for name in service.variables if name.lower() in page.parts.settings.model_fields_set]
    with st.container(gap=None):
        st.text(f"{service.user} · {service.address}" if service.user else service.address)
        st.caption(texts("connections.set", variables=_listed(known)))
    if st.button(texts("connections.test"), key=f"test-{service.name}", icon=":material/network_check:"):
        with st.spinner(texts("connections.testing")):
            _test(page, service)


def _listed(variables: Iterable[str]) -> str:
    return ", ".join(f"`{variable}`" for variable in variables)


def _test(page: Page, service: Service) -> None:
    texts = page.texts
    try:
        found = service.check()
    except JarvisError as error:
        log.warning("The connection %s does not work: %s (%s)", service.name, error, error.details)
        show_error(texts, error)
    else:
        st.success(texts("connections.works", found=plain(found)), icon=":material/check_circle:")
