import { WorkflowNotFoundError } from '@temporalio/client';
import type Docker from 'dockerode';
import { containerName, LABEL } from '../../src/docker/containers/container-spec.js';
import type { AgentRow, DesiredState, OperationRow } from '../../src/platform/database/models.js';
import type { OperationStatus } from '../../src/types/operation-kinds.js';
import { superviseAgentId } from '../../workflows/ids.js';
import type { OperationName } from './plan.js';
import type { Site, SiteHost } from './site.js';

/** The expected state of an agent and the operations that led to it, each kind once. */
export interface Expected {
  readonly agentId: string;
  readonly desired: DesiredState;
  /** Every accepted operation. */
  readonly operations: readonly OperationName[];
}

interface OnEngine {
  readonly containers: readonly Docker.ContainerInfo[];
  readonly networks: number;
  readonly volumes: readonly string[];
}

/**
 * Returns an agent's problems: neither as desired nor in error with a reason, leftovers or duplicates,
 * lost operations. Throws while a service does not answer.
 */
export async function problemsOf(site: Site, expected: Expected): Promise<string[]> {
  const records = await recordsOf(site, expected.agentId);
  return [
    ...lostOperations(expected.operations, records.operations),
    ...(await problemsOfState(site, records, expected.desired)),
  ];
}

/** Returns the problems of an agent's current state, without regard to its operations. */
export async function problemsOfState(
  site: Site,
  { agent, archived }: Records,
  desired: DesiredState,
): Promise<string[]> {
  if (!agent) return ['it is not in the database'];
  const agentId = agent.id;
  const host = site.hosts[agent.host];
  if (!host) return [`it is on ${agent.host}, which is no host`];
  const engine = await onEngine(host, agentId);
  const supervisor = await supervisorOf(site, agentId);
  const problems: string[] = [];
  if (agent.desired !== desired) problems.push(`it is desired ${agent.desired}, not ${desired}`);
  if (desired === 'deleted') {
    if (agent.deletedAt === null) problems.push('its removal is not complete');
    if (agent.port !== null) problems.push(`it keeps port ${agent.port}`);
    problems.push(...more(engine, { containers: 0, networks: 0, volumes: [] }));
    if (supervisor !== 'COMPLETED') problems.push(`its supervisor is ${supervisor}`);
    return problems;
  }
  if (supervisor !== 'RUNNING') problems.push(`its supervisor is ${supervisor}`);
  if (agent.previousRelease) problems.push('its replacement is not complete');
  const isPlaced = agent.port !== null;
  problems.push(
    ...more(engine, {
      containers: isPlaced ? 1 : 0,
      networks: isPlaced ? 1 : 0,
      volumes: isPlaced ? [agent.volume ?? containerName(agentId), ...archived] : [],
    }),
  );
  if (agent.status === 'error') problems.push(...dishonesty(agent));
  else if (desired === 'running') problems.push(...(await notRunning(host, agent, engine)));
  else problems.push(...notStopped(agent, engine));
  return problems;
}

/** Database rows of an agent. */
export interface Records {
  readonly agent: AgentRow | null;
  readonly operations: readonly OperationRow[];
  /** Volumes of the agent's archived memories. */
  readonly archived: readonly string[];
}

export async function recordsOf({ database }: Site, agentId: string): Promise<Records> {
  return database.asPlatform().transaction(async (db) => {
    const where = { agentId };
    const archives = await db.AgentArchive.findAll({ where });
    return {
      agent: await db.Agent.findByPk(agentId),
      operations: await db.Operation.findAll({ where }),
      archived: archives.map(({ volume }) => volume),
    };
  });
}

async function onEngine({ docker }: SiteHost, agentId: string): Promise<OnEngine> {
  const filters = JSON.stringify({ label: [`${LABEL.agent}=${agentId}`] });
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    docker.listContainers({ all: true, filters }),
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  return {
    containers,
    networks: networks.length,
    volumes: (volumes ?? []).map(({ Name }) => Name), // null if there are none
  };
}

