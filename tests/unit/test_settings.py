"""The settings: defaults, what is accepted, and errors that name the variable and never the value."""

from pathlib import Path

import platformdirs
import pytest

from jarvis_memory.errors import SettingsError
from jarvis_memory.settings import EXAMPLES, Settings, load_settings, print_settings_error

SECRET = "hunter2"


def problems(**variables: str) -> list[tuple[str, str, str]]:
    """What load_settings complains about with these variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        with pytest.raises(SettingsError) as raised:
            load_settings()
    found: list[tuple[str, str, str]] = raised.value.details["problems"]
    assert all(name in str(raised.value) for name, _, _ in found)
    return found


def loaded(**variables: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return load_settings()


def test_without_any_variable_everything_has_a_default() -> None:
    settings = loaded()
    assert settings.anthropic_api_key is None
    assert settings.database_url is None
    assert settings.ollama_url is None
    assert settings.time_zone is None
    assert (settings.jarvis_model, settings.jarvis_summary_model) == ("claude-sonnet-5-5", "claude-haiku-5-5")
    assert settings.jarvis_language == "de"
    assert settings.jarvis_facts_budget == 20_000
    assert settings.jarvis_data_dir == platformdirs.user_data_path("jarvis", appauthor=False)
    assert settings.jarvis_demo is False
    assert settings.claude_is_official
    assert not settings.claude_is_configured


def test_every_setting_has_an_example_that_is_accepted() -> None:
    assert set(EXAMPLES) == {name.upper() for name in Settings.model_fields}
    # The key's example is no key, so that nobody takes it for one.
    examples = {name: example for name, example in EXAMPLES.items() if name != "ANTHROPIC_API_KEY"}
    assert loaded(**examples).model_fields_set == {name.lower() for name in examples}


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("ANTHROPIC_API_KEY", f"sk ant {SECRET}", "copy it again"),
        ("ANTHROPIC_API_KEY", f"sk-ant-{SECRET}…", "copy it again"),
        ("ANTHROPIC_BASE_URL", f"localhost/{SECRET}", "http://"),
        ("ANTHROPIC_BASE_URL", f"http://user:{SECRET}/x@host", "http://"),
        ("ANTHROPIC_BASE_URL", f"http://{SECRET}[", "http://"),
        ("ANTHROPIC_BASE_URL", f"http://{SECRET}\u2100.com", "http://"),
        ("OLLAMA_URL", f"ftp://{SECRET}", "http://"),
        ("OLLAMA_URL", "http://", "http://"),
        ("OLLAMA_URL", "http://localhost:99999", "http://"),
        ("CALDAV_URL", f"cloud.example.org/{SECRET}", "http://"),
        ("DATABASE_URL", f"mysql://jarvis:{SECRET}@localhost/jarvis", "PostgreSQL"),
        ("DATABASE_URL", f"postgresql://jarvis:{SECRET}@localhost:port/jarvis", "PostgreSQL"),
        ("DATABASE_URL", "postgres", "PostgreSQL"),
        ("DATABASE_URL", f"postgresql+asyncpg://jarvis:{SECRET}@localhost/jarvis", "PostgreSQL"),
        ("JARVIS_MODEL", f"{SECRET} and more", "name of a model"),
        ("JARVIS_SUMMARY_MODEL", "   ", "name of a model"),
        ("JARVIS_MODELS", f"claude-x, {SECRET} and more", "list of names of models"),
        ("JARVIS_MODELS", " , ", "list of names of models"),
        ("JARVIS_CONTEXT_TOKENS", SECRET, "integer"),
        ("JARVIS_CONTEXT_TOKENS", "100", "greater than or equal to 4000"),
        ("EMBEDDING_MODEL", f"nomic {SECRET}", "name of a model"),
        ("JARVIS_LANGUAGE", f"fr-{SECRET}", "'de' or 'en'"),
        ("JARVIS_FACTS_BUDGET", SECRET, "integer"),
        ("JARVIS_FACTS_BUDGET", "10", "greater than or equal to 500"),
        ("JARVIS_TIME_ZONE", f"Europe/{SECRET}", "time zone"),
        ("JARVIS_DATA_DIR", f"~nobody-{SECRET}/x", "cannot be reached"),
        ("JARVIS_DATA_DIR", "/" + SECRET * 100, "cannot be reached"),
        ("JARVIS_DEMO", SECRET, "boolean"),
        ("CALDAV_URL", f"cloud.example.org/{SECRET}", "https://"),
        ("CALDAV_URL", f"caldavs://{SECRET}", "https://"),
        ("CALDAV_URL", "https://", "https://"),
        ("CALDAV_URL", f"https://cloud.example.org/{SECRET} x", "https://"),
        ("CALDAV_URL", f"https://anna:{SECRET}@cloud.example.org", "CALDAV_USERNAME"),
        ("IMAP_HOST", f"imaps://{SECRET}.example.org", "IMAP_PORT"),
        ("IMAP_HOST", f"{SECRET}.example.org:993", "IMAP_PORT"),
        ("IMAP_HOST", f"{SECRET}.example.org/", "bare name"),
        ("IMAP_HOST", f"{SECRET}@example.org", "bare name"),
        ("IMAP_HOST", f"imap {SECRET}", "bare name"),
        ("SMTP_HOST", f"smtp://{SECRET}.example.org", "SMTP_PORT"),
        ("IMAP_PORT", SECRET, "integer"),
        ("SMTP_PORT", "0", "greater than or equal to 1"),
        ("IMAP_SECURITY", f"ssl-{SECRET}", "'tls', 'starttls' or 'none'"),
        ("MAIL_FROM", SECRET, "mail address"),
        ("MAIL_FROM", f"anna@{SECRET}", "mail address"),
        ("MAIL_FROM", f"a@example.org, {SECRET}@example.org", "one mail address"),
        ("MAIL_FROM", f"a@example.org\r\nBcc: {SECRET}@example.org", "mail address"),
        ("MAIL_FROM", f"{SECRET}ä@example.org", "ordinary letters"),
    ],
)
def test_a_bad_value_is_told_by_variable_reason_and_example(
    variable: str, value: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [(name, why, example)] = problems(**{variable: value})
    assert name == variable
    assert reason in why
    assert example == EXAMPLES[variable]
    print_settings_error(SettingsError(problems=[(name, why, example)]))
    told = capsys.readouterr().err
    assert f"Example: {variable}={example}" in told
    assert SECRET not in told


def test_every_bad_value_is_told_at_once_and_none_is_shown() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", f"mysql://x:{SECRET}@y")
        patch.setenv("JARVIS_LANGUAGE", SECRET)
        with pytest.raises(SettingsError) as raised:
            load_settings()
    assert [name for name, _, _ in raised.value.details["problems"]] == ["DATABASE_URL", "JARVIS_LANGUAGE"]
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None  # pydantic's own error shows the values


def test_a_file_is_no_data_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert problems(JARVIS_DATA_DIR=str(file))[0][1] == "is a file, not a folder"


def test_the_data_folder_may_begin_with_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert loaded(JARVIS_DATA_DIR="~/jarvis").jarvis_data_dir == tmp_path / "jarvis"


@pytest.mark.parametrize(
    "given",
    ["http://localhost:11434", "http://localhost:11434/", "http://localhost:11434/v1", " http://localhost:11434/v1/ "],
)
def test_an_address_is_cut_before_v1(given: str) -> None:
    settings = loaded(ANTHROPIC_BASE_URL=given, OLLAMA_URL=given)
    assert settings.anthropic_base_url == "http://localhost:11434"
    assert settings.ollama_url == "http://localhost:11434"


@pytest.mark.parametrize("host", ["api.anthropic.com", "anthropic.com"])
def test_anthropics_own_addresses_are_official_and_need_a_key(host: str) -> None:
    settings = loaded(ANTHROPIC_BASE_URL=f"https://{host}/v1")
    assert settings.claude_is_official
    assert not settings.claude_is_configured
    assert loaded(ANTHROPIC_API_KEY=" sk-ant-1 ").claude_is_configured


@pytest.mark.parametrize("host", ["localhost", "anthropic.com.example.org", "notanthropic.com"])
def test_any_other_address_is_a_server_of_ones_own(host: str) -> None:
    settings = loaded(ANTHROPIC_BASE_URL=f"http://{host}")
    assert not settings.claude_is_official
    assert settings.claude_is_configured


def test_empty_values_count_as_unset() -> None:
    settings = loaded(**dict.fromkeys(EXAMPLES, ""))
    assert settings.anthropic_api_key is None
    assert settings.jarvis_model == "claude-sonnet-5-5"
    assert settings.jarvis_facts_budget == 20_000


def test_a_blank_key_counts_as_none() -> None:
    assert loaded(ANTHROPIC_API_KEY="   ").anthropic_api_key is None


@pytest.mark.parametrize("mark", ["", "\ufeff"])  # Windows' editor puts a mark in front
def test_a_dotenv_file_is_read_and_the_environment_wins(mark: str) -> None:
    Path(".env").write_text(f"{mark}JARVIS_LANGUAGE=en\nJARVIS_MODEL=claude-x\nOTHER=1\n", encoding="utf-8")
    settings = loaded(JARVIS_MODEL="claude-y")
    assert settings.jarvis_language == "en"
    assert settings.jarvis_model == "claude-y"


def test_a_dotenv_file_in_another_encoding_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path(".env").write_bytes("JARVIS_MODEL=größer\n".encode("latin-1"))
    [(name, reason, _)] = problems()
    assert (name, "UTF-8" in reason) == (".env", True)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://jarvis:p%40ss@localhost/jarvis",
        "postgresql://jarvis:secret@localhost:5432/jarvis?sslmode=require",
        "postgresql+psycopg2:///jarvis?host=/var/run/postgresql",
    ],
)
def test_each_form_of_a_postgresql_address_is_accepted(url: str) -> None:
    database_url = loaded(DATABASE_URL=f" {url} ").database_url
    assert database_url is not None
    assert database_url.get_secret_value() == url


def test_secrets_do_not_show_in_the_settings_themselves() -> None:
    settings = loaded(ANTHROPIC_API_KEY=SECRET, DATABASE_URL=f"postgres://jarvis:{SECRET}@localhost/jarvis")
    assert SECRET not in repr(settings)


def test_a_time_zone_is_the_named_one() -> None:
    assert str(loaded(JARVIS_TIME_ZONE="Europe/Berlin").time_zone) == "Europe/Berlin"


def test_a_demonstration_reads_no_env_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text(f"DATABASE_URL=postgresql://{SECRET}@localhost/family\n")
    assert load_settings().database_url is not None
    monkeypatch.setenv("JARVIS_DEMO", "true")
    assert load_settings().database_url is None


def test_at_anthropic_the_current_models_can_be_chosen() -> None:
    assert loaded().models == ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5")


def test_on_a_server_of_ones_own_there_is_the_one_model() -> None:
    assert loaded(ANTHROPIC_BASE_URL="http://localhost:11434", JARVIS_MODEL="qwen3").models == ("qwen3",)


def test_the_model_of_the_chat_is_the_first_to_choose_and_none_is_twice() -> None:
    settings = loaded(
        JARVIS_MODEL="claude-opus-5-5", JARVIS_MODELS=" claude-haiku-5-5,claude-opus-5-5 ,, claude-x, claude-x"
    )
    assert settings.models == ("claude-opus-5-5", "claude-haiku-5-5", "claude-x")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (f"postgresql://jarvis:{SECRET}@db.example:5433/family?sslmode=require", "db.example:5433/family"),
        (f"postgres://jarvis:{SECRET}@localhost/jarvis", "localhost/jarvis"),
        ("postgresql+psycopg2:///jarvis?host=/var/run/postgresql", "/var/run/postgresql/jarvis"),
    ],
)
def test_the_place_of_the_database_is_told_without_the_password(url: str, place: str) -> None:
    assert loaded(DATABASE_URL=url).database_place == place


def test_the_embedded_database_has_no_place() -> None:
    assert loaded().database_place is None


MAILBOX = {"IMAP_HOST": "imap.example.org", "IMAP_USERNAME": "anna", "IMAP_PASSWORD": SECRET}


@pytest.mark.parametrize(
    ("variables", "missing"),
    [
        ({"CALDAV_USERNAME": SECRET}, ["CALDAV_URL", "CALDAV_PASSWORD"]),
        ({"CALDAV_URL": "https://cal.example.org", "CALDAV_PASSWORD": SECRET}, ["CALDAV_USERNAME"]),
        ({"IMAP_HOST": "imap.example.org"}, ["IMAP_USERNAME", "IMAP_PASSWORD"]),
        ({"IMAP_HOST": "imap.example.org", "IMAP_USERNAME": SECRET}, ["IMAP_PASSWORD"]),
        ({"IMAP_USERNAME": SECRET, "IMAP_PASSWORD": SECRET}, ["IMAP_HOST"]),
        ({"SMTP_HOST": "smtp.example.org"}, ["IMAP_HOST"]),
        (MAILBOX | {"SMTP_HOST": "smtp.example.org", "SMTP_USERNAME": SECRET}, ["SMTP_PASSWORD"]),
        (MAILBOX | {"SMTP_USERNAME": SECRET, "SMTP_PASSWORD": SECRET}, ["SMTP_HOST"]),
    ],
)
def test_what_is_missing_of_a_half_set_group_is_named_once(variables: dict[str, str], missing: list[str]) -> None:
    found = problems(**variables)
    assert [(name, example) for name, _, example in found] == [(name, EXAMPLES[name]) for name in missing]
    assert all("is missing" in reason and SECRET not in reason for _, reason, _ in found)


def test_a_calendar_server_may_do_without_a_login() -> None:
    settings = loaded(CALDAV_URL=" https://cal.example.org/dav/v1 ")
    assert (settings.caldav_url, settings.calendar_is_configured) == ("https://cal.example.org/dav/v1", True)


def test_a_mailbox_may_be_there_to_read_only() -> None:
    settings = loaded(**MAILBOX)
    assert (settings.mail_is_configured, settings.sending_is_configured) == (True, False)
    assert loaded(**MAILBOX, SMTP_HOST="smtp.example.org").sending_is_configured


@pytest.mark.parametrize("host", ["mail.example.org", "8.8.8.8", "2001:4860:4860::8888"])
def test_no_password_goes_through_the_internet_without_encryption(host: str) -> None:
    for security in ("IMAP_SECURITY", "SMTP_SECURITY"):
        found = problems(**MAILBOX | {"IMAP_HOST": host, "SMTP_HOST": host, security: "none"})
        assert [name for name, _, _ in found] == [security]
    written = f"[{host}]" if ":" in host else host
    assert [name for name, _, _ in problems(CALDAV_URL=f"http://{written}/dav")] == ["CALDAV_URL"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "192.168.1.5", "fd00::5", "dovecot"])
def test_a_server_on_this_machine_or_at_home_may_do_without_encryption(host: str) -> None:
    loaded(**MAILBOX | {"IMAP_HOST": host, "SMTP_HOST": host, "IMAP_SECURITY": "none", "SMTP_SECURITY": "none"})
    loaded(CALDAV_URL=f"http://{f'[{host}]' if ':' in host else host}:5232/")


@pytest.mark.parametrize(
    "sender", ["anna@example.org", "Anna Bücher <anna@example.org>", '"B., Anna" <anna@example.org>']
)
def test_a_sender_may_have_a_name(sender: str) -> None:
    assert loaded(MAIL_FROM=f" {sender} ").mail_from == sender


def test_every_variable_is_in_the_example_file_and_in_the_readme() -> None:
    for name in (".env.example", "README.md"):
        text = (Path(__file__).parents[2] / name).read_text(encoding="utf-8")
        # That one is set by `make demo` and by nobody else.
        assert [variable for variable in EXAMPLES if variable not in text] == ["JARVIS_DEMO"]
