import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  caddyFaults,
  composeFaults,
  composeProject,
  variableFaults,
} from '../../scripts/compose-rules.js';

const service = {
  restart: 'unless-stopped',
  read_only: true,
  cap_drop: ['ALL'],
  security_opt: ['no-new-privileges:true'],
  mem_limit: '536870912',
  logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
  healthcheck: { test: ['CMD', 'true'] },
};
const job = { ...service, restart: 'no', healthcheck: undefined };
const ours = { ...service, image: 'agent-platform-service:0.1.0' };

/** A small project in the form of Compose's loader, which follows every rule. */
const project = {
  services: {
    postgres: {
      ...service,
      image: 'postgres:18.4',
      cap_add: ['CHOWN'],
      ports: [{ host_ip: '127.0.0.1', published: '5432', target: 5432 }],
    },
    temporal: { ...service, image: 'temporalio/server:1.32.1' },
    haproxy: {
      ...service,
      image: 'haproxy:3.2.6',
      ports: [{ published: '8443' }],
      secrets: [{ source: 'radio_tls' }],
    },
    'temporal-namespace': {
      ...job,
      image: 'temporalio/admin-tools:1.32.1',
      depends_on: { temporal: { condition: 'service_healthy' } },
      volumes: [{ type: 'bind', source: '/project/deploy/temporal/namespace.sh' }],
    },
    migrate: {
      ...ours,
      ...job,
      build: { context: '.', args: { BASE: 'node:24.21.0' } },
      environment: { DATABASE_OWNER_URL_FILE: '/run/secrets/database_owner_url' },
      secrets: [{ source: 'database_owner_url' }],
    },
    api: {
      ...ours,
      environment: {
        INTERNAL_API_KEY_FILE: '/run/secrets/internal_api_key',
        HOST: '0.0.0.0',
        WEB_URL: 'https://platform.example',
      },
      secrets: [{ source: 'internal_api_key' }],
      depends_on: {
        migrate: { condition: 'service_completed_successfully' },
        'temporal-namespace': { condition: 'service_completed_successfully' },
      },
    },
    host: {
      ...ours,
      network_mode: 'host',
      volumes: [
        { type: 'bind', source: '/var/run/docker.sock' },
        { type: 'bind', source: '/var/lib/docker', read_only: true },
      ],
    },
    summarizer: {
      ...ours,
      networks: { edge: null },
      secrets: [{ source: 'summarizer_key' }],
    },
    caddy: {
      ...service,
      image: 'caddy:2.10.2',
      environment: { WEB_DOMAIN: 'platform.example' },
      ports: [{ published: '443', target: 443 }],
    },
  },
  networks: { edge: {}, data: { internal: true } },
  secrets: { internal_api_key: { file: '/project/deploy/secrets/internal_api_key' } },
};

test('accepts a project that follows the rules', () => {
  expect(composeFaults(composeProject.parse(project))).toEqual([]);
});

const dockerFolder = { type: 'bind', source: '/var/lib/docker', read_only: true };
const socket = { volumes: [{ type: 'bind', source: '/var/run/docker.sock' }] };

