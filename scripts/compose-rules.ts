import * as z from 'zod';
import { AREAS } from '../src/settings.js';
import { variablesOf } from '../src/platform/environment/area.js';

/* The rules of docker-compose.yml, on the JSON that Compose's own loader makes of the file. */

const OUR_IMAGE = /^agent-platform-service:/;
const LOOPBACK = '127.0.0.1';
const SOCKET = '/var/run/docker.sock';
const DOCKER_FOLDER = '/var/lib/docker';
const SECRETS = '/run/secrets/';

/** Capabilities of services whose image needs some. */
const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  postgres: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'],
  caddy: ['NET_BIND_SERVICE'],
};

/** Services whose image writes to its own files. */
const WRITABLE: readonly string[] = ['temporal-ui'];

/** Services on the machine's own network, on which gateways are published and agents connect. */
const ON_HOST: readonly string[] = ['host', 'agents-ai'];

/** Services that clients outside reach: sources of the radio cannot use the HTTP proxy. */
const PUBLISHED: readonly string[] = ['caddy', 'haproxy'];

/** Addresses at which people and programs reach the platform through Caddy. */
const PUBLIC_ADDRESSES: readonly string[] = ['BACKEND_PUBLIC_URL', 'WEB_URL'];

/** Secrets that only one service has. */
const OWN_SECRETS: Readonly<Record<string, string>> = {
  database_owner_url: 'migrate',
  host_tls_key: 'host',
  operator_private_key: 'payments',
  radio_tls: 'haproxy',
};

const service = z.object({
  image: z.string().optional(),
  build: z.object({ args: z.record(z.string(), z.string().nullable()).default({}) }).optional(),
  user: z.string().optional(),
  privileged: z.boolean().default(false),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  cap_add: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  mem_limit: z.coerce.number().default(0),
  restart: z.string().default('no'),
  network_mode: z.string().optional(),
  networks: z.record(z.string(), z.unknown()).default({}),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  secrets: z.array(z.object({ source: z.string() })).default([]),
  logging: z.object({ options: z.record(z.string(), z.string()).default({}) }).optional(),
  healthcheck: z
    .object({ test: z.array(z.string()).default([]), disable: z.boolean().default(false) })
    .optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  ports: z
    .array(z.object({ host_ip: z.string().optional(), published: z.coerce.string() }))
    .default([]),
  volumes: z
    .array(
      z.object({
        type: z.string(),
        source: z.string().optional(),
        read_only: z.boolean().default(false),
      }),
    )
    .default([]),
});

/** The parts of a project that the rules need, as `docker compose config --format json` prints them. */
export const composeProject = z.object({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.object({ internal: z.boolean().default(false) })).default({}),
  secrets: z.record(z.string(), z.object({ file: z.string().optional() })).default({}),
});

type Service = z.infer<typeof service>;
export type ComposeProject = z.infer<typeof composeProject>;

type Named = Service & { readonly name: string; readonly isJob: boolean };

/** Returns the faults of one service. */
type Rule = (each: Named, all: ReadonlyMap<string, Named>) => readonly string[];

const when = (isBroken: boolean, fault: string): readonly string[] => (isBroken ? [fault] : []);

