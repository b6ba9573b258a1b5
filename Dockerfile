FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# PostgreSQL refuses root, and so do we. /data is for the embedded database, when no DATABASE_URL is set.
RUN useradd --create-home --uid 10001 jarvis && install -d -o jarvis -g jarvis -m 700 /data
ENV JARVIS_DATA_DIR=/data
VOLUME /data

WORKDIR /app
COPY requirements.txt .
RUN pip install -r requirements.txt
COPY app.py chat.py alembic.ini ./
COPY .streamlit .streamlit
COPY jarvis_memory jarvis_memory
COPY migrations migrations
COPY pages pages

USER jarvis
EXPOSE 8501
STOPSIGNAL SIGTERM

# Unknown addresses answer 200 as well: only the body tells.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", \
    "import urllib.request as u; assert u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4).read() == b'ok'"]

# All addresses of the container; to whom it is published is said where it is started (docker-compose.yml: 127.0.0.1).
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501"]
