// The rehearsal itself, which `npm run rehearse` starts in namespaces of its own.
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { globalAgent, request, type RequestOptions } from 'node:https';
import path from 'node:path';
import { connect, rootCertificates } from 'node:tls';
import * as z from 'zod';
import { startAnvil } from '../dev/chain/anvil.js';
import { furnish, partiesOf, withLocalChain, type LocalChain } from '../dev/chain/local-chain.js';
import { keepsIdOutsideData } from '../dev/docker/engine-id.js';
import { answers } from '../dev/docker/find-docker.js';
import { describeFailure, StartFailure } from '../dev/failure.js';
import { AGENT_IMAGE, EGRESS_IMAGE, obtainImage } from '../dev/images/obtain-image.js';
import { poll } from '../dev/poll.js';
import { killAll, startProcess } from '../dev/processes/process.js';
import { run } from '../dev/processes/run.js';
import { stopping } from '../dev/processes/stopping.js';
import { bind, PLACES, prepareMachine } from '../dev/rehearsal/machine.js';
import { jobsOf, servicesOf, startInOrder } from '../dev/rehearsal/project.js';
import { RehearsedServices } from '../dev/rehearsal/rehearsed-services.js';
import { say, step } from '../dev/report.js';
import { projectRoot } from '../dev/root.js';
import { readSettings } from '../dev/settings.js';
import { AgentTour } from '../dev/tours/agent-tour.js';
import { LOCAL_HELPER_IMAGE } from '../src/docker/egress/helper-image-name.js';
import { PATH_USD } from '../src/money/chain/tempo.js';
import { loadProject } from './compose-loader.js';

const DOCKER_GID = '998';
const DOCKER_MS = 60_000;
const GUARD_MS = 120_000;
const CHAIN_PORT = 8545;
const ANSWER_MS = 30_000;
const AUDIO_BYTES = 65_536;
const WEB = 'platform.localhost';
const BACKEND = 'https://backend.localhost';
const RADIO = 'radio.localhost';
const ANY_DIGEST = `sha256:${'0'.repeat(64)}`;

/** Parts of the file that only a container has. */
const ONLY_CHECKED = [
  'images and their versions: processes of this machine replaced them',
  'networks: all processes share one without access to others',
  'limits of memory, read-only file systems, restarts and logs',
];

const hostList = z.array(z.object({ status: z.string(), network: z.string() }));

const parts = z
  .object({
    folder: z.string(),
    compose: z.tuple([z.string()], z.string()),
    programs: z.object({ temporal: z.string(), icecast2: z.string(), haproxy: z.string() }),
  })
  .parse(JSON.parse(process.argv[2] ?? ''));
const settings = readSettings(process.env);
const runDir = path.join(parts.folder, 'run');

process.once('disconnect', () => stopping.abort());
process.exitCode = await main();
process.exit();

async function main(): Promise<number> {
  const cleanups: (() => Promise<void>)[] = [];
  const stopped = new Promise<never>((_, reject) => {
    stopping.signal.addEventListener('abort', () => reject(new StartFailure('Stopped.')));
  });
  let code = 0;
  try {
    await Promise.race([rehearse(cleanups), stopped]);
  } catch (error) {
    console.error(describeFailure(error));
    code = 1;
  }
  for (const cleanup of cleanups.reverse()) await cleanup();
  await killAll();
  return code;
}

async function rehearse(cleanups: (() => Promise<void>)[]): Promise<void> {
  const { compose, folder, programs } = parts;
  await mkdir(runDir);
  await mkdir(path.join(folder, 'volumes'));
  await prepareMachine(folder, { node: process.execPath, ...programs });
  await bind(path.join(folder, 'volumes'), PLACES.volumes);

  cleanups.push(await step('Starting a Docker engine, as the machine has one', startDocker));
  const images = await step('Making the images of agents', makeImages);
  const chain = await step('Starting a chain', startChain);
  cleanups.push(chain.stop);

  const files = ['docker-compose.yml', '.env', 'deploy'];
  for (const file of files) {
    await cp(path.join(projectRoot, file), path.join(folder, file), {
      recursive: true,
      filter: (each) => !each.endsWith(path.join('deploy', 'secrets')),
    });
  }
  await writeVariables({ ...images, ...chain.variables });
  const profiles = { COMPOSE_PROFILES: 'radio' };
  const project = await loadProject(compose, profiles, folder, ['.env', '.env.local']);
  const services = servicesOf(project);
  const jobs = jobsOf(services);

  const rehearsed = new RehearsedServices(folder, programs.temporal);
  cleanups.push(() => rehearsed.stop());
  await step(`Starting ${Object.keys(services).length} services in their order`, () =>
    startInOrder(services, (name, service) => rehearsed.start(name, service, jobs.has(name))),
  );
  await step('Waiting until the host guards its agents', untilGuarded);
  await takeTour(chain.local);
  const unhealthy = await rehearsed.unhealthy();
  if (unhealthy.length > 0) {
    throw new StartFailure(`After the tour these are not healthy: ${unhealthy.join(', ')}`);
  }
  say('\nRan, as user 1000 with the capabilities, settings and files of the containers:');
  for (const line of rehearsed.ran) say(`  ${line}`);
  say('Only checked by the loader of Compose:');
  for (const line of [...rehearsed.checked, ...ONLY_CHECKED]) say(`  ${line}`);
}

