import { request } from 'undici';
import { agentSettings } from '../agents/lifecycle/settings.js';
import { hostSettings } from '../agents/hosts/settings.js';
import { configuredDocker } from '../docker/containers/docker-host.js';
import { DockerClient } from '../docker/containers/docker-client.js';
import { canListen } from '../docker/containers/port-check.js';
import { containerSettings } from '../docker/containers/settings.js';
import { readPrefix } from '../lib/read-beginning.js';
import { httpSettings } from '../platform/http/settings.js';
import { inUrl } from '../platform/http/own-hosts.js';
import { secretsSettings } from '../platform/secrets/settings.js';
import { temporalSettings } from '../platform/temporal/settings.js';
import { checkOf, failure, ok, type Check, type Finding } from './check.js';
import type { SettingsOf } from '../platform/environment/area.js';

const ANSWER_MS = 2_000;

const MAX_BYTES = 1024 * 1024;

/** Names of figures that our metrics have and those of other programs do not. */
const OUR_FIGURES = /^(?:aps|temporal)_/m;

const areas = {
  agents: agentSettings,
  containers: containerSettings,
  hosts: hostSettings,
  http: httpSettings,
  secrets: secretsSettings,
  temporal: temporalSettings,
} as const;

type Read = { readonly [K in keyof typeof areas]: SettingsOf<(typeof areas)[K]> };

interface Port {
  readonly variable: string;
  readonly host: string;
  readonly port: number;
}

/**
 * Makes the check that no other program uses one of our ports, and that ports are free for agents' gateways.
 *
 * @param runs false if no process of the platform runs here, so that another program must be using every
 * occupied port.
 */
export const portsCheck = (runs: boolean): Check =>
  checkOf('ports', areas, async (settings) => {
    const ports = await portsOf(settings, runs);
    const faults = await Promise.all(ports.map((port) => faultOf(port, runs)));
    const found = faults.flatMap((fault) => fault ?? []);
    const listeners = found.length > 0 ? found : [ok('No other program has a port of a listener.')];
    const isLocal = new DockerClient({ dockerHost: settings.containers.dockerHost }).isLocal;
    return [...listeners, ...(isLocal ? [await gatewayFinding(settings.agents.portRange)] : [])];
  });

async function portsOf(settings: Read, runs: boolean): Promise<Port[]> {
  const { agents, hosts, http, temporal } = settings;
  const { host } = http;
  const bridge = () =>
    configuredDocker(settings)
      .bridgeAddress()
      .catch(() => host); // the check of Docker says that it does not answer
  return [
    { variable: 'WEB_PORT', host, port: http.webPort },
    { variable: 'BACKEND_PORT', host, port: http.backendPort },
    { variable: 'SUMMARIZER_PORT', host, port: http.summarizerPort },
    { variable: 'METRICS_PORT', host, port: http.metricsPort },
    { variable: 'AGENT_AI_PORT', host: agents.aiHost ?? (await bridge()), port: agents.aiPort },
    { variable: 'AGENT_AI_METRICS_PORT', host, port: agents.aiMetricsPort },
    { variable: 'SUMMARIZER_METRICS_PORT', host, port: http.summarizerMetricsPort },
    listenerAt('WORKER_METRICS_LISTEN', temporal.workerMetrics),
    listenerAt('PAYMENTS_METRICS_LISTEN', temporal.paymentsMetrics),
    // The listener of a running worker cannot be recognized from outside.
    ...(hosts.listener && !runs ? [listenerAt('HOST_LISTEN', hosts.listener)] : []),
  ];
}

const listenerAt = (
  variable: string,
  { address, port }: { readonly address: string; readonly port: number },
): Port => ({ variable, host: address, port });

async function faultOf(place: Port, runs: boolean): Promise<Finding | undefined> {
  const { host, port, variable } = place;
  if (await canListen(host, port)) return undefined;
  if (runs && (await isOurs(place))) return undefined;
  return failure(
    `Port ${port} on ${host} is used by another program, or ${host} is no address of this machine: set ` +
      `${variable} to a free port.`,
  );
}

/** Reports whether a process of the platform answers: APIs send request ids, other listeners our figures. */
async function isOurs({ host, port }: Port): Promise<boolean> {
  const reached = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : inUrl(host);
  try {
    const { body, headers } = await request(`http://${reached}:${port}/metrics`, {
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const text = (await readPrefix(body, MAX_BYTES)).toString();
    return headers['x-request-id'] !== undefined || OUR_FIGURES.test(text);
  } catch {
    return false; // no answer in HTTP
  }
}

async function gatewayFinding({ first, last }: Read['agents']['portRange']): Promise<Finding> {
  for (let port = first; port <= last; port++) {
    if (await canListen('127.0.0.1', port)) return ok('Gateways of new agents have free ports.');
  }
  return failure(
    `No port from ${first} to ${last} is free for an agent's gateway: widen AGENT_PORT_RANGE, or end what uses them.`,
  );
}
