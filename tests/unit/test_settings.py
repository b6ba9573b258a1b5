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
    for name, example in EXAMPLES.items():
        if name != "ANTHROPIC_API_KEY":  # its example is no key, so that nobody takes it for one
            loaded(**{name: example})


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
        ("DATABASE_URL", f"mysql://jarvis:{SECRET}@localhost/jarvis", "PostgreSQL"),
        ("DATABASE_URL", f"postgresql://jarvis:{SECRET}@localhost:port/jarvis", "PostgreSQL"),
        ("DATABASE_URL", "postgres", "PostgreSQL"),
        ("DATABASE_URL", f"postgresql+asyncpg://jarvis:{SECRET}@localhost/jarvis", "PostgreSQL"),
        ("JARVIS_MODEL", f"{SECRET} and more", "name of a model"),
        ("JARVIS_SUMMARY_MODEL", "   ", "name of a model"),
        ("EMBEDDING_MODEL", f"nomic {SECRET}", "name of a model"),
        ("JARVIS_LANGUAGE", f"fr-{SECRET}", "'de' or 'en'"),
        ("JARVIS_FACTS_BUDGET", SECRET, "integer"),
        ("JARVIS_FACTS_BUDGET", "10", "greater than or equal to 500"),
        ("JARVIS_TIME_ZONE", f"Europe/{SECRET}", "time zone"),
        ("JARVIS_DATA_DIR", f"~nobody-{SECRET}/x", "cannot be reached"),
        ("JARVIS_DATA_DIR", "/" + SECRET * 100, "cannot be reached"),
        ("JARVIS_DEMO", SECRET, "boolean"),
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