async function startDocker(): Promise<() => Promise<void>> {
  const config = path.join(parts.folder, 'daemon.json');
  const key = { 'deprecated-key-path': path.join(parts.folder, 'docker-key.json') };
  await writeFile(config, JSON.stringify((await keepsIdOutsideData()) ? key : {}));
  const engine = await startProcess({
    name: 'docker',
    command: 'dockerd',
    args: [
      `--config-file=${config}`,
      `--data-root=${path.join(parts.folder, 'docker')}`,
      `--host=${PLACES.docker}`,
      `--group=${DOCKER_GID}`,
      '--shutdown-timeout=10',
    ],
    runDir,
  });
  const isUp = await poll(
    async () => (engine.hasEnded() ? false : (await answers(PLACES.docker)) || undefined),
    { timeoutMs: DOCKER_MS },
  );
  if (isUp !== true) throw new StartFailure(`The Docker engine does not start: ${engine.logFile}`);
  return () => engine.stop(30_000);
}

async function makeImages(): Promise<Readonly<Record<string, string>>> {
  const env = { ...process.env, DOCKER_HOST: PLACES.docker };
  const egress = await obtainImage(EGRESS_IMAGE, env, runDir, [LOCAL_HELPER_IMAGE]);
  const agent = await obtainImage(AGENT_IMAGE, env, runDir);
  if (egress === undefined || agent === undefined) {
    throw new StartFailure('The rehearsal needs the images of agents.');
  }
  return { AGENT_EGRESS_IMAGE: egress, AGENT_RUNTIME_IMAGE: agent };
}

/** Starts a chain on this machine, and makes the secrets with the key of its operator. */
async function startChain() {
  const { chainId } = settings.chain;
  const dataDir = parts.folder;
  const stateDir = path.join(dataDir, 'chain');
  const anvil = await startAnvil({ stateDir, runDir, port: CHAIN_PORT, chainId });
  const parties = partiesOf({ treasury: undefined, operator: undefined });
  const place = { rpcUrl: anvil.rpcUrl, chainId, dataDir };
  const local = await furnish(place, parties, settings.paymentSessions);
  await makeSecrets(parties.operator.privateKey);
  return { local, variables: withLocalChain({}, local), stop: () => anvil.stop() };
}

/** Makes the files of secrets as an operator does, and fills in those that only an operator has. */
async function makeSecrets(operatorKey: string): Promise<void> {
  const folder = path.join(parts.folder, 'secrets');
  await run(process.execPath, [path.join(projectRoot, 'scripts', 'secrets.mjs'), 'init', folder], {
    timeout: 30_000,
  });
  await writeFile(path.join(folder, 'operator_private_key'), operatorKey);
  await writeFile(path.join(folder, 'radio_tls'), await makeCertificate(RADIO));
  await bind(folder, PLACES.secrets);
}

/** Returns a certificate for a host name and its key. */
function makeCertificate(host: string): Promise<string> {
  return run(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-days', '1', '-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`],
      ...['-keyout', '-', '-out', '-'],
    ],
    { timeout: 10_000 },
  );
}

/** Fills in `.env.example`, and adds settings that a machine without a registry and a network needs. */
async function writeVariables(others: NodeJS.ProcessEnv): Promise<void> {
  const shown = await run('ip', ['-4', '-o', 'address', 'show', 'docker0'], { timeout: 10_000 });
  const [, gateway] = / inet ([\d.]+)/.exec(shown) ?? [];
  const { runtimeVersion } = settings.agents;
  const known: NodeJS.ProcessEnv = {
    ...others,
    ADMIN_EMAILS: 'operator@example.com',
    AGENT_AI_HOST: gateway,
    AGENT_DOMAIN: 'agents.localhost',
    AGENT_VERSIONS: `${runtimeVersion}@${ANY_DIGEST}`,
    BACKEND_DOMAIN: new URL(BACKEND).hostname,
    DOCKER_GID,
    PLATFORM_TOKEN_ADDRESS: PATH_USD,
    RADIO_ICECAST_URL: 'http://icecast:8000',
    RADIO_PUBLIC_URL: `https://${RADIO}:8443`,
    WEB_DOMAIN: WEB,
  };
  const example = await readFile(path.join(projectRoot, '.env.example'), 'utf8');
  const wanted = [...example.matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);
  const unknown = wanted.filter((name) => known[name] === undefined);
  if (unknown.length > 0) {
    throw new StartFailure(`The rehearsal has no value for ${unknown.join(', ')} of .env.example.`);
  }
  const lines = Object.entries(known).map(([name, value]) => `${name}=${value ?? ''}\n`);
  await writeFile(path.join(parts.folder, '.env.local'), lines.join(''));
}

