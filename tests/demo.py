"""`make demo`: the app against the scripted Claude, with a data folder that is thrown away at the end."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from jarvis_memory.settings import EXAMPLES
from tests.demo_assistant import respond
from tests.fake_claude import FakeClaude

APP = Path(__file__).parents[1] / "app.py"


def app_command(port: int) -> list[str]:
    """The command that starts the app as `make run` does."""
    return [sys.executable, "-m", "streamlit", "run", str(APP), "--server.port", str(port)]


def app_environment(claude: FakeClaude, data_dir: Path | str, **more: str) -> dict[str, str]:
    """The environment of an app that talks to `claude` and keeps its data in `data_dir`."""
    own = {name: value for name, value in os.environ.items() if name not in EXAMPLES}
    return {
        **own,
        "ANTHROPIC_API_KEY": "demo",
        "ANTHROPIC_BASE_URL": claude.base_url,
        "JARVIS_DATA_DIR": str(data_dir),
        "JARVIS_DEMO": "true",
        **more,
    }


def main() -> int:
    """Run until Ctrl-C. The exit code of the app."""
    arguments = argparse.ArgumentParser(description="JARVIS with scripted answers, to try the interface without a key.")
    arguments.add_argument("--port", type=int, default=8501)
    arguments.add_argument("--language", choices=("de", "en"), default="de")
    options = arguments.parse_args()
    print("Demonstration: the answers are scripted, no Claude is asked. The data is thrown away at the end.")
    with tempfile.TemporaryDirectory(prefix="jarvis-demo-") as data_dir, FakeClaude(respond) as claude:
        environment = app_environment(claude, data_dir, JARVIS_LANGUAGE=options.language)
        app = subprocess.Popen(app_command(options.port), cwd=APP.parent, env=environment)
        # Ctrl-C reaches the app by itself; `kill` of this process is passed on. Both end with the app.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: app.terminate())
        return app.wait()


if __name__ == "__main__":
    sys.exit(main())
