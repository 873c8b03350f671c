import { WorkflowNotFoundError } from '@temporalio/client';
import type Docker from 'dockerode';
import { containerName, LABEL } from '../../src/containers/container-spec.js';
import type { AgentRow, DesiredState, OperationRow } from '../../src/database/models.js';
import { superviseAgentId } from '../../workflows/ids.js';
import type { OperationName } from './plan.js';
import type { Site } from './site.js';

const PROBE_TIMEOUT_MS = 2_000;

/** What an agent is to be, and what was asked for on the way there. */
export interface Expected {
  readonly agentId: string;
  readonly desired: DesiredState;
  /** Every operation that was accepted. */
  readonly operations: readonly OperationName[];
}

interface OnEngine {
  readonly containers: readonly Docker.ContainerInfo[];
  readonly networks: number;
  readonly volumes: readonly string[];
}

/**
 * What is not as it should be: it is neither as desired nor honestly in error, something is left or
 * double, an operation was lost. None when all is well. Throws while something does not answer.
 */
export async function problemsOf(site: Site, expected: Expected): Promise<string[]> {
  const { agentId, desired } = expected;
  const { agent, archived, operations } = await recordsOf(site, agentId);
  if (!agent) return ['it is not in the database'];
  const engine = await onEngine(site, agentId);
  const supervisor = await supervisorOf(site, agentId);
  const problems = lostOperations(expected.operations, operations);
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
  else if (desired === 'running') problems.push(...(await notRunning(agent, engine)));
  else problems.push(...notStopped(agent, engine));
  return problems;
}

async function recordsOf({ database }: Site, agentId: string) {
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

async function onEngine({ engine }: Site, agentId: string): Promise<OnEngine> {
  const filters = JSON.stringify({ label: [`${LABEL.agent}=${agentId}`] });
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    engine.docker.listContainers({ all: true, filters }),
    engine.docker.listNetworks({ filters }),
    engine.docker.listVolumes({ filters }),
  ]);
  return {
    containers,
    networks: networks.length,
    volumes: (volumes ?? []).map(({ Name }) => Name), // null where there is none
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
    ...operations.flatMap(({ kind, status, error }) => {
      if (status === 'succeeded' || (status === 'failed' && error)) return [];
      return [`operation ${kind} is ${status}${status === 'failed' ? ' without a reason' : ''}`];
    }),
  ];
}

/** Whatever is there over what is allowed. */
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

/** An error is honest when it has a reason, and nobody is about to change it. */
function dishonesty({ statusReason, watchdog }: AgentRow): string[] {
  const state = watchdog?.state;
  return [
    ...(statusReason ? [] : ['it is in error without a reason']),
    ...(state === undefined || state === 'crash_loop' || state === 'stopped'
      ? []
      : [`it is ${state}: ${statusReason}`]),
  ];
}

async function notRunning(agent: AgentRow, { containers, networks }: OnEngine): Promise<string[]> {
  const { image, port, status } = agent;
  if (status !== 'active') return [`it is ${status}, not active`];
  const [container] = containers;
  if (container?.State !== 'running') {
    return [`it is told to run, and its container is ${container?.State ?? 'missing'}`];
  }
  const published = container.Ports.map(({ PublicPort }) => PublicPort);
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, {
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  }).catch(() => undefined);
  await answer?.body?.cancel();
  return [
    ...(published.includes(port ?? 0) ? [] : [`it has port ${port}, not ${published.join()}`]),
    ...(container.Image === image ? [] : [`it runs ${container.Image}, not ${image}`]),
    ...(networks === 1 ? [] : ['it has no network']),
    ...(answer?.ok ? [] : ['it is told to run, and does not answer']),
  ];
}

function notStopped({ status }: AgentRow, { containers }: OnEngine): string[] {
  const [container] = containers;
  return [
    ...(status === 'stopped' ? [] : [`it is ${status}, not stopped`]),
    ...(container?.State === 'running' ? ['it is to be stopped, and its container runs'] : []),
  ];
}