const RULES: readonly Rule[] = [
  ({ build, image = '' }) => [
    ...when(!isPinned(image), `image ${image} has no version`),
    ...Object.entries(build?.args ?? {}).flatMap(([name, value]) =>
      when(!isPinned(value ?? ''), `the image in build argument ${name} has no version`),
    ),
  ],
  ({ healthcheck, isJob }) =>
    when(
      !isJob &&
        (!healthcheck?.test.length || healthcheck.test[0] === 'NONE' || healthcheck.disable),
      'has no health check',
    ),
  ({ isJob, restart }) =>
    when(isJob !== (restart === 'no'), isJob ? 'is a job and restarts' : 'does not restart'),
  ({ depends_on: dependencies }, all) =>
    Object.entries(dependencies).flatMap(([name, { condition }]) => {
      const wanted = all.get(name)?.isJob ? 'service_completed_successfully' : 'service_healthy';
      return when(condition !== wanted, `waits for ${name} by ${condition} instead of ${wanted}`);
    }),
  ({ mem_limit: limit }) => when(!(limit > 0), 'has no memory limit'),
  ({ logging }) =>
    when(
      !logging?.options['max-size'] || !logging.options['max-file'],
      'has an unbounded log: set max-size and max-file',
    ),
  ({ name, read_only: isReadOnly }) =>
    when(!isReadOnly && !WRITABLE.includes(name), 'can write to its image: set read_only'),
  ({ cap_add: added, cap_drop: dropped, name, privileged, security_opt: options }) => [
    ...when(privileged, 'is privileged'),
    ...when(!dropped.includes('ALL'), 'keeps capabilities: set cap_drop: [ALL]'),
    ...added
      .filter((capability) => !CAPABILITIES[name]?.includes(capability))
      .map((capability) => `has the capability ${capability}`),
    ...when(!options.includes('no-new-privileges:true'), 'may gain privileges'),
  ],
  ({ image = '', user }) =>
    when(OUR_IMAGE.test(image) && /^(0|root)(:|$)/.test(user ?? ''), 'runs as root'),
  ({ environment, secrets }) =>
    Object.entries(environment).flatMap(([name, value]) => {
      if (value === null || value === '') return [];
      if (!name.endsWith('_FILE')) {
        return when(isSecret(name, value), `has a secret in ${name}: use ${name}_FILE`);
      }
      const mounted = secrets.some(({ source }) => value === `${SECRETS}${source}`);
      return when(isSecret(name.slice(0, -5)) && !mounted, `does not mount the secret of ${name}`);
    }),
  ({ name, secrets }) =>
    secrets.flatMap(({ source }) => {
      const owner = OWN_SECRETS[source] ?? name;
      return when(owner !== name, `has the secret ${source}, which only ${owner} may have`);
    }),
  ({ name, networks, secrets }) =>
    when(
      name === 'summarizer' &&
        (secrets.some(({ source }) => source !== 'summarizer_key') ||
          Object.keys(networks).join() !== 'edge'),
      'has another secret than summarizer_key, or another network than edge',
    ),
  ({ name, ports }) =>
    ports
      .filter(({ host_ip: ip }) => !PUBLISHED.includes(name) && ip !== LOOPBACK)
      .map(({ published }) => `publishes port ${published} beyond loopback`),
  ({ name, network_mode: mode }) =>
    when(mode === 'host' && !ON_HOST.includes(name), "is on the machine's own network"),
  ({ name, volumes }) =>
    volumes.flatMap(({ read_only: isReadOnly, source = '', type }) => {
      if (type !== 'bind') return [];
      if (source === SOCKET) return when(name !== 'host', "has Docker's socket");
      if (name === 'host' && source === DOCKER_FOLDER) {
        return when(!isReadOnly, `can write to ${DOCKER_FOLDER}`);
      }
      return when(!/\/deploy\/[\w./-]+$/.test(source), `mounts ${source}`);
    }),
  ({ environment }, all) => {
    const served = Object.values(all.get('caddy')?.environment ?? {});
    return PUBLIC_ADDRESSES.flatMap((name) => {
      const address = environment[name];
      const isServed = !address || served.includes(new URL(address).hostname);
      return when(!isServed, `has a ${name} with a domain that caddy does not have`);
    });
  },
];

/** Returns a sentence for each broken rule. */
export function composeFaults({ networks, secrets, services }: ComposeProject): readonly string[] {
  const jobs = new Set(
    Object.values(services).flatMap(({ depends_on: dependencies }) =>
      Object.entries(dependencies)
        .filter(([, { condition }]) => condition === 'service_completed_successfully')
        .map(([name]) => name),
    ),
  );
  const all = new Map<string, Named>(
    Object.entries(services).map(([name, each]) => [
      name,
      { ...each, name, isJob: jobs.has(name) },
    ]),
  );
  const versionOf = (image: string) =>
    [...all.values()]
      .filter((each) => each.image?.startsWith(`${image}:`))
      .map((each) => each.image?.slice(image.length + 1));
  const temporal = new Set(['temporalio/server', 'temporalio/admin-tools'].flatMap(versionOf));
  return [
    ...[...all.values()].flatMap((each) =>
      RULES.flatMap((rule) => rule(each, all)).map((fault) => `${each.name} ${fault}`),
    ),
    ...when(
      networks.data?.internal !== true,
      'the network data has access to other networks: set internal',
    ),
    ...Object.entries(secrets).flatMap(([name, { file }]) =>
      when(file === undefined, `the secret ${name} is no file`),
    ),
    ...when(temporal.size > 1, "Temporal's server and tools have different versions"),
  ];
}