/** Waits until the host accepts agents and guards their networks. @throws StartFailure */
async function untilGuarded(): Promise<void> {
  const headers = { authorization: `Bearer ${await internalApiKey()}` };
  const isGuarded = async () => {
    const answer = await fetch('http://api:3001/api/hosts', {
      headers,
      signal: AbortSignal.timeout(10_000),
    });
    const hosts = hostList.parse(await answer.json());
    const takes = ({ network, status }: z.infer<typeof hostList>[number]) =>
      status === 'ready' && network === 'guarded';
    return hosts.some(takes) || undefined;
  };
  const found = await poll(isGuarded, { timeoutMs: GUARD_MS, everyMs: 1_000 });
  if (found === undefined) throw new StartFailure('The host guards no networks of agents.');
}

function internalApiKey(): Promise<string> {
  return readFile(path.join(PLACES.secrets, 'internal_api_key'), 'utf8');
}

/** Runs an agent's tour through the proxy, as a client on the internet. */
async function takeTour(chain: LocalChain): Promise<void> {
  const authority = path.join(PLACES.volumes, 'caddy/caddy/pki/authorities/local/root.crt');
  const certificates = [authority, path.join(PLACES.secrets, 'radio_tls')];
  const read = certificates.map((file) => readFile(file, 'utf8'));
  globalAgent.options.ca = [...rootCertificates, ...(await Promise.all(read))];
  const facts = {
    webUrl: `https://${WEB}`,
    backendUrl: BACKEND,
    chain,
    internalApiKey: await internalApiKey(),
    userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  };
  await new AgentTour(facts, { visit, goLive }).go();
}

/** Opens an agent's own address, whose certificate the proxy makes at this moment. @throws StartFailure */
async function visit(url: string): Promise<void> {
  const { hostname, pathname, search } = new URL(url);
  const status = await statusOf({
    host: '127.0.0.1',
    servername: hostname,
    path: `${pathname}${search}`,
    headers: { host: hostname },
  });
  if (status === undefined || status >= 400) {
    throw new StartFailure(`The agent's address answers ${status} through the proxy.`);
  }
  say(`The agent's own address answers ${status} through the proxy.`);
}

/** Sends to a stream and plays it, both through HAProxy. @throws StartFailure */
async function goLive(listenUrl: string, sourcePassword: string): Promise<void> {
  const { hostname: host, pathname, port } = new URL(listenUrl);
  const credentials = Buffer.from(`source:${sourcePassword}`).toString('base64');
  const source = connect({
    host,
    servername: host,
    port: Number(port),
    ca: globalAgent.options.ca,
  });
  const answered = new Promise<string>((resolve) => {
    source.once('data', (data: Buffer) =>
      resolve(data.toString('latin1').split('\r\n', 1)[0] ?? ''),
    );
    source.once('error', (error: Error) => resolve(error.message));
    source.setTimeout(ANSWER_MS, () => resolve('no answer'));
  });
  source.write(
    `SOURCE ${pathname} HTTP/1.0\r\nAuthorization: Basic ${credentials}\r\nContent-Type: audio/mpeg\r\n\r\n`,
  );
  const answer = await answered;
  if (!answer.includes(' 200 ')) {
    throw new StartFailure(`A source gets this answer through HAProxy: ${answer}.`);
  }
  source.write(Buffer.alloc(AUDIO_BYTES, 0x55));
  const status = await statusOf({ host, port, path: pathname });
  source.destroy();
  if (status !== 200) throw new StartFailure(`A player gets ${status} through HAProxy.`);
  say('A source sends to the stream through HAProxy, and a player plays it.');
}

/** Returns the status of the answer to a GET; undefined without an answer. */
function statusOf(options: RequestOptions): Promise<number | undefined> {
  return new Promise((resolve) => {
    const asked = request({ ...options, signal: AbortSignal.timeout(ANSWER_MS) });
    asked.once('response', ({ statusCode }) => {
      resolve(statusCode);
      asked.destroy();
    });
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
