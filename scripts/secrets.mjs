// Makes the files of secrets that docker-compose.yml mounts, and overwrites none:
//
//     npm run secrets -- init [folder]    deploy/secrets by default
//
// A secret that only the operator has is made as an empty file, which counts as not set.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { root, sentence } from './bootstrap.mjs';

/** The user of our containers and Temporal's, who reads the files. */
const READER = 1000;

/** The name by which API processes call the worker of the host, in docker-compose.yml. */
const HOST_NAME = 'host';
const CERTIFICATE_DAYS = 3650;

const [command, given] = process.argv.slice(2);
const folder = path.resolve(given ?? path.join(root, 'deploy', 'secrets'));

try {
  if (command !== 'init') throw new Error('Use: npm run secrets -- init [folder]');
  init();
} catch (error) {
  console.error(sentence(error));
  process.exitCode = 1;
}

function init() {
  const user = process.getuid?.();
  if (user !== 0 && user !== READER) {
    throw new Error(
      `The containers read the secrets as user ${READER}, and you are user ${user}: run this as root (sudo) or as user ${READER}.`,
    );
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (user === 0) chownSync(folder, READER, READER);
  const makers = makersOf();
  const examples = readdirSync(path.join(root, 'deploy', 'secrets.example'));
  // The makers come first, in their order.
  const names = [...new Set([...Object.keys(makers), ...examples])];
  const made = names.filter((name) => write(name, makers[name] ?? (() => '')));
  const empty = names.filter((name) => read(name) === '');
  console.log(`Made ${made.length} of ${names.length} secrets in ${folder}.`);
  if (empty.length > 0) {
    console.log(`Empty, and so not set; fill in what you use: ${empty.join(', ')}`);
  }
}

/** Returns how each secret is made, in order: addresses contain the passwords before them. */
function makersOf() {
  const password = () => randomBytes(24).toString('hex');
  const key = () => randomBytes(32).toString('base64');
  const address = (role, name, host) => () =>
    `postgres://${role}:${read(name)}@${host}:5432/platform?sslmode=disable`;
  const certificate = (part) => () => (tls ??= makeCertificate())[part];
  let tls;
  if (existsSync(fileOf('host_tls_cert')) !== existsSync(fileOf('host_tls_key'))) {
    throw new Error(
      'Only one of host_tls_cert and host_tls_key exists: remove it, so that both are made again.',
    );
  }
  return {
    postgres_password: password,
    database_owner_password: password,
    database_password: password,
    temporal_password: password,
    database_owner_url: address('platform_owner', 'database_owner_password', 'postgres'),
    database_url: address('platform', 'database_password', 'postgres'),
    database_url_local: address('platform', 'database_password', '127.0.0.1'),
    redis_config: () => `requirepass ${password()}\n`,
    redis_url: () => `redis://:${read('redis_config').replace(/^requirepass /, '')}@redis:6379`,
    encryption_key: key,
    internal_api_key: key,
    summarizer_key: key,
    radio_admin_password: password,
    radio_auth_secret: password,
    host_tls_cert: certificate('cert'),
    host_tls_key: certificate('key'),
  };
}

/** Writes a file unless it exists. @returns true if it was made. */
function write(name, make) {
  const file = fileOf(name);
  if (existsSync(file)) return false;
  // `wx` fails if another run has made the file.
  writeFileSync(file, make(), { mode: 0o600, flag: 'wx' });
  if (process.getuid?.() === 0) chownSync(file, READER, READER);
  return true;
}

function makeCertificate() {
  const { error, stdout: pem } = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-days', String(CERTIFICATE_DAYS), '-subj', `/CN=${HOST_NAME}`],
      ...['-addext', `subjectAltName=DNS:${HOST_NAME}`, '-keyout', '-', '-out', '-'],
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  );
  if (error)
    throw new Error('openssl is missing, which makes the certificate of the host: install it.');
  const part = (what) =>
    new RegExp(`-----BEGIN ${what}-----[^]+?-----END ${what}-----\n`).exec(pem)?.[0] ?? '';
  return { cert: part('CERTIFICATE'), key: part('PRIVATE KEY') };
}

function read(name) {
  return readFileSync(fileOf(name), 'utf8').trim();
}

function fileOf(name) {
  return path.join(folder, name);
}
