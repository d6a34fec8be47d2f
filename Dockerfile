# syntax=docker/dockerfile:1.10
# Sluice in two images from one file, each with a name of its own: a new tag must not turn one into the other.
#   docker build --target slim    -t sluice:0.1.0 .
#   docker build --target browser -t sluice-browser:0.1.0 .
# The tag names an exact version. To pin the bytes as well, look the digest up once and add it to the tag:
#   docker buildx imagetools inspect node:24.21.0-bookworm-slim   →   --build-arg NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

# --- build: the package as `npm pack` makes it for everybody ---------------------------------------------------------------
FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY scripts/setup.sh scripts/
RUN scripts/setup.sh
COPY . .
RUN npm pack --pack-destination /tmp && mv /tmp/sluice-*.tgz /tmp/sluice.tgz

# --- install: the package and what it needs, nothing of the build ------------------------------------------------------------
FROM ${NODE_IMAGE} AS install
WORKDIR /srv/sluice
# What it depends on as it was locked, to the last digit; a plain `npm install` of the package would look for newer ones.
COPY package.json package-lock.json .npmrc ./
# With the drivers, the API server and the formats, which the package leaves to its users: these images are for fleets.
RUN node -e 'const m = require("./package.json"); \
      for (const name of ["@aws-sdk/client-s3", "@aws-sdk/lib-storage", "fastify", "hyparquet-writer", "ioredis", "pg", "prom-client", "puppeteer-core", "rabbitmq-client"]) { \
        m.dependencies[name] = m.devDependencies[name]; delete m.devDependencies[name] } \
      require("fs").writeFileSync("package.json", JSON.stringify(m))' \
 && npm ci --omit=dev --ignore-scripts --no-audit --no-fund
# --build-arg OTEL=1: with the packages that --otel needs, in the versions we test with; one folder up, where they are found as well.
ARG OTEL=0
RUN if [ "$OTEL" = 1 ]; then npm install --prefix /srv --no-save --ignore-scripts --no-audit --no-fund \
      $(node -p 'Object.entries(require("./package.json").devDependencies).filter(([name]) => name.startsWith("@opentelemetry/")).map((pair) => pair.join("@")).join(" ")'); fi
# The work folder is the project: a scraper in /srv/sluice/scrapers finds `import … from 'sluice'` above itself.
COPY --from=build /tmp/sluice.tgz /tmp/
RUN mkdir node_modules/sluice \
 && tar -xzf /tmp/sluice.tgz -C node_modules/sluice --strip-components=1 \
 && ln -s ../sluice/dist/bin/sluice node_modules/.bin/sluice \
 && rm package-lock.json .npmrc \
 && echo '{"private":true,"type":"module"}' > package.json

# --- slim: all but browsers --------------------------------------------------------------------------------------------------
FROM ${NODE_IMAGE} AS slim
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="sluice" \
      org.opencontainers.image.description="A scraping platform: one scraper definition, from a laptop to a fleet" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# tini: ends orphans of worker processes and browsers, and hands SIGTERM on to us.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 sluice \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin sluice
COPY --from=install /srv /srv
COPY deploy/docker/health.mjs deploy/docker/make-secrets.mjs /usr/local/lib/sluice/
# No VOLUME: fifty workers would leave a hundred nameless ones behind. A new volume takes the owner of the folder it is put on: these are ours, all else belongs to root and is only read.
RUN for folder in runs .sluice files scrapers; do install -d -o 10001 -g 10001 "/srv/sluice/$folder"; done \
 && for name in api links postgres redis rabbitmq grafana metrics; do install -d -o 10001 -g 10001 "/secrets/$name"; done
# The root file system may be read-only: what is written goes to the volumes and to /tmp.
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/tmp/compile-cache \
    PATH=/srv/sluice/node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /srv/sluice
USER 10001:10001
EXPOSE 7700 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=4 CMD ["node", "/usr/local/lib/sluice/health.mjs"]
# `sluice` is a shell script that ends with exec: there is no shell between tini and Node that could keep a signal.
ENTRYPOINT ["tini", "--", "sluice"]
CMD ["serve"]

# --- browser: slim, and Debian's Chromium without a screen ---------------------------------------------------------------------
FROM slim AS browser
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends chromium-headless-shell fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji \
 && rm -rf /var/lib/apt/lists/*
COPY --chmod=0755 deploy/docker/chromium.sh /usr/local/bin/sluice-chromium
ENV SLUICE_CHROME=/usr/local/bin/sluice-chromium
USER 10001:10001
