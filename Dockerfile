# The service, or any other command, without Python on the host:
#   docker build -t drhg .
#   docker run --rm -v "$PWD:/work" drhg solve stops.csv --capacity 120 -o routes.csv --map map.html
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/drhg
# Dependencies have a layer of their own, which an edit of the source leaves alone.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN mkdir -p src/drhg && touch src/drhg/__init__.py \
    && /opt/drhg/bin/pip install -c constraints.txt '.[plot,serve]' \
    && /opt/drhg/bin/pip uninstall --yes drhg
COPY src ./src
RUN /opt/drhg/bin/pip install --no-deps .

FROM python:3.11-slim-bookworm
RUN useradd --create-home --uid 10001 drhg \
    && install -d -o drhg -g drhg /work /data /var/cache/drhg
COPY --from=build /opt/drhg /opt/drhg
ENV PATH=/opt/drhg/bin:$PATH NUMBA_CACHE_DIR=/var/cache/drhg MPLCONFIGDIR=/tmp/matplotlib
USER drhg
# Compiled once, here. On another kind of processor the first run compiles again, into the same folder.
RUN drhg warmup
WORKDIR /work
EXPOSE 8000
ENTRYPOINT ["drhg"]
CMD ["--help"]