async function supervisorOf({ temporal }: Site, agentId: string): Promise<string> {
  try {
    const { status } = await temporal.workflow.getHandle(superviseAgentId(agentId)).describe();
    return status.name;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 'missing';
    throw error;
  }
}

function lostOperations(
  accepted: readonly OperationName[],
  operations: readonly OperationRow[],
): string[] {
  return [
    ...accepted
      .filter((kind) => operations.filter((each) => each.kind === kind).length !== 1)
      .map((kind) => `operation ${kind} is lost or double`),
    ...operations.flatMap((each) => unended(each, ['succeeded', 'failed'])),
  ];
}

/** Returns a problem if the operation has not ended in one of these ways. */
export function unended(
  { kind, status, error }: OperationRow,
  ends: readonly OperationStatus[],
): string[] {
  const hasReason = status !== 'failed' || Boolean(error);
  if (ends.includes(status) && hasReason) return [];
  return [`operation ${kind} is ${status}${hasReason ? '' : ' without a reason'}`];
}

/** Returns the reasons of agents in error and of failed operations. */
export async function notifiedOf({ database }: Site, agentId: string[]): Promise<string[]> {
  return database.asPlatform().transaction(async (db) => {
    const inError = await db.Agent.findAll({
      where: { id: agentId, status: 'error', deletedAt: null },
    });
    const changes = await db.WatchdogTransition.findAll({
      where: { agentId: inError.map(({ id }) => id) },
      order: [['at', 'ASC']],
    });
    const wayOf = (id: string) =>
      changes
        .filter((each) => each.agentId === id)
        .map(({ cause, toState }) => `${toState} (${cause})`)
        .join(', ');
    const failed = await db.Operation.findAll({ where: { agentId, status: 'failed' } });
    return [
      ...inError.map(({ id, statusReason }) => `in error: ${statusReason}: ${wayOf(id)}`),
      ...failed.map(({ kind, error }) => `${kind} failed: ${error}`),
    ];
  });
}

/** Returns containers, networks and volumes beyond the allowed ones. */
function more(
  { containers, networks, volumes }: OnEngine,
  allowed: { containers: number; networks: number; volumes: readonly string[] },
): string[] {
  const names = containers.map(({ Names, State }) => `${Names[0]} (${State})`);
  const leaked = volumes.filter((name) => !allowed.volumes.includes(name));
  return [
    ...(containers.length > allowed.containers ? [`containers: ${names.join(', ')}`] : []),
    ...(networks > allowed.networks ? [`${networks} networks`] : []),
    ...(leaked.length > 0 ? [`leaked volumes: ${leaked.join(', ')}`] : []),
  ];
}

/** Returns problems of an agent in error: it needs a reason, and no supervisor about to change it. */
function dishonesty({ statusReason, watchdog }: AgentRow): string[] {
  const state = watchdog?.state;
  return [
    ...(statusReason ? [] : ['it is in error without a reason']),
    ...(state === undefined || state === 'crash_loop' || state === 'stopped'
      ? []
      : [`it is ${state}: ${statusReason}`]),
  ];
}

async function notRunning(
  host: SiteHost,
  agent: AgentRow,
  { containers, networks }: OnEngine,
): Promise<string[]> {
  const { image, port, status } = agent;
  if (status !== 'active') return [`it is ${status}, not active`];
  const [container] = containers;
  if (container?.State !== 'running') {
    return [`it should run, but its container is ${container?.State ?? 'missing'}`];
  }
  const published = container.Ports.map(({ PublicPort }) => PublicPort);
  return [
    ...(published.includes(port ?? 0) ? [] : [`it has port ${port}, not ${published.join()}`]),
    ...(container.Image === image ? [] : [`it runs ${container.Image}, not ${image}`]),
    ...(networks === 1 ? [] : ['it has no network']),
    ...((await host.isAnswering(port ?? 0)) ? [] : ['it should run, but does not answer']),
  ];
}

function notStopped({ status }: AgentRow, { containers }: OnEngine): string[] {
  const [container] = containers;
  return [
    ...(status === 'stopped' ? [] : [`it is ${status}, not stopped`]),
    ...(container?.State === 'running' ? ['it is to be stopped, and its container runs'] : []),
  ];
}
