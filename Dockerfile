# The image of all our processes; `docker-compose.yml` starts one program of `dist` in each container. It builds with
# Docker's classic builder, too. The base needs Node and glibc.
ARG BASE=node:24.21.0-bookworm-slim

FROM ${BASE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
# No package needs an install script.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${BASE} AS modules
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY scripts/prune-modules.mjs scripts/
RUN node scripts/prune-modules.mjs node_modules

FROM ${BASE}
WORKDIR /app
# The journals of usage and of agents that should run, and the files of videos; volumes keep them.
RUN mkdir /data /media && chown 1000:1000 /data /media
COPY package.json ./
COPY deploy/probe.mjs deploy/
COPY --from=modules /build/node_modules node_modules
COPY --from=build /build/dist dist
ENV NODE_ENV=production DATA_DIR=/data HOME=/tmp
# Temporal's images have the same user, so that both read the same files of secrets.
USER 1000:1000
CMD ["node", "dist/api/main.js"]