/** Returns a sentence for each domain that the Caddyfile and Caddy's service do not share. */
export function caddyFaults(caddyfile: string, { services }: ComposeProject): readonly string[] {
  const given = Object.keys(services.caddy?.environment ?? {});
  const used = [...caddyfile.matchAll(/\{\$([A-Z_]+)\}/g)].map(([, name = '']) => name);
  return [
    ...used
      .filter((name) => !given.includes(name))
      .map((name) => `deploy/Caddyfile uses ${name}, which caddy does not get`),
    ...given
      .filter((name) => !used.includes(name))
      .map((name) => `caddy gets ${name}, which deploy/Caddyfile does not use`),
  ];
}

/** Variables of `.env`: only versions, since the file is tracked. */
const TRACKED = /^(?:[A-Z_]+_VERSION|[A-Z_]+_IMAGE|COMPOSE_PROJECT_NAME)$/;

/** Returns a sentence for each fault of the files with variables, beside the Compose file itself. */
export function variableFaults(
  compose: string,
  tracked: string,
  example: string,
): readonly string[] {
  const versions = namesIn(tracked);
  const others = namesIn(example);
  const wanted = new Set([...compose.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = '']) => name));
  const required = new Set([...compose.matchAll(/\$\{([A-Z_]+):\?/g)].map(([, name = '']) => name));
  return [
    ...versions.filter((name) => !TRACKED.test(name)).map((name) => `.env has ${name}`),
    ...others
      .filter((name) => !required.has(name))
      .map((name) => `.env.example has ${name}, which no service requires`),
    ...[...wanted]
      .filter((name) => !versions.includes(name) && !required.has(name))
      .map((name) => `${name} is neither in .env nor required: write \${${name}:?…}`),
    ...[...required]
      .filter((name) => !others.includes(name))
      .map((name) => `.env.example lacks ${name}`),
  ];
}

const namesIn = (text: string): string[] =>
  [...text.matchAll(/^([A-Z_]+)=/gm)].map(([, name = '']) => name);

/** Reports whether an image's name has a version of at least two numbers, or a digest. */
const isPinned = (image: string): boolean =>
  /@sha256:[0-9a-f]{64}$|:v?\d+\.\d+[\w.-]*$/.test(image);

const SECRET_NAMES = new Set(
  Object.values(AREAS)
    .flatMap((area) => variablesOf(area, { production: true }))
    .filter(({ options }) => options.secret)
    .map(({ name }) => name),
);

const isSecret = (name: string, value = ''): boolean =>
  SECRET_NAMES.has(name) ||
  name === 'DATABASE_OWNER_URL' ||
  /PASSWORD|PASSWD|_PWD$|SECRET|TOKEN$|_KEY$/.test(name) ||
  /:\/\/[^/@]*:[^/@]+@/.test(value);

const ANY_DIGEST = `sha256:${'0'.repeat(64)}`;

/** The variable by which Compose loads the services of all profiles. */
export const ALL_PROFILES = { COMPOSE_PROFILES: '*' };

/** Values of the variables that an operator sets, to load the file without an operator. */
export const EXAMPLE_VARIABLES: Readonly<Record<string, string>> = {
  ADMIN_EMAILS: 'ada@example.com',
  AGENT_AI_HOST: '172.17.0.1',
  AGENT_DOMAIN: 'agents.test',
  AGENT_EGRESS_IMAGE: ANY_DIGEST,
  AGENT_VERSIONS: `2026.9.6@${ANY_DIGEST}`,
  BACKEND_DOMAIN: 'backend.platform.example',
  DOCKER_GID: '999',
  WEB_DOMAIN: 'platform.example',
};
