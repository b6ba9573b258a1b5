"""Going from one conversation to another: the address, and what of a page is not to go along."""

import streamlit as st

LONGEST_ID = 2**31 - 1


def number_in_address(name: str) -> int | None:
    """The id that stands in the address under this name; None for nonsense."""
    wanted = st.query_params.get(name, "")
    return int(wanted) if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= LONGEST_ID else None


def open_conversation(conversation_id: int | None, message_id: int | None = None) -> None:
    """Show this conversation, at this message, or a new chat, on the chat page."""
    st.query_params.from_dict(_address(conversation_id, message_id))
    leave_place()


def go_to_conversation(conversation_id: int | None, *, on_chat: bool, message_id: int | None = None) -> None:
    """Leave for this conversation, or a new chat, from the chat page or another one. Does not return."""
    if not on_chat:
        st.switch_page("chat.py", query_params=_address(conversation_id, message_id))
    open_conversation(conversation_id, message_id)
    st.rerun()


def open_document(document_id: int | None, page: int | None = None) -> None:
    """Show this document, at this page, or the list of all, on the documents page."""
    numbers = {"d": document_id, "p": page}
    st.query_params.from_dict({name: str(number) for name, number in numbers.items() if number is not None})


def leave_place() -> None:
    """Forget what belongs to the place that was shown: where in a long chat one was, and the Undo of a deletion."""
    for name in ("window_at", "deletion"):
        st.session_state.pop(name, None)


def _address(conversation_id: int | None, message_id: int | None) -> dict[str, str]:
    numbers = {"c": conversation_id, "m": message_id}
    return {name: str(number) for name, number in numbers.items() if number is not None}
