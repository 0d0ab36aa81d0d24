# tfstudy on a CPU. Results are written to /work, which should be a folder of the host:
#
#   docker build --tag tfstudy .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" tfstudy run scan --smoke
#
# For a GPU: `docker build --build-arg TORCH_INDEX=`, which takes torch with CUDA from PyPI, and `docker run --gpus all`.
FROM python:3.11-slim-bookworm

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1

# torch first, in its exact version: packages that depend on it then use this build
COPY constraints.txt /opt/tfstudy/
# hadolint ignore=DL3013
RUN pip install ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$(grep '^torch==' /opt/tfstudy/constraints.txt)"

COPY pyproject.toml README.md LICENSE /opt/tfstudy/
COPY tasks /opt/tfstudy/tasks
COPY configs /opt/tfstudy/configs
COPY tfstudy /opt/tfstudy/tfstudy
RUN pip install --constraint /opt/tfstudy/constraints.txt /opt/tfstudy \
    && useradd --uid 1000 --create-home tfstudy \
    && install --directory --owner tfstudy /work

# Any user id works, also one without a home: caches go where everybody can write
ENV HOME=/tmp
USER 1000
WORKDIR /work
ENTRYPOINT ["tfstudy"]
CMD ["--help"]