test.each<[service: keyof typeof project.services, change: object, fault: string]>([
  ['api', { image: 'agent-platform-service:latest' }, 'image agent-platform-service:latest has no'],
  ['caddy', { image: 'caddy' }, 'caddy image caddy has no version'],
  ['migrate', { build: { args: { BASE: 'node:24' } } }, 'the image in build argument BASE'],
  ['temporal', { image: 'temporalio/server:1.32.2' }, "Temporal's server and tools have different"],
  ['api', { healthcheck: undefined }, 'api has no health check'],
  ['api', { healthcheck: { test: ['NONE'] } }, 'api has no health check'],
  ['api', { restart: 'no' }, 'api does not restart'],
  ['migrate', { restart: 'always' }, 'migrate is a job and restarts'],
  [
    'temporal-namespace',
    { depends_on: { temporal: { condition: 'service_started' } } },
    'temporal-namespace waits for temporal by service_started instead of service_healthy',
  ],
  ['api', { mem_limit: undefined }, 'api has no memory limit'],
  ['api', { logging: undefined }, 'api has an unbounded log'],
  ['api', { logging: { options: { 'max-size': '10m' } } }, 'api has an unbounded log'],
  ['api', { read_only: false }, 'api can write to its image'],
  ['api', { cap_drop: [] }, 'api keeps capabilities'],
  ['api', { cap_add: ['NET_ADMIN'] }, 'api has the capability NET_ADMIN'],
  ['postgres', { cap_add: ['SYS_ADMIN'] }, 'postgres has the capability SYS_ADMIN'],
  ['api', { privileged: true }, 'api is privileged'],
  ['api', { security_opt: [] }, 'api may gain privileges'],
  ['api', { user: 'root' }, 'api runs as root'],
  ['api', { user: '0:0' }, 'api runs as root'],
  ['api', { environment: { SMTP_URL: 'smtps://mail' } }, 'api has a secret in SMTP_URL'],
  ['api', { environment: { PGPASSWORD: 'a' } }, 'api has a secret in PGPASSWORD'],
  ['api', { environment: { PLACE: 'http://a:b@c' } }, 'api has a secret in PLACE'],
  [
    'api',
    { environment: { REDIS_URL_FILE: '/run/secrets/redis_url' } },
    'api does not mount the secret of REDIS_URL_FILE',
  ],
  [
    'api',
    { secrets: [{ source: 'internal_api_key' }, { source: 'operator_private_key' }] },
    'api has the secret operator_private_key, which only payments may have',
  ],
  [
    'api',
    { secrets: [{ source: 'internal_api_key' }, { source: 'radio_tls' }] },
    'api has the secret radio_tls, which only haproxy may have',
  ],
  ['summarizer', { secrets: [{ source: 'redis_url' }] }, 'summarizer has another secret than'],
  ['summarizer', { networks: { data: null } }, 'summarizer has another secret than'],
  ['postgres', { ports: [{ published: '5432' }] }, 'postgres publishes port 5432 beyond loopback'],
  ['api', { network_mode: 'host' }, "api is on the machine's own network"],
  ['api', socket, "api has Docker's socket"],
  ['api', { volumes: [{ type: 'bind', source: '/etc' }] }, 'api mounts /etc'],
  ['api', { volumes: [dockerFolder] }, 'api mounts /var/lib/docker'],
  [
    'host',
    { environment: { BACKEND_PUBLIC_URL: 'https://backend.platform.example' } },
    'host has a BACKEND_PUBLIC_URL with a domain that caddy does not have',
  ],
  ['caddy', { environment: {} }, 'api has a WEB_URL with a domain that caddy does not have'],
  ['host', { volumes: [{ ...dockerFolder, read_only: false }] }, 'host can write to /var/lib'],
])('names a broken rule of %s: %j', (name, change, fault) => {
  const changed = { ...project.services[name], ...change };
  const broken = { ...project, services: { ...project.services, [name]: changed } };
  expect(composeFaults(composeProject.parse(broken))).toEqual([expect.stringContaining(fault)]);
});

test.each([
  [{ networks: { data: {} } }, 'the network data has access to other networks'],
  [{ secrets: { smtp_url: { environment: 'SMTP_URL' } } }, 'the secret smtp_url is no file'],
])('names a broken rule of the whole project: %j', (change, fault) => {
  const broken = composeProject.parse({ ...project, ...change });
  expect(composeFaults(broken)).toEqual([expect.stringContaining(fault)]);
});

test('names each domain that the Caddyfile and its service do not share', () => {
  const parsed = composeProject.parse(project);
  expect(caddyFaults('{$WEB_DOMAIN} {\n}\n', parsed)).toEqual([]);
  expect(caddyFaults('{$BACKEND_DOMAIN} {\n}\n', parsed)).toEqual([
    'deploy/Caddyfile uses BACKEND_DOMAIN, which caddy does not get',
    'caddy gets WEB_DOMAIN, which deploy/Caddyfile does not use',
  ]);
});

test('names variables in the wrong file, and those that no file has', () => {
  const compose = 'a: ${A_VERSION}\nb: ${DOMAIN:?set DOMAIN}';
  expect(variableFaults(compose, 'A_VERSION=1.0\n', '# domain\nDOMAIN=\n')).toEqual([]);
  expect(variableFaults(compose, 'A_VERSION=1.0\nTOKEN=x\n', 'DOMAIN=\n')).toEqual([
    '.env has TOKEN',
  ]);
  expect(variableFaults(compose, '', 'DOMAIN=\nOTHER=\n')).toEqual([
    '.env.example has OTHER, which no service requires',
    'A_VERSION is neither in .env nor required: write ${A_VERSION:?…}',
  ]);
  expect(variableFaults(compose, 'A_VERSION=1.0\n', '')).toEqual(['.env.example lacks DOMAIN']);
});

test('processes without the secrets of the radio do not get its address', () => {
  const services = readFileSync('docker-compose.yml', 'utf8').split(/^  (?=[a-z-]+:$)/m);
  const serving = services.filter((text) =>
    /dist\/(?:worker|api)\/(?:main|payments|containers)/.test(text),
  );
  expect(serving).toHaveLength(5);
  for (const text of serving) {
    expect(text).toContain(text.includes('radio_admin_password') ? '*radio' : '*without-radio');
  }
});
