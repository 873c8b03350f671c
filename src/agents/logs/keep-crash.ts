import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import { logHistory } from './live-logs.js';
import { sanitizeForJsonb } from '../../lib/well-formed.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { ContainerSpecs } from '../operations/container-specs.js';
import type { WatchdogStore } from '../watchdog/watchdog-store.js';

/** Log lines stored with a crash, and characters of each. */
const LAST_LINES = 20;
const LINE_LENGTH = 500;

export interface CrashScene {
  readonly containers: Pick<AgentContainers, 'inspect' | 'logs'>;
  readonly specs: Pick<ContainerSpecs, 'secretsToRedact'>;
  readonly states: Pick<WatchdogStore, 'recordCrash'>;
}

/** Records the end of a container first, so that it is stored even if reading the last log lines fails. */
export async function recordCrashDetails(
  { containers, specs, states }: CrashScene,
  agent: AgentRef,
  transitionId: string,
): Promise<void> {
  const container = await containers.inspect(agent.agentId);
  const end = {
    exitCode: container?.exitCode ?? null,
    oomKilled: container?.oomKilled ?? false,
  };
  await states.recordCrash(agent, transitionId, { ...end, lastLines: [] });
  const redact = await specs.secretsToRedact(agent);
  const options = { limit: LAST_LINES, cursor: undefined, redact };
  const { lines } = await logHistory(containers, agent.agentId, options);
  const lastLines = lines.map(({ line }) => sanitizeForJsonb(beginningOf(line)));
  await states.recordCrash(agent, transitionId, { ...end, lastLines });
}

/** Cuts a line without splitting a surrogate pair. */
function beginningOf(line: string): string {
  return line.slice(0, LINE_LENGTH).replace(/[\uD800-\uDBFF]$/, '');
}
