import type { AgentContainers } from '../../docker/containers/agent-containers.js';
import { logHistory } from './live-logs.js';
import { wellFormed } from '../../lib/well-formed.js';
import type { AgentRef } from '../../types/agent-ref.js';
import type { RuntimeStore } from '../operations/runtime-store.js';

/** Lines of its log that are kept with a crash, and characters of each. */
const LAST_LINES = 20;
const LINE_LENGTH = 500;

export interface CrashScene {
  readonly containers: Pick<AgentContainers, 'inspect' | 'logs'>;
  readonly specs: Pick<RuntimeStore, 'recordCrash' | 'secretsToRedact'>;
}

/**
 * Keeps with a crash how the container ended and what it wrote last. How it ended is written first:
 * whatever becomes of the lines, it is known.
 */
export async function keepCrash(
  { containers, specs }: CrashScene,
  agent: AgentRef,
  transitionId: string,
): Promise<void> {
  const container = await containers.inspect(agent.agentId);
  const end = {
    exitCode: container?.exitCode ?? null,
    oomKilled: container?.oomKilled ?? false,
  };
  await specs.recordCrash(agent, transitionId, { ...end, lastLines: [] });
  const redact = await specs.secretsToRedact(agent);
  const options = { limit: LAST_LINES, cursor: undefined, redact };
  const { lines } = await logHistory(containers, agent.agentId, options);
  const lastLines = lines.map(({ line }) => wellFormed(beginningOf(line)));
  await specs.recordCrash(agent, transitionId, { ...end, lastLines });
}

/** No half of a character at its end. */
function beginningOf(line: string): string {
  return line.slice(0, LINE_LENGTH).replace(/[\uD800-\uDBFF]$/, '');
}
